"""Trees of processes on Windows. `tools/wine.py` runs this with Windows' Python, which sees `win32` here."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from pilotfish.errors import Code, Failure
from pilotfish.model import AbsPath
from pilotfish.system.ports import Launch, Process
from pilotfish.system.process import spawn

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.proves("PLAT-1", "F88"),
    pytest.mark.skipif(sys.platform != "win32", reason="jobs are Windows': tools/wine.py"),
]

ECHO = "import sys; sys.stderr.write('hello'); sys.stderr.flush(); sys.stdout.write(sys.stdin.readline().upper())"
PARENT = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE,"
    " creationflags=0x208); print(child.pid, flush=True); input()"
)
"""Its child has no console of it and a group of its own: all that keeps a tree together elsewhere is missing."""


def launch(*words: str, folder: Path | None = None, program: str = sys.executable) -> Launch:
    return Launch((program, *words), AbsPath(str(folder or Path.cwd())), os.environ, "a server")


def is_there(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid)


async def test_what_is_said_reaches_the_other_end() -> None:
    with anyio.fail_after(60):
        async with spawn(launch("-c", ECHO)) as process:
            await process.send(b"what\n")
            assert (await process.receive()).strip() == b"WHAT"
            assert (await process.wait()).code == 0
        assert process.stderr_tail() == ("hello",)


async def _child_of(process: Process) -> int:
    return int(await process.receive())


async def test_a_tree_ends_with_the_block_whatever_it_does() -> None:
    with anyio.fail_after(60):
        async with spawn(launch("-c", PARENT)) as process:
            child = await _child_of(process)
            assert is_there(child)
        assert not is_there(child)
        assert not is_there(process.pid)


async def test_what_a_server_leaves_behind_is_ended_with_it() -> None:
    with anyio.fail_after(60):
        async with spawn(launch("-c", PARENT)) as process:
            child = await _child_of(process)
            await process.close_input()
            await process.wait()
            assert not is_there(child)


@pytest.mark.parametrize(
    ("folder", "program", "code"),
    [(Path("gone"), sys.executable, Code.ROOT_GONE), (None, r"C:\gone.exe", Code.SERVER_MISSING)],
)
async def test_what_cannot_be_started_says_why(folder: Path | None, program: str, code: Code) -> None:
    with pytest.raises(Failure) as caught:
        async with spawn(launch(folder=folder, program=program)):
            pass
    assert caught.value.code is code
