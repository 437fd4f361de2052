"""The same server and the least client that can ask it for the edited file: the time that nobody can go below."""

import asyncio
from typing import Any

from parity.fixtures import Fixture
from parity.floor import Bare
from parity.lines import Child, started

from pilotfish.servers.catalogue import load
from told.edits import Edit
from told.subjects.setting import HOST_SECONDS, OPTIONS, Setting, Told

LANGUAGES = {"basedpyright": "python", "typescript": "typescript", "gopls": "go"}


class Publishing(Bare):
    """A server that cannot be asked: its word is what it publishes of the version that it was sent."""

    def __init__(self, child: Child, fixture: Fixture) -> None:
        super().__init__(child, fixture)
        self._published: dict[tuple[str, int], asyncio.Event] = {}
        child.told = self._told

    async def shown(self, file: str) -> object:
        self._sync(file)
        await self._event(self._document(file)["uri"], self._versions[file]).wait()
        return None

    def _told(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics":
            self._event(params["uri"], params.get("version", 0)).set()

    def _event(self, uri: str, version: int) -> asyncio.Event:
        return self._published.setdefault((uri, version), asyncio.Event())


class BareServer:
    """Its model reads nothing: only how long the server takes counts."""

    name = "bare"
    carries_out = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._runner = asyncio.Runner()
        self._client: Bare | None = None
        self._child: Child | None = None
        self._seen: set[str] = set()

    def begin(self) -> None:
        self._runner.run(self._start())

    def before(self, edit: Edit) -> None:
        read = {change.path for change in edit.changes if change.before is not None} - self._seen
        self._seen |= read
        self._runner.run(self._shown(*sorted(read)))

    def after(self, edit: Edit) -> Told:
        there = [change.path for change in edit.changes if change.after is not None]
        return self._runner.run(self._shown(*there))

    def end(self) -> None:
        if self._child is not None:
            self._runner.run(self._child.close())
        self._runner.close()

    async def _start(self) -> None:
        setting, server = self._setting, self._setting.server
        variables = {**setting.environment(), **OPTIONS.get(server, dict)().get("env", {})}
        argv = load()[server].command
        child = self._child = await started(argv, cwd=setting.root, environment=variables, framed=True)
        fixture = Fixture(LANGUAGES[server], setting.root, ())
        self._client = Publishing(child, fixture) if server == "gopls" else Bare(child, fixture)
        await self._client.start()

    async def _shown(self, *files: str) -> Told:
        clock, error = asyncio.get_running_loop().time, ""
        began = clock()
        assert self._client is not None
        for file in files:
            try:
                await asyncio.wait_for(self._client.shown(file), HOST_SECONDS)
            except (TimeoutError, RuntimeError) as trouble:
                error = f"{type(trouble).__name__} {trouble}".strip()
        return Told("", (clock() - began) * 1000, error=error)
