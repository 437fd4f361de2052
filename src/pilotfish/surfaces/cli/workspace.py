"""What a verb needs of a workspace, and the options that choose one.

The workspace of a verb is `--root`, else the git worktree around the current folder, else the current folder. Paths in
arguments are relative to the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from pilotfish.surfaces.cli.completion import folders
from pilotfish.system.worktree import top_of

if TYPE_CHECKING:
    from pilotfish.api.answers import Answer, DiagnosticsAnswer, Error, Feedback
    from pilotfish.api.questions import Operation
    from pilotfish.api.status import Snapshot
    from pilotfish.config.schema import TouchKind

NO_DAEMON = "PILOTFISH_NO_DAEMON"
"""The variable that does what `--no-daemon` does; also the key under which a click context remembers that option."""


def _remember(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 -- click's signature
    context.meta[NO_DAEMON] = given


root_option = click.option(
    "--root",
    metavar="DIR",
    help="The workspace. Default: the git worktree around the current folder, else that folder.",
    shell_complete=folders,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
daemon_option = click.option(
    "--no-daemon",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help=f"Run the servers in this process and stop them at the end (also: {NO_DAEMON}=1).",
)


class AskableWorkspace(Protocol):
    """What a question needs of it."""

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation; fields have their wire names (`filePath`, `newName`), None means absent."""
        ...

    async def warm(self, *paths: str) -> None:
        """Start the servers of these files and wait until each has answered once."""


class OpenWorkspace(AskableWorkspace, Protocol):
    """A workspace whose servers run in the daemon or in this process."""

    @property
    def root(self) -> str:
        """The real path of the folder."""
        ...

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        """Diagnostics by path; a text in `texts` is checked instead of the file on disk."""
        ...

    async def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        """The text to append to the result of the tool that changed these files; often empty."""
        ...

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        """The files that cannot be checked: why their server is missing, or None where no server is for them."""
        ...

    async def snapshot(self) -> Snapshot:
        """All servers of this workspace now, those in trouble first."""
        ...


def root_of(root: str | None) -> str:
    """The workspace that `--root` names, or the one around the current folder."""
    return root or top_of(os.getcwd())
