"""A workspace at the daemon, for a program that asks one thing after the other.

Its methods are `async` like those of every workspace, but they block and never wait for an event loop:
`run_without_loop` runs them without one, since importing an event loop takes longer than a warm server's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
import msgspec

from pilotfish.api.answers import Answer, Error, Feedback
from pilotfish.api.questions import Operation
from pilotfish.api.status import Snapshot
from pilotfish.errors import Bug, Code, Failure
from pilotfish.ipc.client import Link, introduction, open_link
from pilotfish.ipc.messages import ServedFile
from pilotfish.operations.answers import answer_of
from pilotfish.sanitise import sanitised
from pilotfish.system.real_path import real_path

if TYPE_CHECKING:
    from pilotfish.api.answers import DiagnosticsAnswer
    from pilotfish.config.schema import TouchKind

T = TypeVar("T")

WRONG_USE = frozenset({Code.INVALID_INPUT, Code.ROOT_GONE})
"""The daemon refused what we asked for: without a daemon the same would be refused."""

MAX_REASON = 500
"""Characters of the reason why there is no daemon."""


def maybe_connect(root: str, cwd: str) -> Link | None:
    """Connect to the daemon, starting it if need be; None, with a line on standard error, when that fails.

    Raises `Refused` when the root is not a folder.
    """
    try:
        return open_link(introduction(root, cwd))
    except Failure as failure:
        if failure.code in WRONG_USE:
            raise
        why = sanitised(failure.message, MAX_REASON)
        click.echo(f"Continuing without the daemon (servers start cold): {why}", err=True)
        return None


class DaemonWorkspace:
    """An `OpenWorkspace`; leaving its `async with` block ends the session."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._link.close()

    @property
    def root(self) -> str:
        return real_path(str(self._link.welcome["root"]))

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        return answer_of(self._link.request("ask", {"operation": operation, **arguments}))

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        return answer_of(self._link.request("check", {"paths": paths, "texts": texts or {}}))

    async def warm(self, *paths: str) -> None:
        await self.check(*paths)

    async def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        touch = {"paths": paths, "kind": kind, "onlyNew": only_new}
        return msgspec.convert(self._link.request("touched", touch), Feedback)

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        rows = msgspec.convert(self._link.request("served", {"paths": paths}), list[ServedFile])
        return {path: one.error for path, one in zip(paths, rows, strict=True) if one.error or not one.served}

    async def snapshot(self) -> Snapshot:
        return msgspec.convert(self._link.request("status"), Snapshot)


def run_without_loop(work: Callable[[], Coroutine[Any, Any, T]], /) -> T:
    """Run a coroutine that never waits; raises `Bug` when it does."""
    running = work()
    try:
        running.send(None)
    except StopIteration as done:
        return done.value
    running.close()
    raise Bug("a sequential verb awaited an event loop")
