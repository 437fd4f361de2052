"""One question after the other by way of the daemon, without an event loop."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc.client import Introduction
from pilotfish.service.check_answer import CheckedFile, CheckEvent, CheckRequest, FilesToCheck
from pilotfish.surfaces.cli.daemon_workspace import DaemonWorkspace
from pilotfish.surfaces.daemon_stream import open_upgraded
from support.daemon.in_process import Alive, alive
from support.daemon.scenarios import mute

pytestmark = [pytest.mark.anyio, pytest.mark.proves("CLI-1")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def workspace_of(here: Alive) -> DaemonWorkspace:
    return DaemonWorkspace(Introduction(str(here.root), str(here.root)), here.terms)


async def asked(here: Alive, question: Callable[[DaemonWorkspace], Any]) -> Any:
    """What a program without a loop hears."""

    def program() -> Any:
        with workspace_of(here) as workspace:
            return question(workspace)

    return await here.in_thread(program)


async def test_every_kind_of_question_is_answered(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        (here.root / "a.x").write_text("bad\n")
        assert await asked(here, lambda workspace: workspace.root) == str(here.root)
        feedback = await asked(here, lambda workspace: workspace.after_edit("a.x", kind="write", only_new=False))
        assert (feedback.state, "bad word" in feedback.text) == (State.FRESH, True)
        checked = await asked(here, lambda workspace: workspace.check("a.x", texts={"a.x": "good\n"}))
        assert (checked.meta.state, checked.data) == (State.FRESH, {"a.x": ()})
        place = {"filePath": "a.x", "line": 1, "character": 1}
        found = await asked(here, lambda workspace: workspace.ask(Operation.DEFINITION, place))
        assert [place.path for place in found.data] == ["a.x"]
        wrong = {"filePath": "a.x", "colour": "red"}
        refused = await asked(here, lambda workspace: workspace.ask(Operation.HOVER, wrong))
        assert (refused.ok, refused.errors[0].code) == (False, Code.INVALID_INPUT)
        status = await asked(here, lambda workspace: workspace.status())
        assert [row.server_id for row in status.rows if row.connected_roots] == ["toy"]
        assert len(here.servers) == 1


async def test_a_check_of_folders_is_told_file_by_file(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        for name in ("a.x", "b.x", "c.go", "d.unknown"):
            (here.root / name).write_text("bad\n")
        heard: list[CheckEvent] = []
        answer = await asked(here, lambda workspace: workspace.check_files(CheckRequest((".",)), heard.append))
        (chosen, *checked) = heard
        assert isinstance(chosen, FilesToCheck)
        assert [os.path.basename(path) for path in chosen.files] == ["a.x", "b.x"]
        assert [(why.code, why.server_id, count) for why, count in chosen.unserved] == [
            (Code.SERVER_MISSING, "gopls", 1)
        ]
        told = {one.path: one.answer.data for one in checked if isinstance(one, CheckedFile)}
        assert told.keys() == set(chosen.files)
        assert answer.data == {name: found for data in told.values() for name, found in (data or {}).items()}
        assert (answer.meta.state, answer.errors[0].code) == (State.PARTIAL, Code.SERVER_MISSING)
        skipping = CheckRequest((".",), skip_missing=True)
        assert (await asked(here, lambda one: one.check_files(skipping, heard.append))).meta.state is State.FRESH


async def test_whoever_waits_is_told_when_the_daemon_ends(tmp_path: Path) -> None:
    async with alive(tmp_path, mute) as here:
        (here.root / "a.x").write_text("good\n")
        place = {"filePath": "a.x", "line": 1, "character": 1}

        async def ask() -> None:
            with pytest.raises(Unavailable) as failed:
                await asked(here, lambda workspace: workspace.ask(Operation.DEFINITION, place))
            assert failed.value.code is Code.SHUTTING_DOWN

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.fail_after(50):
                while not here.servers:
                    await anyio.sleep(0.01)
            await here.servers[0].until("textDocument/definition")
            here.stop()


async def test_a_root_that_is_none_is_refused_and_without_a_daemon_nothing_is_answered(tmp_path: Path) -> None:
    async with alive(tmp_path) as here:
        with pytest.raises(Refused) as refused:
            await here.in_thread(DaemonWorkspace, Introduction(str(tmp_path), str(tmp_path / "gone")), here.terms)
        assert refused.value.code is Code.ROOT_GONE
    with pytest.raises(Unavailable) as none:
        workspace_of(here)
    assert none.value.code is Code.NOT_FOUND


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
