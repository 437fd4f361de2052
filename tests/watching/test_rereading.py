"""A server that believes its own watchers, as vtsls does: it is made to read again what has changed on disk.

The server is by script and knows only what it has read, so that nothing depends on how late those watchers are; the
catalogue's entry, the files and our watcher are real. `bench/clean.py` plays the same with the server itself.
"""

import math
import mmap
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio.testing

from pilotfish.api.answers import State
from pilotfish.protocol.uris import path_of
from pilotfish.service.diagnostics.on_demand import MAX_REREAD
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.watcher import open_watcher
from support.servers.pools import FakeVitals
from support.servers.script import SILENCE, Script
from support.services.watched import WatchedService, serving, watched_service
from support.watching.fake import FakeWatcher, written
from support.watching.watched import BOUND_SECONDS

pytestmark = pytest.mark.anyio

MAIN, LIBRARY = "main.ts", "library.ts"
FINE, WRONG = "value is fine\n", "value is off!\n"

Answer = Callable[[str], object]


def does(_request: str) -> object:
    return {"success": True}


@dataclass
class Believing:
    """Reads every file at its start. `import NAME` is an error where it has not read NAME, or something wrong in it.

    What is open is there, whatever the disk says.
    """

    script: Script
    answer: Answer = does
    """To a request to read again."""
    root: str = ""
    read: dict[str, str] = field(default_factory=dict[str, str])
    shown: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.script.capabilities.update({"textDocumentSync": 1, "executeCommandProvider": {"commands": ["any"]}})
        self.script.on("initialize", self.initialize)
        self.script.on("workspace/executeCommand", lambda params: self.command(*params["arguments"]))
        self.script.on("textDocument/didOpen", self.open)
        self.script.on("textDocument/didClose", self.close)
        self.script.ignore("textDocument/didChange", "textDocument/didSave", "workspace/didChangeWatchedFiles")

    def initialize(self, params: Any) -> object:
        self.root = str(path_of(params["rootUri"]))
        self.read_all()
        return {"capabilities": self.script.capabilities}

    def open(self, params: Any) -> None:
        self.shown[os.path.basename(params["textDocument"]["uri"])] = params["textDocument"]["text"]

    def close(self, params: Any) -> None:
        del self.shown[os.path.basename(params["textDocument"]["uri"])]

    def read_all(self) -> None:
        self.read = {name: Path(self.root, name).read_text() for name in os.listdir(self.root)} | self.shown

    def command(self, request: str, about: Any) -> object:
        match request:
            case "reload":
                said = self.answer(request)
                if said == does(request):
                    self.read[os.path.basename(about["file"])] = Path(about["tmpfile"]).read_text()
                return said
            case "reloadProjects":
                self.read_all()
                return self.answer(request)
            case "semanticDiagnosticsSync":
                return {"success": True, "body": self.errors()}
            case _:
                return {"success": True, "body": []}

    def errors(self) -> list[object]:
        names = [line.removeprefix("import ") for line in self.read[MAIN].splitlines()]
        wrong = [name for name in names if self.read.get(name) != FINE]
        place = {"line": 1, "offset": 1}
        return [{"start": place, "end": place, "text": f"{name} is wrong", "category": "error"} for name in wrong]


@asynccontextmanager
async def ground(
    folder: Path,
    *names: str,
    answer: Answer = does,
    watch: OpenWatcher = open_watcher,
    seconds: float = BOUND_SECONDS,
) -> AsyncGenerator[WatchedService]:
    """A workspace whose main file imports the others, all of them without errors, and has been checked once."""

    def scenario(script: Script) -> None:
        Believing(script, answer)

    with anyio.fail_after(seconds):
        async with watched_service(folder, scenario, watch=watch, servers={"vtsls": serving(".ts")}) as work:
            work.write(MAIN, "".join(f"import {name}\n" for name in names))
            for name in names:
                work.write(name, FINE)
            assert await work.errors(MAIN) == []
            yield work


def requests(work: WatchedService) -> list[str]:
    """The requests to read again that were made."""
    commands = [one.params["arguments"][0] for one in work.server.received if one.method == "workspace/executeCommand"]
    return [name for name in commands if name.startswith("reload")]


@pytest.mark.proves("F95", "P7")
async def test_what_was_written_through_a_memory_mapping_is_in_the_next_answer(tmp_path: Path) -> None:
    async with ground(tmp_path, LIBRARY) as work:
        await work.caught_up()
        before = len(requests(work))
        with (work.root / LIBRARY).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:] = WRONG.encode()
        assert await work.errors(MAIN) == ["library.ts is wrong"]
        assert requests(work)[before:] == ["reload"]


@pytest.mark.proves("F95", "WATCH-1")
async def test_so_is_a_file_that_is_gone_and_one_that_is_back(tmp_path: Path) -> None:
    async with ground(tmp_path, LIBRARY) as work:
        for _ in range(3):
            (work.root / LIBRARY).unlink()
            assert await work.errors(MAIN) == ["library.ts is wrong"]
            work.write(LIBRARY, FINE)
            assert await work.errors(MAIN) == []
        assert requests(work)[-1] == "reloadProjects"


@pytest.mark.proves("F95")
async def test_one_that_is_gone_is_read_again_also_where_it_was_open(tmp_path: Path) -> None:
    async with ground(tmp_path, LIBRARY) as work:
        assert await work.errors(LIBRARY) == []
        before = len(requests(work))
        (work.root / LIBRARY).unlink()
        assert await work.errors(MAIN) == ["library.ts is wrong"]
        assert requests(work)[before:] == ["reloadProjects"]


@pytest.mark.proves("F95")
async def test_of_many_changed_files_all_are_read_again_by_one_request(tmp_path: Path) -> None:
    names = [f"library{number}.ts" for number in range(MAX_REREAD + 1)]
    async with ground(tmp_path, *names) as work:
        await work.caught_up()
        before = len(requests(work))
        for name in names:
            work.write(name, WRONG)
        assert len(await work.errors(MAIN)) == len(names)
        assert requests(work)[before:] == ["reloadProjects"]


@pytest.mark.proves("F95")
async def test_files_of_others_are_not_read_again(tmp_path: Path) -> None:
    async with ground(tmp_path, LIBRARY) as work:
        await work.caught_up()
        before = len(requests(work))
        work.write("notes.txt", "anything")
        assert await work.errors(MAIN) == []
        assert requests(work)[before:] == []


@pytest.mark.proves("F95", "P7")
@pytest.mark.parametrize("said", [{"success": False, "message": "no"}, {"type": "noServer"}, None])
async def test_a_server_that_does_not_read_again_is_started_anew(said: object, tmp_path: Path) -> None:
    refusals = list[object]()
    async with ground(tmp_path, LIBRARY, answer=lambda one: refusals.pop() if refusals else does(one)) as work:
        await work.caught_up()
        refusals.append(said)
        work.write(LIBRARY, WRONG)
        assert await work.errors(MAIN) == ["library.ts is wrong"]
        assert len(work.servers) == 2


class TestInVirtualTime:
    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, Any]]:
        return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}

    @pytest.mark.proves("F95", "P7")
    async def test_while_a_server_is_too_busy_to_read_again_there_is_no_verdict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def busy(_vitals: FakeVitals, _pid: int) -> float:
            return anyio.current_time()

        # One that uses no processor either is taken for hung, and started anew.
        monkeypatch.setattr(FakeVitals, "cpu_seconds", busy)
        watcher, is_busy = FakeWatcher(), True

        def respond(request: str) -> object:
            return SILENCE if is_busy else does(request)

        async with ground(tmp_path, LIBRARY, answer=respond, watch=watcher.opened, seconds=math.inf) as work:
            work.write(LIBRARY, WRONG)
            watcher.find(written(work.root / LIBRARY))
            answer = await work.check(MAIN)
            assert answer.meta.state is State.UNAVAILABLE
            assert answer.meta.reason == "vtsls: the server has not answered"
            is_busy = False
            assert await work.errors(MAIN) == ["library.ts is wrong"]
            assert len(work.servers) == 1
