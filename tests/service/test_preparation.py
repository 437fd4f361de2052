"""What files have before an edit breaks them is found while nobody waits."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.questions import Touch
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.preparation import BUDGET_SECONDS, MAX_WAITING, SLOW_SECONDS, Preparation, Prepared
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from support.servers.complaining import silent
from support.servers.script import SILENCE, Script
from support.services.real import RealService, real_service
from support.services.scripted import SERVER, scripted_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

HERE = AbsPath("/srv/project")
ONE, TWO = (ClientSession(name, HERE, HERE) for name in ("one", "two"))


def files(workspace: Workspace, client: ClientSession, *names: str) -> list[Prepared]:
    return [Prepared(Visit(client, workspace), AbsPath(f"{HERE}/{name}")) for name in names]


class Done:
    """Writes down what was prepared, and says what follows from it."""

    def __init__(self, following: Callable[[str], Sequence[str]] = lambda _name: ()) -> None:
        self.names: list[str] = []
        self._following = following

    async def prepare(self, one: Prepared) -> Sequence[AbsPath]:
        name = Path(one.path).name
        await anyio.lowlevel.checkpoint()
        self.names.append(name)
        if name == "refused":
            raise Refused(Code.FILE_MISSING, "it is gone")
        return [AbsPath(f"{HERE}/{other}") for other in self._following(name)]


@pytest.fixture
def workspace() -> Workspace:
    """Nobody here looks into it."""
    return Workspace.__new__(Workspace)


async def test_the_first_comes_first_and_what_follows_comes_next(workspace: Workspace) -> None:
    done = Done(lambda name: ("c", "d") if name == "a" else ())
    preparation = Preparation(done.prepare)
    async with preparation.running():
        preparation.add(files(workspace, ONE, "a", "b"))
        await anyio.wait_all_tasks_blocked()
        assert done.names == ["a", "c", "d", "b"]
        preparation.add(files(workspace, ONE, "refused", "e"))
        await anyio.wait_all_tasks_blocked()
        assert done.names[4:] == ["refused", "e"]


async def test_nothing_is_begun_while_somebody_waits(workspace: Workspace) -> None:
    done = Done()
    preparation = Preparation(done.prepare)
    async with preparation.running():
        with preparation.giving_way():
            preparation.add(files(workspace, ONE, "a"))
            await anyio.wait_all_tasks_blocked()
            assert done.names == []
        await anyio.wait_all_tasks_blocked()
        assert done.names == ["a"]


@pytest.mark.parametrize(("again", "expected"), [(True, ["a", "a"]), (False, ["a"])])
async def test_what_was_interrupted_is_begun_again_unless_an_edit_came(
    *, again: bool, expected: list[str], workspace: Workspace
) -> None:
    begun = list[str]()

    async def endlessly(one: Prepared) -> Sequence[AbsPath]:
        begun.append(Path(one.path).name)
        await anyio.sleep_forever()
        return ()

    preparation = Preparation(endlessly)
    async with preparation.running():
        preparation.add(files(workspace, ONE, "a"))
        await anyio.wait_all_tasks_blocked()
        with preparation.giving_way(again=again):
            await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert begun == expected


async def test_a_client_that_is_gone_is_forgotten_and_the_queue_has_an_end(workspace: Workspace) -> None:
    done = Done()
    preparation = Preparation(done.prepare)
    async with preparation.running():
        with preparation.giving_way():
            preparation.add(files(workspace, ONE, "a"))
            preparation.add(files(workspace, TWO, *map(str, range(MAX_WAITING))))
            preparation.add(files(workspace, ONE, "b"))
            preparation.drop(ONE)
        await anyio.wait_all_tasks_blocked()
        assert done.names == [str(number) for number in range(MAX_WAITING - 1)]


async def until_known(ground: RealService, states: FileStates, path: AbsPath) -> None:
    session = ground.entry("basedpyright").session
    assert session is not None
    while not states.knows(path):
        # It is kept a moment after the server's last word.
        with anyio.move_on_after(0.1):
            await session.changed.wait()


async def test_a_second_slow_check_is_the_last_one_of_its_client(workspace: Workspace) -> None:
    done = list[str]()

    async def slowly(one: Prepared) -> Sequence[AbsPath]:
        done.append(Path(one.path).name)
        await anyio.sleep(SLOW_SECONDS * 2 if one.visit.client is ONE else SLOW_SECONDS / 2)
        return ()

    preparation = Preparation(slowly)
    async with preparation.running():
        preparation.add([*files(workspace, ONE, "a", "b", "x"), *files(workspace, TWO, "c", "d")])
        await anyio.sleep(SLOW_SECONDS * 9)
        assert done == ["a", "b", "c", "d"]
        preparation.add(files(workspace, ONE, "e", "f"))
        await anyio.sleep(SLOW_SECONDS * 9)
        assert done == ["a", "b", "c", "d", "e"]


async def test_a_client_that_only_reads_uses_servers_for_a_while(workspace: Workspace) -> None:
    done = list[str]()

    async def steadily(one: Prepared) -> Sequence[AbsPath]:
        await anyio.sleep(SLOW_SECONDS / 2)
        done.append(Path(one.path).name)
        return ()

    most = int(BUDGET_SECONDS / SLOW_SECONDS * 2) + 1
    preparation = Preparation(steadily)
    async with preparation.running():
        preparation.add(files(workspace, ONE, *map(str, range(2 * most))))
        await anyio.sleep(10 * BUDGET_SECONDS)
        assert done == [str(number) for number in range(most)]
        preparation.drop(ONE)  # It edits something.
        preparation.add(files(workspace, ONE, "g"))
        await anyio.sleep(BUDGET_SECONDS)
        assert done[most:] == ["g"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_files_that_mention_what_was_read_are_known_before_the_edit(tmp_path: Path, anyio_backend: str) -> None:
    others = {one: {"disabled": True} for one in ("ruff", "ty", "pyrefly", "pyright", "pylsp", "jedi", "typos")}
    async with real_service(tmp_path, {"lsp": others}) as ground:
        ground.write("pyproject.toml", "")
        ground.write("lib.py", "def total() -> int:\n    return 1\n")
        ground.write("other.py", "from lib import total\n\ntotal().older\n")
        ground.write("unrelated.py", "import os\n\nos.older\n")
        states = ground.service.states
        other = AbsPath(str(ground.root / "other.py"))
        with anyio.fail_after(120):
            # What is found while the watcher still notices these new files is not kept.
            while not states.knows(other):
                await ground.service.touched(Touch(("lib.py",), "read"), ground.client)
                with anyio.move_on_after(5):
                    await until_known(ground, states, other)
        assert not states.knows(AbsPath(str(ground.root / "unrelated.py")))
        ground.write("lib.py", "def sum() -> int:\n    return 1\n")
        feedback = await ground.service.touched(Touch(("lib.py",), "patch", only_new=True), ground.client)
        assert '"total" is unknown import symbol' in feedback.text
        assert "older" not in feedback.text


@pytest.mark.parametrize("by", ["edit", "read", "another"])
async def test_only_the_client_s_edit_ends_the_check_that_started_its_server(tmp_path: Path, by: str) -> None:
    """That check would stand at the server in front of the edit's own."""

    def slow_with_the_first(script: Script) -> None:
        def checked(params: Any) -> Any:
            return SILENCE if params["textDocument"]["uri"].endswith("/a.py") else {"kind": "full", "items": []}

        silent(script)
        script.capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
        script.on("textDocument/diagnostic", checked)

    python = {"lsp": {SERVER: {"command": [sys.executable], "extensions": [".py"]}}}
    async with scripted_service(tmp_path, slow_with_the_first, config=python) as scripted:
        scripted.write("a.py", "some words\n")
        client, other = scripted.session(), scripted.session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scripted.service.warm_up, client)
            with anyio.fail_after(30):
                while not scripted.servers:
                    await anyio.lowlevel.checkpoint()
            (server,) = scripted.servers
            first = await server.until("textDocument/diagnostic")
            scripted.write("b.py", "wrong\n")
            touch = Touch(("b.py",), "read" if by == "read" else "edit")
            await scripted.service.touched(touch, other if by == "another" else client)
            assert (first.id in server.cancelled) == (by == "edit")
            tasks.cancel_scope.cancel()
