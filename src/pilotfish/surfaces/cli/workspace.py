"""How a verb gets a workspace: one seam for all of them, so that what stands behind it can change.

The workspace of a verb is `--root`, else the git worktree around the current folder, else that folder. Paths in
arguments count from the current folder. Its servers are the daemon's, unless `--no-daemon` or the environment says
that they shall be this program's own.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import click

from pilotfish.surfaces.cli.completing import folders
from pilotfish.system.worktree import top_of

if TYPE_CHECKING:
    from pilotfish.api.answers import Answer, Error, Feedback
    from pilotfish.api.questions import Operation
    from pilotfish.api.status import Snapshot
    from pilotfish.library.questions import Diagnostics

T = TypeVar("T")
Kind = Literal["edit", "write", "patch"]

NO_DAEMON = "PILOTFISH_NO_DAEMON"
"""The variable that says what `--no-daemon` does, and where a context keeps that it was given."""


def _note(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 -- click's signature
    context.meta[NO_DAEMON] = given


root_option = click.option(
    "--root",
    metavar="DIR",
    help="The workspace; by default the git worktree around the current folder, or that.",
    shell_complete=folders,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")
daemon_option = click.option(
    "--no-daemon",
    is_flag=True,
    expose_value=False,
    callback=_note,
    help=f"Run the servers in this command, and end them with it ({NO_DAEMON}=1 does the same).",
)


class OpenWorkspace(Protocol):
    """What a verb needs of a workspace, wherever its servers are."""

    @property
    def root(self) -> str:
        """The folder itself, symbolic links resolved."""
        ...

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation, its fields named as on the wire (`filePath`, `newName`); what is None counts as absent."""
        ...

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> Diagnostics:
        """The verdict on files, by path; a text in `texts` is judged instead of what is on disk."""
        ...

    async def warm(self, *paths: str) -> None:
        """Start the servers of these files and wait until each has answered once, whatever it says."""

    async def after_edit(self, *paths: str, kind: Kind, only_new: bool) -> Feedback:
        """What to append to the result of the tool that changed these files: often nothing."""
        ...

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        """Which of these files cannot be checked: why their server is not there, or None where nobody serves such."""
        ...

    async def snapshot(self) -> Snapshot:
        """Every server of this workspace at this moment, those in trouble first."""
        ...


class Runner(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How a workspace is opened, given its root and the current folder."""

    open: Callable[[str, str], AbstractAsyncContextManager[OpenWorkspace]]


def with_workspace(root: str | None, work: Callable[[OpenWorkspace], Awaitable[T]], *, alone: bool = False) -> T:
    """Open the workspace, do `work` in it, close it. Raises `Refused` when the root is no folder.

    `alone` says that `work` waits for nothing but one answer after the other of the workspace itself.
    """
    # Before there is an event loop, because whoever waits for a daemon to start can then be interrupted at once.
    opened, run = _opened(root_of(root), os.getcwd(), alone=alone)

    async def inside() -> T:
        async with opened as workspace:
            return await work(workspace)

    return run(inside)


def root_of(root: str | None) -> str:
    """The workspace that `--root` names, or the one around the current folder."""
    return root or top_of(os.getcwd())


def _opened(root: str, cwd: str, *, alone: bool) -> tuple[AbstractAsyncContextManager[OpenWorkspace], Runner]:
    context = click.get_current_context()
    refused = context.meta.get(NO_DAEMON) or os.environ.get(NO_DAEMON, "0") not in {"", "0"}
    given = context.find_object(Opening)
    if given is None and not refused:
        from pilotfish.surfaces.cli.linked import LinkedWorkspace, driven, maybe_linked

        link = maybe_linked(root, cwd)
        if link is not None and alone:
            return LinkedWorkspace(link), driven
        if link is not None:
            from pilotfish.ipc.async_client import remote_workspace

            given = Opening(lambda _root, _cwd: remote_workspace(link))
    import anyio

    if given is None:
        from pilotfish.surfaces.cli.in_process import open_inner

        given = Opening(open_inner)
    return given.open(root, cwd), anyio.run
