"""One question after the other by way of the daemon, without an event loop."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation
from pilotfish.errors import Bug, Code
from pilotfish.surfaces.cli.daemon_workspace import DaemonWorkspace, run_without_loop
from support.daemon.in_process import Alive, alive
from support.daemon.scenarios import mute

pytestmark = [pytest.mark.anyio, pytest.mark.proves("CLI-1")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked(here: Alive, question: Callable[[DaemonWorkspace], Awaitable[Any]]) -> Any:
    """What a program without a loop hears."""

    def program() -> Any:
        async def inside() -> Any:
            async with DaemonWorkspace(here.link()) as workspace:
                return await question(workspace)

        return run_without_loop(inside)

    return await here.in_thread(program)


async def test_every_kind_of_question_is_answered(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        (here.root / "a.x").write_text("bad\n")
        assert await asked(here, _root) == str(here.root)
        feedback = await asked(here, lambda workspace: workspace.after_edit("a.x", kind="write", only_new=False))
        assert (feedback.state, "bad word" in feedback.text) == (State.FRESH, True)
        checked = await asked(here, lambda workspace: workspace.check("a.x", texts={"a.x": "good\n"}))
        assert (checked.meta.state, checked.data) == (State.FRESH, {"a.x": ()})
        place = {"filePath": "a.x", "line": 1, "character": 1}
        found = await asked(here, lambda workspace: workspace.ask(Operation.DEFINITION, place))
        assert [place.path for place in found.data] == ["a.x"]
        status = await asked(here, lambda workspace: workspace.snapshot())
        assert [row.server_id for row in status.rows if row.connected_roots] == ["toy"]
        unserved = await asked(here, lambda workspace: workspace.unserved(["a.x", "a.unknown", "a.go"]))
        assert (unserved.keys(), unserved["a.unknown"]) == ({"a.unknown", "a.go"}, None)
        assert (unserved["a.go"].code, unserved["a.go"].server_id) == (Code.SERVER_MISSING, "gopls")
        assert len(here.servers) == 1


async def _root(workspace: DaemonWorkspace) -> str:
    return workspace.root


async def test_what_waits_for_a_loop_is_a_fault_and_not_a_hang() -> None:
    with pytest.raises(Bug):
        run_without_loop(lambda: asyncio.sleep(0))


@pytest.mark.proves("F72")
async def test_an_interrupt_gives_the_question_up_at_the_server(tmp_path: Path) -> None:
    async with alive(tmp_path, mute) as here:
        (here.root / "a.x").write_text("good\n")
        argv = [sys.executable, "-m", "pilotfish", "definition", "a.x:1:1"]
        process = subprocess.Popen(argv, cwd=here.root, env=here.environment, stderr=subprocess.PIPE)
        with anyio.fail_after(50):
            while not here.servers:
                await anyio.sleep(0.01)
            while not any(message.method == "textDocument/definition" for message in here.servers[0].received):
                await anyio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = await anyio.to_thread.run_sync(process.communicate)
        assert (process.returncode, said.strip()) == (130, b"Interrupted.")
        with anyio.fail_after(5):
            while not here.servers[0].cancelled:
                await anyio.sleep(0)
