"""A workspace by way of the daemon answers as one in this process does."""

from pathlib import Path

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc.async_client import open_remote
from pilotfish.ipc.client import Introduction, Terms
from pilotfish.surfaces.daemon_stream import open_upgraded
from support.daemon.in_process import alive
from support.daemon.scenarios import mute

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.proves("CLI-1")
async def test_every_kind_of_question_is_answered(tmp_path: Path) -> None:
    async with alive(tmp_path) as here, open_remote(str(here.root), str(here.root), terms=here.terms) as workspace:
        (here.root / "a.x").write_text("bad\n")
        feedback = await workspace.after_edit("a.x", kind="write")
        assert (feedback.state, "bad word" in feedback.text) == (State.FRESH, True)
        checked = await workspace.check("a.x", texts={"a.x": "good\n"})
        assert (checked.meta.state, checked.data) == (State.FRESH, {"a.x": ()})
        found = await workspace.definition("a.x", 1, 1)
        assert [place.path for place in found.data or ()] == ["a.x"]
        refused = await workspace.ask(Operation.HOVER, {"filePath": "a.x", "colour": "red"})
        assert (refused.ok, refused.errors[0].code) == (False, Code.INVALID_INPUT)
        assert workspace.root == str(here.root)
        status = await workspace.snapshot()
        assert [row.server_id for row in status.rows if row.connected_roots] == ["toy"]
        unserved = await workspace.unserved(["a.x", "a.unknown", "a.go"])
        assert (unserved.keys(), unserved["a.unknown"]) == ({"a.unknown", "a.go"}, None)
        lacking = unserved["a.go"]
        assert lacking is not None
        assert (lacking.code, lacking.server_id) == (Code.SERVER_MISSING, "gopls")
    assert len(here.servers) == 1


@pytest.mark.proves("F72")
async def test_a_question_that_is_given_up_is_given_up_at_the_server(tmp_path: Path) -> None:
    async with (
        alive(tmp_path, mute) as here,
        open_remote(str(here.root), str(here.root), terms=here.terms) as workspace,
    ):
        (here.root / "a.x").write_text("good\n")
        await workspace.check("a.x")
        (server,) = here.servers
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workspace.definition, "a.x", 1, 1)
            await server.until("textDocument/definition")
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            while not server.cancelled:
                await anyio.sleep(0)
        assert (await workspace.hover("a.x", 1, 1)).ok


async def test_whoever_waits_is_told_when_the_daemon_ends(tmp_path: Path) -> None:
    async with alive(tmp_path, mute) as here:
        (here.root / "a.x").write_text("good\n")
        async with open_remote(str(here.root), str(here.root), terms=here.terms) as workspace:
            await workspace.check("a.x")
            failures: list[Unavailable] = []

            async def ask() -> None:
                with pytest.raises(Unavailable) as failed:
                    await workspace.definition("a.x", 1, 1)
                failures.append(failed.value)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await here.servers[0].until("textDocument/definition")
                here.stop()
            with pytest.raises(Unavailable):
                await workspace.hover("a.x", 1, 1)
            assert [failure.code for failure in failures] == [Code.SHUTTING_DOWN]


async def test_bytes_are_carried_to_a_surface_of_the_daemon_and_back(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        said = Introduction(cwd=str(here.root))
        async with open_upgraded(said, "echo", terms=here.terms) as far:
            await far.send(b"hello")
            heard = b""
            while len(heard) < 5:
                heard += await far.receive()
            assert heard == b"HELLO"
            await far.end_sending()
            assert await far.receive() == b""


async def test_a_root_that_is_none_is_refused_and_without_a_daemon_nothing_is_answered(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        with pytest.raises(Refused) as refused:
            async with open_remote(str(tmp_path / "gone"), str(tmp_path), terms=here.terms):
                pass
        assert refused.value.code is Code.ROOT_GONE
    with pytest.raises(Unavailable) as none:
        async with open_remote(str(here.root), str(here.root), terms=Terms(here.environment, start=False)):
            pass
    assert none.value.code is Code.NOT_FOUND
