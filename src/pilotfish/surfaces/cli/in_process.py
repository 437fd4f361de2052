"""The library's workspace as verbs use one: its servers are children of this process and end with it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread

from pilotfish.api.answers import Answer, DiagnosticsAnswer, Error, Feedback, error_of
from pilotfish.api.questions import Operation
from pilotfish.api.status import Snapshot
from pilotfish.config.schema import TouchKind
from pilotfish.library import workspace
from pilotfish.surfaces.cli.workspace import OpenWorkspace


@asynccontextmanager
async def open_in_process(root: str, cwd: str) -> AsyncGenerator[OpenWorkspace]:
    """Raises `Refused` when the root is not a folder."""
    async with workspace.open(root, cwd=cwd) as opened:
        yield InProcessWorkspace(opened)


class InProcessWorkspace:
    """An `OpenWorkspace`."""

    def __init__(self, opened: workspace.Workspace) -> None:
        self._workspace = opened

    @property
    def root(self) -> str:
        return self._workspace.root

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        return await self._workspace.ask(operation, arguments)

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        return await self._workspace.check(*paths, texts=texts)

    async def warm(self, *paths: str) -> None:
        await self._workspace.warm(*paths)

    async def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        return await self._workspace.after_edit(*paths, kind=kind, only_new=only_new)

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        # In a thread, because it searches the disk for programs.
        return await anyio.to_thread.run_sync(self._unserved, paths)

    def _unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        found: dict[str, Error | None] = {}
        for path in paths:
            if not self._workspace.serves(path):
                found[path] = None
            elif (missing := self._workspace.missing(path)) is not None:
                found[path] = error_of(missing)
            elif not self._workspace.is_served(path):
                found[path] = None
        return found

    async def snapshot(self) -> Snapshot:
        return self._workspace.status()
