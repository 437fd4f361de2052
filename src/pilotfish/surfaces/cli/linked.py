"""A workspace by way of the daemon, for a program that asks one thing after the other.

Its methods are `async` as those of every workspace, and none of them ever waits for an event loop: `driven` runs what
uses nothing else without one. To import one takes longer than a warm server takes to answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
import msgspec

from pilotfish.api.answers import Answer, Error, Feedback
from pilotfish.api.questions import Operation
from pilotfish.api.status import Snapshot
from pilotfish.errors import Bug, Code, Failure
from pilotfish.ipc.client import Link, introduction, open_link
from pilotfish.ipc.messages import Served
from pilotfish.operations.answers import answer_of
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.workspace import Kind

if TYPE_CHECKING:
    from pilotfish.library.questions import Diagnostics

T = TypeVar("T")

OURS = frozenset({Code.INVALID_INPUT, Code.ROOT_GONE})
"""What the daemon refuses because of what we asked for: without it, the same would be refused."""

MAX_REASON = 500
"""Characters of why there is no daemon."""


def maybe_linked(root: str, cwd: str) -> Link | None:
    """A session at the daemon, which is started if need be; None when there is none to be had, which is told.

    Raises `Refused` when the root is no folder.
    """
    try:
        return open_link(introduction(root, cwd))
    except Failure as failure:
        if failure.code in OURS:
            raise
        why = sanitised(failure.message, MAX_REASON)
        click.echo(f"Working without the daemon, so servers start anew: {why}", err=True)
        return None


class LinkedWorkspace:
    """An `inside.OpenWorkspace`; as a block, it ends its session."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._link.close()

    @property
    def root(self) -> str:
        return os.path.realpath(str(self._link.welcome["root"]))

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        return answer_of(self._link.request("ask", {"operation": operation, **arguments}))

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> Diagnostics:
        return answer_of(self._link.request("check", {"paths": paths, "texts": texts or {}}))

    async def warm(self, *paths: str) -> None:
        await self.check(*paths)

    async def after_edit(self, *paths: str, kind: Kind, only_new: bool) -> Feedback:
        touch = {"paths": paths, "kind": kind, "onlyNew": only_new}
        return msgspec.convert(self._link.request("touched", touch), Feedback)

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        said = msgspec.convert(self._link.request("served", {"paths": paths}), list[Served])
        return {path: one.error for path, one in zip(paths, said, strict=True) if one.error or not one.served}

    async def snapshot(self) -> Snapshot:
        return msgspec.convert(self._link.request("status"), Snapshot)


def driven(work: Callable[[], Coroutine[Any, Any, T]], /) -> T:
    """Run a coroutine that never waits; raises `Bug` when it does."""
    running = work()
    try:
        running.send(None)
    except StopIteration as done:
        return done.value
    running.close()
    raise Bug("something waits for an event loop that is not there")
