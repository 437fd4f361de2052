"""Starts language servers on Windows, each in a job: the system ends all that is in a job with its last handle.

We hold the only handle, so however we die the whole tree dies, without a supervisor. A process is in the job before its
first instruction, and what it starts cannot leave. There is no SIGTERM: a tree that ignores `exit` is ended.

Pipes cannot be waited for there, only read and written, so each has a thread while it is at it. `tools/wine.py` runs
what shows it with Windows' Python.
"""

import sys

if sys.platform != "win32":
    raise ImportError("jobs are Windows'")

import ctypes
import math
import os
import struct
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from pilotfish.system.pipes import ThreadedEnd
from pilotfish.system.ports import Exit, Launch, Process
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.windows import command_line

CREATE_SUSPENDED = 0x4
PROCESS_ALL_ACCESS, SYNCHRONIZE = 0x1FFFFF, 0x100000
EXTENDED_LIMITS, PROCESS_IDS = 9, 3
"""What is set and asked of a job."""
KILL_ON_CLOSE = 0x2000
DEATH_MILLISECONDS = 5_000
MOST_PROCESSES = 1_000
TAIL_BYTES = 64 * 1024
TAIL_LINES = 20
"""As `system.process` has them."""

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = _kernel.OpenProcess.restype = ctypes.c_void_p


class ProcessJob:
    """One job. `close` ends everything in it."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p(_checked(_kernel.CreateJobObjectW(None, None)))
        # Two times, the flags, and 120 bytes of limits that are not set: JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
        limits = struct.pack("=qqI124x", 0, 0, KILL_ON_CLOSE)
        _checked(_kernel.SetInformationJobObject(self._handle, EXTENDED_LIMITS, limits, len(limits)))

    def start(self, pid: int) -> None:
        """Take in a process that is suspended, and let it run."""
        process = ctypes.c_void_p(_checked(_kernel.OpenProcess(PROCESS_ALL_ACCESS, 0, pid)))
        try:
            _checked(_kernel.AssignProcessToJobObject(self._handle, process))
            ctypes.WinDLL("ntdll").NtResumeProcess(process)
        finally:
            _kernel.CloseHandle(process)

    def kill(self) -> None:
        _kernel.TerminateJobObject(self._handle, 1)

    def kill_and_wait(self) -> None:
        """End what is left, and wait until it is gone. Blocks."""
        self.kill()
        for pid in self.processes():
            if process := _kernel.OpenProcess(SYNCHRONIZE, 0, pid):
                _kernel.WaitForSingleObject(ctypes.c_void_p(process), DEATH_MILLISECONDS)
                _kernel.CloseHandle(ctypes.c_void_p(process))

    def processes(self) -> list[int]:
        found = (ctypes.c_uint64 * (1 + MOST_PROCESSES))()  # two numbers of 32 bits, and the list
        if not _kernel.QueryInformationJobObject(self._handle, PROCESS_IDS, found, ctypes.sizeof(found), None):
            return []
        return list(found[1 : 1 + (found[0] >> 32)])

    def close(self) -> None:
        _kernel.CloseHandle(self._handle)


def _checked(result: int | None) -> int:
    if not result:
        raise ctypes.WinError(ctypes.get_last_error())
    return result


@asynccontextmanager
async def spawn_in_job(
    launch: Launch, write_stall_seconds: float, failed: Callable[[Launch, str, int], Exception]
) -> AsyncGenerator[Process]:
    """The `Spawner` port. `failed` says what it means that starting failed at a stage, with this error number."""
    job = ProcessJob()
    try:
        process = JobProcess(launch, job, write_stall_seconds)
    except OSError as error:
        job.close()
        # What was missing: Windows says the same of both.
        stage = "program" if os.path.isdir(launch.cwd) else "folder"  # noqa: ASYNC240 - one look, at the end
        raise failed(launch, stage, error.errno or 0) from error
    async with owned_tasks() as tasks:
        tasks.start_soon(process.drain_errors)
        try:
            yield process
        finally:
            await process.close()


class JobProcess:
    """The `Process` port."""

    held = ()

    def __init__(self, launch: Launch, job: ProcessJob, write_stall_seconds: float) -> None:
        self._job = job
        self._child = subprocess.Popen(
            command_line(launch.argv, os.environ),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=launch.cwd,
            env=dict(launch.environment),
            creationflags=CREATE_SUSPENDED | subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP,
        )
        try:
            job.start(self._child.pid)
        except OSError:
            self._child.kill()
            raise
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._input = ThreadedEnd(self._child.stdin, write_stall_seconds)
        self._output, self._errors = ThreadedEnd(self._child.stdout), ThreadedEnd(self._child.stderr)
        self.send, self.receive = self._input.send, self._output.receive
        self._threads = anyio.CapacityLimiter(math.inf)
        self._tail = bytearray()
        self._exit: Exit | None = None

    @property
    def pid(self) -> int:
        return self._child.pid

    def send_now(self, data: bytes) -> int:
        del data
        return 0

    async def close_input(self) -> None:
        self._input.close()

    async def kill(self) -> None:
        self._job.kill()

    terminate = kill

    async def wait(self) -> Exit:
        if self._exit is None:

            def wait() -> int:
                code = self._child.wait()
                self._job.kill_and_wait()
                return code

            code = await anyio.to_thread.run_sync(wait, abandon_on_cancel=True, limiter=self._threads)
            self._exit = Exit(code)
        return self._exit

    def stderr_tail(self) -> tuple[str, ...]:
        return tuple(self._tail.decode(errors="replace").splitlines()[-TAIL_LINES:])

    async def drain_errors(self) -> None:
        """Read standard error until its end, which comes when the tree is gone."""
        with anyio.CancelScope(shield=True):
            while data := await self._errors.receive():
                self._tail = (self._tail + data)[-TAIL_BYTES:]

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            self._job.kill()
            await self.wait()
        self._job.close()
        for end in (self._input, self._output):
            end.close()
