"""What reaches a server of changes on disk: real files and a real watcher, servers by script."""

import os
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.model import AbsPath
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.watcher import open_watcher
from support.files.folders import IN_MEMORY
from support.servers.importer import EVERYTHING, WATCHED_FILES, importer, importing, register, unregister
from support.servers.scripted import Scenario
from support.services.watched import MAIN, WatchedService, serving, watched_service
from support.watching.short_of import FewWatches
from support.watching.watched import BOUND_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture
def in_memory() -> Iterator[Path]:
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Path(folder)


@asynccontextmanager
async def ground(
    folder: Path, *scenarios: Scenario, watch: OpenWatcher | None = open_watcher, servers: dict[str, Any] | None = None
) -> AsyncGenerator[WatchedService]:
    with anyio.fail_after(BOUND_SECONDS):
        async with watched_service(folder, *(scenarios or (importer,)), watch=watch, servers=servers) as work:
            yield work


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
async def test_a_branch_switch_is_one_notification_for_each_server(in_memory: Path) -> None:
    async with ground(in_memory, servers={"one": serving(".fake"), "two": serving(".other")}) as work:
        names = [f"folder{number % 50}/file{number}.txt" for number in range(5_000)]
        for number in range(50):
            (work.root / f"folder{number}").mkdir()
        write_all(work.root, names, "before")
        work.write(MAIN)
        work.write("main.other")
        await work.errors()
        await work.errors("main.other")
        assert len(work.servers) == 2
        await work.watches()
        before = [len(work.told(server)) for server in work.servers]
        for name in names:
            os.unlink(work.root / name)
        write_all(work.root, names, "after")
        await work.errors()
        for server, count in zip(work.servers, before, strict=True):
            (last,) = work.told(server)[count:]
            # More than the kernel keeps: all is compared, and what was written just before counts as changed once more.
            once = [told for told in last if told not in {f"changed {MAIN}", "changed main.other"}]
            assert sorted(once) == sorted(f"changed {name}" for name in names)


def write_all(root: Path, names: list[str], text: str) -> None:
    for name in names:
        with open(f"{root}/{name}", "w") as file:
            file.write(text)


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
            await work.caught_up()
            return sorted(change for batch in work.told()[before:] for change in batch)

        assert await told_of("x.a", "x.b") == ["created x.a"]
        await work.server.answered(register(work.server, {"globPattern": "**/*.b", "kind": 2}, identifier="more"))
        await work.caught_up()
        assert await told_of("y.a", "y.b") == ["created y.a"]
        assert await told_of("y.a", "y.b") == ["changed y.a", "changed y.b"]
        await work.server.answered(unregister(work.server))
        assert await told_of("y.a", "y.b") == ["changed y.b"]


@pytest.mark.proves("DIAG-15")
async def test_a_server_that_asks_for_more_makes_no_change_of_what_was_seen_before(tmp_path: Path) -> None:
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later.fake\n")
        await work.errors()
        work.write("later.fake")
        assert await work.errors() == []
        world = work.service.states.world
        await work.server.answered(register(work.server, {"globPattern": "**/*.b"}, identifier="more"))
        assert await work.errors() == []
        assert work.service.states.world == world


@pytest.mark.proves("WATCH-2")
async def test_a_server_that_asks_for_more_is_not_told_again_what_it_knows(tmp_path: Path) -> None:
    own = {"globPattern": "**/*.fake"}
    async with ground(tmp_path, importing((own,))) as work:
        work.write(MAIN)
        await work.errors()
        await work.watches()
        work.write("seen.fake")
        work.write("unseen.b")
        await work.errors()
        assert sorted(change for batch in work.told() for change in batch if "seen" in change) == ["created seen.fake"]
        before = len(work.told())
        await work.server.answered(unregister(work.server))
        await work.server.answered(register(work.server, own, {"globPattern": "**/*.b"}))
        await work.errors()
        assert work.told()[before:] == [["created unseen.b"]]


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


@pytest.mark.proves("WATCH-2", "WATCH-4")
async def test_what_was_made_where_nobody_watched_is_told_when_somebody_asks_for_it(tmp_path: Path) -> None:
    async with ground(tmp_path, importing(())) as work:
        work.write(MAIN, "import ignored/sourcemap.json\n")
        work.write(".gitignore", "ignored\n")
        assert await work.errors() == ["there is no ignored/sourcemap.json"]
        work.write("ignored/sourcemap.json")
        await work.caught_up()
        base = {"baseUri": (work.root / "ignored").as_uri(), "pattern": "*.json"}
        await work.server.answered(register(work.server, {"globPattern": base}))
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
        assert work.count("textDocument/didClose") == 1
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
        assert work.count("textDocument/didClose") == 0


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


@pytest.mark.linux("elsewhere no watch can run out")
@pytest.mark.proves("F59", "P25", "WATCH-4")
async def test_status_says_that_watching_is_degraded_and_answers_are_right_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilotfish.system.watching.inotify.Inotify", lambda: FewWatches(0))
    async with ground(tmp_path) as work:
        work.write(MAIN, "import later.fake\n")
        assert await work.errors() == ["there is no later.fake"]
        with anyio.fail_after(BOUND_SECONDS):
            while not (work.health and work.health.polled):
                await work.errors()
        watching = work.row().watching
        assert watching is not None
        assert (watching.state, watching.polled) == ("degraded", 1)
        assert "max_user_watches" in (watching.reason or "")
        work.write("later.fake")
        assert await work.errors() == []


@pytest.mark.linux("elsewhere no watch can run out")
@pytest.mark.proves("F97")
async def test_an_answer_is_partial_while_folders_without_a_watch_were_not_all_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilotfish.system.watching.inotify.Inotify", lambda: FewWatches(0))
    monkeypatch.setattr("pilotfish.system.watching.inotify.POLL_SLICE_SECONDS", -1.0)
    async with ground(tmp_path) as work:
        (work.root / "deep").mkdir()
        work.write(MAIN, "fine\n")
        await work.check(MAIN)
        with anyio.fail_after(BOUND_SECONDS):
            while (answer := await work.check(MAIN)).meta.state is not State.PARTIAL:
                await anyio.lowlevel.checkpoint()
        assert "changes on disk may not be known: no inotify watch is left" in (answer.meta.reason or "")
        monkeypatch.setattr("pilotfish.system.watching.inotify.POLL_SLICE_SECONDS", 10.0)
        assert await work.errors() == []


@pytest.mark.proves("F59", "F97")
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
        answer = await work.check(MAIN)
        assert answer.meta.state is State.PARTIAL
        assert "there is no later.fake" in str(answer.data)
        assert answer.meta.reason == "importer: changes on disk may not be known: watching failed: no such luck"
    assert "watching failed" in caplog.text


@pytest.mark.proves("F59")
async def test_a_watcher_that_failed_is_tried_again_when_the_next_server_starts(tmp_path: Path) -> None:
    failures = iter([OSError("no such luck")])

    def at_first_broken() -> Any:
        for failure in failures:
            raise failure
        return open_watcher()

    servers = {"one": serving(".fake"), "two": serving(".other")}
    async with ground(tmp_path, watch=at_first_broken, servers=servers) as work:
        work.write(MAIN, "import later.fake\n")
        work.write("main.other")
        await work.errors()
        with anyio.fail_after(BOUND_SECONDS):
            while work.health is None or "no such luck" not in (work.health.degraded or ""):
                await anyio.lowlevel.checkpoint()
        await work.errors("main.other")
        await work.watches()
        work.write("later.fake")
        assert await work.errors() == []


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
