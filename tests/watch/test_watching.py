"""What reaches a server of changes on disk: real files and a real watcher, servers by script."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish import api
from pilotfish.client.session import Session
from pilotfish.host.ports import WatchHealth
from pilotfish.host.watcher import open_watcher
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of
from support.importer import EVERYTHING, WATCHED_FILES, importer, importing, register, unregister
from support.script import Message
from support.scripted import Scenario, ScriptedServer
from support.scripted_service import ScriptedService, scripted_service
from support.short_of import FewWatches
from support.watched import BOUND_SECONDS

pytestmark = pytest.mark.anyio

MAIN = "main.fake"


class Ground:
    """A service with one client, and a workspace whose main file imports things."""

    def __init__(self, scripted: ScriptedService) -> None:
        self.service = scripted.service
        self.servers = scripted.servers
        self.root = scripted.root
        self.client = scripted.session()

    @property
    def server(self) -> ScriptedServer:
        return self.servers[-1]

    def write(self, name: str, text: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def errors(self, name: str = MAIN) -> list[str]:
        """What the servers say about a file now."""
        answer = await self.service.check(self.client, [name])
        assert answer.meta.state is api.State.FRESH, answer
        assert answer.data is not None
        return [diagnostic.message for diagnostic in answer.data[name]]

    def told(self, server: ScriptedServer | None = None) -> list[list[str]]:
        """Every notification of changes, as `created a`, `changed b`."""
        return [self._changes(one) for one in (server or self.server).received if one.method == WATCHED_FILES]

    def _changes(self, message: Message) -> list[str]:
        kinds = {1: "created", 2: "changed", 3: "deleted"}
        return [
            f"{kinds[change['type']]} {os.path.relpath(str(path_of(change['uri'])), self.root)}"
            for change in message.params["changes"]
        ]

    def methods(self) -> list[str]:
        """What the last server was sent about documents, in order."""
        return [one.method for one in self.server.received if one.method.startswith("textDocument/did")]

    @property
    def session(self) -> Session:
        (entry,) = self.service.pool.entries().values()
        assert entry.session is not None
        return entry.session

    @property
    def health(self) -> WatchHealth | None:
        return self.service.watching.health(AbsPath(str(self.root)))

    async def watches(self) -> None:
        """Wait until the watcher covers what the servers have registered."""
        with anyio.fail_after(BOUND_SECONDS):
            while not (self.health and self.health.watched):
                await self.service.watching.catch_up(lambda root: True)
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def ground(
    folder: Path, *scenarios: Scenario, watch: Any = open_watcher, config: dict[str, Any] | None = None
) -> AsyncGenerator[Ground]:
    with anyio.fail_after(BOUND_SECONDS):
        async with scripted_service(folder, *(scenarios or (importer,)), watch=watch, config=config) as scripted:
            yield Ground(scripted)


# --- The next answer ----------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-1", "WATCH-2", "C73", "DOC-4")
async def test_a_module_made_in_mid_session_is_known_to_the_next_answer_and_one_deleted_is_not(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later.fake\n")
        for _ in range(5):
            assert await work.errors() == ["there is no later.fake"]
            work.write("later.fake")
            assert await work.errors() == []
            (work.root / "later.fake").unlink()


@pytest.mark.proves("C73")
async def test_with_registrations_ignored_the_module_stays_unknown_for_ever(tmp_path: Path) -> None:
    """The fault that all this is for: nothing tells the server, and it answers from what it knew."""
    async with ground(tmp_path, watch=None) as work:
        work.write(MAIN, "import later.fake\n")
        assert await work.errors() == ["there is no later.fake"]
        work.write("later.fake")
        assert await work.errors() == ["there is no later.fake"]


@pytest.mark.proves("WATCH-1", "C73")
async def test_a_server_that_registers_nothing_is_told_of_its_own_kind_of_files(tmp_path: Path) -> None:
    async with ground(tmp_path, importing(())) as work:
        work.write(MAIN, "import later.fake\nimport other.txt\n")
        assert len(await work.errors()) == 2
        work.write("other.txt")
        work.write("later.fake")
        assert await work.errors() == ["there is no other.txt"]


@pytest.mark.proves("WATCH-2", "C111", "F63")
async def test_a_branch_switch_is_one_notification_for_each_server(tmp_path: Path) -> None:
    servers = {name: {"command": [sys.executable], "extensions": [f".{name}"]} for name in ("fake", "other")}
    async with ground(tmp_path, config={"lsp": servers}) as work:
        names = [f"folder{number % 50}/file{number}.txt" for number in range(5_000)]
        for name in names:
            work.write(name, "before")
        work.write(MAIN)
        work.write("main.other")
        await work.errors()
        await work.errors("main.other")
        assert len(work.servers) == 2
        await work.watches()
        before = [len(work.told(server)) for server in work.servers]
        for name in names:
            (work.root / name).unlink()
            work.write(name, "after")
        await work.errors()
        for server, count in zip(work.servers, before, strict=True):
            (last,) = work.told(server)[count:]
            assert sorted(last) == sorted(f"changed {name}" for name in names)


@pytest.mark.proves("C111")
async def test_changes_that_nobody_asks_about_are_told_as_well_and_together(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN)
        await work.errors()
        await work.watches()
        before = len(work.told())
        for number in range(20):
            work.write(f"folder/{number}")
        await work.server.until(WATCHED_FILES, before + 1)
        assert len(work.told()[-1]) == 21


# --- Registrations ------------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-1", "C110")
async def test_registrations_are_added_taken_back_and_restricted_to_their_kinds(tmp_path: Path) -> None:
    async with ground(tmp_path, importing(({"globPattern": "**/*.a"},))) as work:
        work.write(MAIN)
        await work.errors()
        await work.watches()

        async def told_of(*names: str) -> list[str]:
            before = len(work.told())
            for name in names:
                work.write(name)
            await work.service.watching.catch_up(lambda root: True)
            return sorted(change for batch in work.told()[before:] for change in batch)

        assert await told_of("x.a", "x.b") == ["created x.a"]
        await work.server.answered(register(work.server, {"globPattern": "**/*.b", "kind": 2}, identifier="more"))
        await work.service.watching.catch_up(lambda root: True)
        assert await told_of("y.a", "y.b") == ["created y.a"]
        assert await told_of("y.a", "y.b") == ["changed y.a", "changed y.b"]
        await work.server.answered(unregister(work.server))
        assert await told_of("y.a", "y.b") == ["changed y.b"]


@pytest.mark.proves("C110")
@pytest.mark.parametrize("as_folder", [False, True], ids=["a URI", "a workspace folder"])
async def test_a_base_outside_the_root_is_watched(tmp_path: Path, as_folder: bool) -> None:
    library = tmp_path / "library"
    library.mkdir()
    base: Any = {"uri": library.as_uri(), "name": "library"} if as_folder else library.as_uri()
    watcher = {"globPattern": {"baseUri": base, "pattern": "**/*.py"}}
    async with ground(tmp_path, importing((watcher,))) as work:
        work.write(MAIN)
        await work.errors()
        await work.watches()
        before = len(work.told())
        (library / "module.py").touch()
        (library / "module.txt").touch()
        await work.errors()
        assert work.told()[before:] == [["created ../library/module.py"]]


@pytest.mark.proves("WATCH-2")
async def test_what_was_made_before_a_late_registration_is_told_after_it(tmp_path: Path) -> None:
    async with ground(tmp_path, importing(())) as work:
        work.write(MAIN, "import sourcemap.json\n")
        assert await work.errors() == ["there is no sourcemap.json"]
        work.write("sourcemap.json")
        await work.server.answered(register(work.server, *EVERYTHING))
        assert await work.errors() == []


# --- Open documents -----------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-5", "C73", "DOC-4")
async def test_an_open_document_takes_the_text_that_somebody_wrote(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later\n")
        work.write("other.fake")
        await work.errors()
        await work.errors("other.fake")
        await work.watches()
        work.write(MAIN, "import never\n")
        change = await work.server.until("textDocument/didChange")
        assert change.params["contentChanges"] == [{"text": "import never\n"}]
        (work.root / "new~").write_text("import ever\n")
        (work.root / "new~").replace(work.root / MAIN)
        await work.errors("other.fake")
        sent = [one.params for one in work.server.received if one.method == "textDocument/didChange"]
        assert sent[-1]["contentChanges"] == [{"text": "import ever\n"}]


@pytest.mark.proves("WATCH-5", "F54")
async def test_a_document_whose_file_is_gone_is_closed_and_what_was_said_of_it_forgotten(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later\n")
        work.write("other.fake")
        await work.errors()
        await work.errors("other.fake")
        await work.watches()
        path = AbsPath(str(work.root / MAIN))
        assert work.session.reports.of(path)
        (work.root / MAIN).unlink()
        await work.errors("other.fake")
        assert work.methods()[-1] == "textDocument/didClose"
        assert not work.session.reports.of(path)
        assert not work.session.documents.is_open(path)


@pytest.mark.proves("WATCH-5", "DOC-4")
async def test_a_document_where_nothing_is_registered_follows_its_file_too(tmp_path: Path) -> None:
    async with ground(tmp_path, importing(({"globPattern": "*.json"},))) as work:
        work.write(".gitignore", "ignored\n")
        work.write(f"ignored/{MAIN}", "import a\n")
        work.write("other.fake")
        await work.errors(f"ignored/{MAIN}")
        work.write(f"ignored/{MAIN}", "import b\n")
        await work.errors("other.fake")
        change = await work.server.until("textDocument/didChange")
        assert change.params["contentChanges"] == [{"text": "import b\n"}]


@pytest.mark.proves("WATCH-2")
async def test_the_file_of_a_document_that_is_gone_and_comes_back_is_the_same_document(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later\n")
        await work.errors()
        await work.watches()
        (work.root / MAIN).unlink()
        work.write(MAIN, "import never\n")
        assert await work.errors() == ["there is no never"]
        assert "textDocument/didClose" not in work.methods()


# --- Life ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("F88")
async def test_a_root_is_watched_as_long_as_a_server_runs_for_it(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN)
        await work.errors()
        await work.watches()
        await work.service.pool.stop_all()
        with anyio.fail_after(BOUND_SECONDS):
            while work.health is not None:
                await anyio.lowlevel.checkpoint()
        await work.errors()
        await work.watches()
        assert len(work.servers) == 2


@pytest.mark.proves("F59", "P25", "WATCH-4")
async def test_status_says_that_watching_is_degraded_and_answers_are_right_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilotfish.host.inotify._inotify", lambda: FewWatches(0))
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later.fake\n")
        assert await work.errors() == ["there is no later.fake"]
        with anyio.fail_after(BOUND_SECONDS):
            while not (work.health and work.health.polled):
                await work.errors()
        (row,) = [row for row in work.service.status(work.client).rows if row.server_id == "scripted"]
        assert row.watching is not None
        assert (row.watching.state, row.watching.polled) == ("degraded", 1)
        assert "max_user_watches" in (row.watching.reason or "")
        work.write("later.fake")
        assert await work.errors() == []


@pytest.mark.proves("F59")
async def test_without_a_watcher_everything_else_goes_on_and_status_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Any:
        raise OSError("no such luck")

    async with ground(tmp_path, watch=broken) as work:
        work.write(MAIN, "import later.fake\n")
        assert await work.errors() == ["there is no later.fake"]
        with anyio.fail_after(BOUND_SECONDS):
            while work.health is None or "no such luck" not in (work.health.degraded or ""):
                await anyio.lowlevel.checkpoint()
        assert await work.errors() == ["there is no later.fake"]
    assert "watching failed" in caplog.text


@pytest.mark.proves("WATCH-2")
async def test_a_root_that_is_replaced_is_known_anew(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import old.fake\nimport new.fake\n")
        work.write("old.fake")
        assert await work.errors() == ["there is no new.fake"]
        await work.watches()
        other = tmp_path / "other"
        shutil.copytree(work.root, other)
        (other / "old.fake").rename(other / "new.fake")
        work.root.rename(tmp_path / "away")
        other.rename(work.root)
        assert await work.errors() == ["there is no old.fake"]
