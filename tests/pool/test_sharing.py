"""One scripted server for several worktrees: whose turn it is, and what it is told then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure
from pilotfish.model import AbsPath
from pilotfish.pool.entry import Recipe
from pilotfish.pool.plan import Key, Limits
from pilotfish.pool.pool import Pool
from pilotfish.protocol.codec import decode
from pilotfish.protocol.globs import FileGlob, lsp_glob
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange, WatchRegistration
from pilotfish.servers.worktrees import Share
from support.servers.pools import FakeVitals, pool_on, recipe
from support.servers.script import SILENCE, Script
from support.servers.scripted import ScriptedServer

pytestmark = [pytest.mark.anyio, pytest.mark.proves("POOL-6")]


def telling(script: Script) -> None:
    """Answers with the text that it was shown, and with where it was."""
    script.capabilities = {"hoverProvider": True, "textDocumentSync": {"openClose": True, "change": 1, "save": True}}
    texts: dict[str, str] = {}

    def opened(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]

    def changed(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]

    def closed(params: Any) -> None:
        del texts[params["textDocument"]["uri"]]

    script.on("textDocument/didOpen", opened)
    script.on("textDocument/didChange", changed)
    script.on("textDocument/didClose", closed)
    script.on("textDocument/hover", lambda params: {"all": texts, "asked": params["textDocument"]["uri"]})
    script.ignore("workspace/didChangeWatchedFiles", "textDocument/didSave", "workspace/didChangeConfiguration")


PYTHON = (WatchRegistration(FileGlob(lsp_glob("**/*.py"))),)


LATE_SECONDS = 30.0
"""Within which an agent is told of what was not found in time."""


class Worktrees:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("alone", "one", "two"):
            (folder / name).mkdir()
            (folder / name / "a.py").write_text(f"{name}\n")

    def top(self, name: str) -> AbsPath:
        return AbsPath(str(self.folder / name))

    def recipe(self, name: str) -> Recipe:
        share = Share("group", self.top(name), AbsPath(str(self.folder / "shown")))
        return recipe(Key("scripted", self.top(name)), share=share, watches=PYTHON)

    async def hover(self, pool: Pool, name: str, text: str = "") -> Any:
        path = AbsPath(f"{self.top(name)}/a.py")

        async def work(session: Session) -> Any:
            session.sync(path, "python", text or name)
            return decode(
                await session.request("textDocument/hover", {"textDocument": {"uri": uri_of(path)}}), dict[str, Any]
            )

        return await pool.use(self.recipe(name), work, lease=name)


@pytest.fixture
def worktrees(tmp_path: Path) -> Worktrees:
    return Worktrees(tmp_path)


def methods(server: ScriptedServer, name: str) -> list[Any]:
    return [message.params for message in server.received if message.method == name]


async def test_the_first_has_a_server_of_its_own_and_the_others_share_one(worktrees: Worktrees) -> None:
    async with pool_on(telling, telling) as (pool, servers):
        for name in ("alone", "one", "two", "one"):
            uri = f"{uri_of(worktrees.top(name))}/a.py"
            assert await worktrees.hover(pool, name) == {"all": {uri: name}, "asked": uri}
        assert len(servers) == 2
        (begun,) = methods(servers[1], "initialize")
        assert begun["rootUri"] == uri_of(AbsPath(str(worktrees.folder / "shown")))


async def test_a_turn_shows_the_files_that_differ(worktrees: Worktrees) -> None:
    shown = worktrees.folder / "shown" / "a.py"
    async with pool_on(telling, telling) as (pool, _):
        await worktrees.hover(pool, "alone")
        for name in ("one", "two", "one"):
            await worktrees.hover(pool, name)
            assert shown.read_text() == f"{name}\n"
        (worktrees.folder / "two" / "a.py").write_text("other\n")
        await worktrees.hover(pool, "two")
        assert shown.read_text() == "other\n"
    assert not shown.exists()


async def test_a_worktree_waits_for_the_end_of_the_turn_of_another(worktrees: Worktrees) -> None:
    order: list[str] = []

    async def slow(session: Session) -> None:
        order.append("one begins")
        await anyio.sleep(3)
        order.append("one ends")

    async with pool_on(telling, telling) as (pool, _):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: pool.use(worktrees.recipe("one"), slow, lease="one"))
            await anyio.sleep(1)
            # What has its turn already goes on beside it.
            await worktrees.hover(pool, "one", "two texts")
            order.append("one again")
            await worktrees.hover(pool, "two")
            order.append("two")
        assert order == ["one begins", "one again", "one ends", "two"]


async def test_a_text_that_changes_while_another_has_its_turn_is_shown_at_the_next_one(worktrees: Worktrees) -> None:
    async with pool_on(telling, telling) as (pool, servers):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        session = pool.entries()[Key("scripted", worktrees.top("one"))].session
        assert session is not None
        before = len(servers[1].received)
        session.sync(AbsPath(f"{worktrees.top('one')}/a.py"), "python", "meanwhile")
        await anyio.sleep(1)
        assert len(servers[1].received) == before
        assert (await worktrees.hover(pool, "one", "meanwhile"))["all"] == {
            f"{uri_of(worktrees.top('one'))}/a.py": "meanwhile"
        }


async def test_what_comes_while_a_turn_begins_is_in_it(worktrees: Worktrees, monkeypatch: pytest.MonkeyPatch) -> None:
    path, new = (AbsPath(f"{worktrees.top('one')}/{name}.py") for name in ("a", "new"))

    async def slowly(work: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
        found = work(*arguments)
        await anyio.sleep(2)
        return found

    async def ask(session: Session) -> None:
        answer = await session.request("textDocument/hover", {"textDocument": {"uri": uri_of(path)}})
        assert decode(answer, dict[str, Any])["all"] == {uri_of(path): "meanwhile"}

    async with pool_on(telling, telling) as (pool, servers):
        for name in ("alone", "one"):
            await worktrees.hover(pool, name)
        session = pool.entries()[Key("scripted", worktrees.top("one"))].session
        assert session is not None
        monkeypatch.setattr(anyio.to_thread, "run_sync", slowly)
        async with anyio.create_task_group() as tasks:
            # The turn before was of the same worktree.
            tasks.start_soon(lambda: pool.use(worktrees.recipe("one"), ask, lease="one"))
            await anyio.sleep(1)
            Path(new).write_text("new\n")
            session.tell_changes([PathChange(new, Change.CREATED)])
            session.sync(path, "python", "meanwhile")
        shown = worktrees.folder / "shown" / "new.py"
        assert shown.read_text() == "new\n"
        (told,) = methods(servers[1], "workspace/didChangeWatchedFiles")
        assert told == {"changes": [{"uri": uri_of(AbsPath(str(shown))), "type": 1}]}


async def test_a_shared_server_that_dies_is_started_again_for_each(worktrees: Worktrees) -> None:
    async with pool_on(telling) as (pool, servers):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        servers[1].leave(1)
        await anyio.sleep(1)
        for name in ("one", "two"):
            assert (await worktrees.hover(pool, name))["all"] == {f"{uri_of(worktrees.top(name))}/a.py": name}
        assert len(servers) == 3


async def test_nothing_more_begins_in_a_turn_whose_server_is_gone(worktrees: Worktrees) -> None:
    key = Key("scripted", worktrees.top("one"))
    begun: list[str] = []

    async with pool_on(telling) as (pool, servers):

        async def outliving(_session: Session) -> None:
            turn: Any = pool.entries()[key].turn
            servers[1].leave(1)
            while turn.func.__self__.failure is None:
                await anyio.sleep(0)
            async with turn(is_part=True):
                begun.append("part")

        for name in ("alone", "one"):
            await worktrees.hover(pool, name)
        with pytest.raises(Failure):
            await pool.use(worktrees.recipe("one"), outliving, lease="one", restart="never")
        assert begun == []


def with_a_link_to_itself(tree: Path) -> None:
    (tree / "link.py").symlink_to(tree / "a.py")


def with_an_environment_of_its_own(tree: Path) -> None:
    (tree / ".venv").mkdir()


@pytest.mark.parametrize("differ", [with_a_link_to_itself, with_an_environment_of_its_own])
async def test_a_worktree_that_cannot_be_shown_gets_a_server_of_its_own(
    differ: Callable[[Path], None], worktrees: Worktrees
) -> None:
    async with pool_on(telling) as (pool, servers):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        differ(worktrees.folder / "two")
        assert (await worktrees.hover(pool, "two"))["all"] == {f"{uri_of(worktrees.top('two'))}/a.py": "two"}
        assert len(servers) == 3
        assert methods(servers[2], "initialize")[0]["rootUri"] == uri_of(worktrees.top("two"))


async def test_a_shared_server_counts_once_and_whoever_joins_it_needs_no_room(worktrees: Worktrees) -> None:
    # Every scripted server has this pid: one of its own, and one for two.
    vitals = FakeVitals(memory={4242: 300.0})
    async with pool_on(telling, limits=Limits(memory_mib=650.0), vitals=vitals) as (pool, servers):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        await anyio.sleep(60)
        assert [entry.memory_mib for entry in pool.entries().values() if entry.usable] == [300.0] * 3
        assert len(servers) == 2


async def test_where_there_is_room_for_one_server_all_share_it(worktrees: Worktrees) -> None:
    vitals = FakeVitals(memory={4242: 300.0})
    async with pool_on(telling, limits=Limits(memory_mib=400.0), vitals=vitals) as (pool, servers):
        for name in ("alone", "one", "two", "alone", "one"):
            assert (await worktrees.hover(pool, name))["asked"] == f"{uri_of(worktrees.top(name))}/a.py"
        assert len(servers) == 2
        assert [server.gone for server in servers] == [True, False]


async def test_a_worktree_that_the_others_have_left_has_a_server_where_it_is(worktrees: Worktrees) -> None:
    async with pool_on(telling) as (pool, servers):
        await worktrees.hover(pool, "alone")
        pool.release("alone")
        await anyio.sleep(1000)
        await worktrees.hover(pool, "one")
        assert methods(servers[1], "initialize")[0]["rootUri"] == uri_of(worktrees.top("one"))


async def test_an_edit_keeps_its_turn_and_goes_before_what_nobody_waits_for(worktrees: Worktrees) -> None:
    order: list[str] = []

    async def use(pool: Pool, name: str, said: str, seconds: float = 0.5) -> None:
        async def work(_session: Session) -> None:
            order.append(said)
            await anyio.sleep(seconds)

        await pool.use(worktrees.recipe(name), work, lease=name)

    async with pool_on(telling, telling) as (pool, _):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, pool, "one", "sweep")
            await anyio.sleep(0.1)
            for number in range(3):
                tasks.start_soon(use, pool, "one", f"sweep {number}")
            with pool.serving("two"):
                for part in ("edit", "its other files"):
                    await use(pool, "two", part)
                    await anyio.sleep(0.5)
        assert order[:3] == ["sweep", "edit", "its other files"]
        assert sorted(order[3:]) == ["sweep 0", "sweep 1", "sweep 2"]


async def test_what_is_owed_to_one_is_found_while_another_is_served_all_the_time(worktrees: Worktrees) -> None:
    async def piece(_session: Session) -> None:
        await anyio.sleep(0.5)

    async def edits(pool: Pool) -> None:
        with pool.serving("two"):
            while True:
                await pool.use(worktrees.recipe("two"), piece, lease="two")

    async with pool_on(telling, telling) as (pool, _):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edits, pool)
            await anyio.sleep(1)
            began = anyio.current_time()
            for _ in range(3):
                await pool.use(worktrees.recipe("one"), piece, lease="one")
            assert anyio.current_time() - began < LATE_SECONDS
            tasks.cancel_scope.cancel()


async def test_what_has_its_turn_asks_on_however_long_others_wait(worktrees: Worktrees) -> None:
    path = AbsPath(f"{worktrees.top('one')}/a.py")

    async def long(session: Session) -> None:
        session.sync(path, "python", "one")
        for _ in range(20):
            await session.request("textDocument/hover", {"textDocument": {"uri": uri_of(path)}})
            await anyio.sleep(1)

    async with pool_on(telling, telling) as (pool, servers):
        for name in ("alone", "one", "two"):
            await worktrees.hover(pool, name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: pool.use(worktrees.recipe("one"), long, lease="one"))
            await anyio.sleep(1)
            with pool.serving("two"):
                await worktrees.hover(pool, "two")
        assert len(servers) == 2


async def test_a_hung_request_of_one_worktree_ends_the_server_for_all(worktrees: Worktrees) -> None:
    def hanging(script: Script) -> None:
        telling(script)
        script.on("textDocument/hover", lambda params: SILENCE)

    async with pool_on(telling, hanging, telling) as (pool, servers):
        await worktrees.hover(pool, "alone")
        with pytest.raises(Failure):
            await worktrees.hover(pool, "one")
        await anyio.sleep(10)
        assert servers[1].gone
        assert (await worktrees.hover(pool, "two"))["asked"] == f"{uri_of(worktrees.top('two'))}/a.py"


async def test_a_start_that_fails_is_told_as_the_failure_that_it_is(worktrees: Worktrees) -> None:
    def failing(script: Script) -> None:
        assert isinstance(script, ScriptedServer)
        script.on("initialize", lambda params: script.leave(3))

    async with pool_on(telling, failing) as (pool, _):
        await worktrees.hover(pool, "alone")
        with pytest.raises(Failure) as failed:
            await worktrees.hover(pool, "one")
        assert failed.value.code is Code.SERVER_START_FAILED
