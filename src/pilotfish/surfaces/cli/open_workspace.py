"""Opens the workspace of a verb: at the daemon, or in this process with `--no-daemon` or when no daemon can be had."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import click

from pilotfish.surfaces.cli.workspace import NO_DAEMON, OpenWorkspace, root_of

T = TypeVar("T")


class Runner(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How a workspace is opened, given its root and the current folder."""

    open: Callable[[str, str], AbstractAsyncContextManager[OpenWorkspace]]


def with_workspace(root: str | None, work: Callable[[OpenWorkspace], Awaitable[T]], *, sequential: bool = False) -> T:
    """Open the workspace, do `work` in it, close it. Raises `Refused` when the root is not a folder.

    `sequential` says that `work` awaits nothing but one answer after the other from the workspace itself: with the
    daemon it then runs without an event loop.
    """
    # Before there is an event loop, so that Ctrl-C works at once while a daemon starts.
    opened, run = _open(root_of(root), os.getcwd(), sequential=sequential)

    async def inside() -> T:
        async with opened as workspace:
            return await work(workspace)

    return run(inside)


def _open(root: str, cwd: str, *, sequential: bool) -> tuple[AbstractAsyncContextManager[OpenWorkspace], Runner]:
    context = click.get_current_context()
    without_daemon = context.meta.get(NO_DAEMON) or os.environ.get(NO_DAEMON, "0") not in {"", "0"}
    given = context.find_object(Opening)
    if given is None and not without_daemon:
        from pilotfish.surfaces.cli.daemon_workspace import DaemonWorkspace, maybe_connect, run_without_loop

        link = maybe_connect(root, cwd)
        if link is not None and sequential:
            return DaemonWorkspace(link), run_without_loop
        if link is not None:
            from pilotfish.ipc.async_client import remote_workspace

            given = Opening(lambda _root, _cwd: remote_workspace(link))
    import anyio

    if given is None:
        from pilotfish.surfaces.cli.in_process import open_in_process

        given = Opening(open_in_process)
    return given.open(root, cwd), anyio.run
