"""Trees of processes on Windows, as a program: `tools/wine.py` runs it with Windows' Python. It says what held."""

import os
import sys

import anyio
import psutil

from pilotfish.errors import Code, Failure
from pilotfish.model import AbsPath
from pilotfish.system.ports import Launch
from pilotfish.system.process import spawn

ECHO = "import sys; sys.stderr.write('hello'); sys.stderr.flush(); sys.stdout.write(sys.stdin.readline().upper())"
PARENT = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE,"
    " creationflags=0x208); print(child.pid, flush=True); input()"
)
"""Its child has no console and a group of its own: nothing but the job keeps the two together."""


def launch(*words: str, folder: str = "", program: str = sys.executable) -> Launch:
    return Launch((program, *words), AbsPath(folder or os.getcwd()), os.environ, "a server")


async def talk() -> None:
    async with spawn(launch("-c", ECHO)) as process:
        await process.send(b"what\n")
        assert (await process.receive()).strip() == b"WHAT"
        assert (await process.wait()).code == 0
    assert process.stderr_tail() == ("hello",)


async def end_with_the_block() -> None:
    async with spawn(launch("-c", PARENT)) as process:
        child = int(await process.receive())
        assert psutil.pid_exists(child)
    assert not psutil.pid_exists(child)
    assert not psutil.pid_exists(process.pid)


async def end_what_is_left_behind() -> None:
    async with spawn(launch("-c", PARENT)) as process:
        child = int(await process.receive())
        await process.close_input()
        await process.wait()
        assert not psutil.pid_exists(child)


async def say_what_is_missing() -> None:
    for wrong, code in (
        (launch(folder="Z:/gone"), Code.ROOT_GONE),
        (launch(program=r"C:\gone.exe"), Code.SERVER_MISSING),
    ):
        try:
            async with spawn(wrong):
                raise AssertionError("it was started")
        except Failure as failure:
            assert failure.code is code, failure.code  # noqa: PT017 -- a program, and no test of pytest


async def main() -> None:
    for proof in (talk, end_with_the_block, end_what_is_left_behind, say_what_is_missing):
        with anyio.fail_after(60):
            await proof()
        print("held:", proof.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    anyio.run(main)
