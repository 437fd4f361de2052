"""Starts language servers, each below a supervisor, and owns them until nothing of them is left.

Rules:
- A process lives as long as the block of `spawn`. However the block is left, the control socket is shut first, which
  makes the supervisor kill the whole tree; then the end is waited for, shielded and bounded.
- Standard error is read until the process is gone, also while everything around it is being cancelled, because a
  server whose standard error is full stops; only a tail is kept.
- A write may take long only while it makes progress. One that did not finish has torn the stream, so standard input
  is closed with it and later writes raise `BrokenPipe`.
- One reader and one writer at a time; any number may `wait`.

Fully so on Linux: `supervisor` says what each system gives. On Windows the system itself owns trees: `jobs`.
"""

import errno
import math
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress

import anyio
import anyio.to_thread

from pilotfish.errors import Bug, Code, Failure, Scene, ServerFailed, Unavailable
from pilotfish.system import calls
from pilotfish.system.pipes import End
from pilotfish.system.ports import BrokenPipe, Exit, Launch, Process
from pilotfish.system.tasks import owned_tasks

WRITE_STALL_SECONDS = 30.0
"""Single-threaded servers do not read while they compute, and on a large project that takes 10 s and more; callers
have their own, shorter time limits. A server that takes nothing for this long is not busy but stuck."""

START_SECONDS = 20.0
"""From our fork to the server's first instruction: 20 ms here, seconds on a machine that swaps."""

END_SECONDS = 5.0
"""For each rung of the forced end: the supervisor kills the tree (1 ms here); then we kill the supervisor."""

TAIL_BYTES = 64 * 1024
TAIL_LINES = 20
"""How much of standard error is kept, and shown: enough for a traceback."""

MISSING = frozenset({errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP})
"""What `execve` says of a program that is not there or cannot run here. Anything else may pass (memory, limits)."""

BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); import supervisor; supervisor.run()"
"""An imported module comes from the byte-code cache: 3 ms and 600 KB less than compiling a script at each start."""

KILLED = -9
"""How a process ends by SIGKILL."""

HINTS = {
    errno.EACCES: "Make the file executable (`chmod +x`).",
    errno.ENOEXEC: "It was built for another platform, or it is a script without a `#!` line.",
}


@asynccontextmanager
async def spawn(launch: Launch, *, write_stall_seconds: float = WRITE_STALL_SECONDS) -> AsyncGenerator[Process]:
    """Run `launch` for as long as the block lasts: the `Spawner` port."""
    if sys.platform == "win32":
        from pilotfish.system.jobs import spawn_in_job

        async with spawn_in_job(launch, write_stall_seconds, start_failure) as started:
            yield started
        return
    token = f"{os.getpid()}-{secrets.token_hex(8)}"
    order = _order(launch, token)
    process = SupervisedProcess(launch, token, write_stall_seconds)
    async with owned_tasks() as tasks:
        tasks.start_soon(process.drain_errors)
        try:
            await process.start(order)
            # What a killed supervisor leaves may hold the pipes open, and look alive, for ever.
            tasks.start_soon(process.wait)
            yield process
        finally:
            await process.close()
            tasks.cancel_scope.cancel()


class SupervisedProcess:
    """The `Process` port over a supervisor: its pipes are the server's own, its control socket is the server's life."""

    def __init__(self, launch: Launch, token: str, write_stall_seconds: float) -> None:
        self._launch = launch
        self._token = token
        self._child, self._socket = _start_supervisor(launch, token)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._control = End(self._socket, math.inf)
        self._input = End(self._child.stdin, write_stall_seconds)
        self._output, self._errors = End(self._child.stdout), End(self._child.stderr)
        self._writing = anyio.ResourceGuard("writing to")
        self._waiting = anyio.Lock()
        self._reports = b""
        self._tail = bytearray()
        self._pid: int | None = None
        self.held: tuple[str, ...] = ()
        self._exit: Exit | None = None

    @property
    def pid(self) -> int:
        if self._pid is None:
            raise Bug("a process was asked for its pid before it had started")
        return self._pid

    async def start(self, order: bytes) -> None:
        """Hand over the order and wait until the server runs; raise the typed reason when it does not."""
        with anyio.move_on_after(START_SECONDS) as scope:
            with suppress(BrokenPipe):  # then there is no report either
                await self._control.send(order)
            while b"\n" not in self._reports and await self._read_report():
                pass
        if scope.cancelled_caught:
            raise _not_started(self._launch, f"it did not run within {START_SECONDS:.0f} s")
        match self._reports.partition(b"\n")[0].decode().split():
            case ["started", pid, *held]:
                self._pid, self.held = int(pid), tuple(held)
            case ["failed", stage, number]:
                raise start_failure(self._launch, stage, int(number))
            case _:
                await self.wait()
                raise _not_started(self._launch, "its supervisor ended", self.stderr_tail())

    async def send(self, data: bytes) -> None:
        with self._writing:
            try:
                await self._input.send(data)
            except BaseException:
                self._input.close()
                raise

    def send_now(self, data: bytes) -> int:
        return self._input.send_now(data)

    async def receive(self) -> bytes:
        return await self._output.receive()

    async def close_input(self) -> None:
        self._input.close()

    async def terminate(self) -> None:
        with suppress(OSError):  # the supervisor is gone, or was asked so often that once more says nothing new
            self._socket.send(b"T")

    async def kill(self) -> None:
        # Shutting the socket is heard also where a forked copy of us still holds it; closing it would not be.
        with suppress(OSError):  # not connected: the supervisor is gone, and the tree with it
            self._socket.shutdown(socket.SHUT_WR)

    async def wait(self) -> Exit:
        async with self._waiting:
            if self._exit is None:
                while await self._read_report():
                    pass
                await _reap(self._child)
                match self._reports.decode().split()[-2:]:
                    case ["exited", code]:
                        self._exit = Exit(int(code))
                    case _:
                        # The supervisor was killed. What it can no longer end is ended from here.
                        await anyio.to_thread.run_sync(kill_strays, self._token, self._pid, abandon_on_cancel=True)
                        self._exit = Exit(KILLED)
            return self._exit

    def stderr_tail(self) -> tuple[str, ...]:
        return tuple(self._tail[-TAIL_BYTES:].decode(errors="replace").splitlines()[-TAIL_LINES:])

    async def drain_errors(self) -> None:
        """Read standard error until its end, or until `close` closes it; that bounds the shield."""
        with anyio.CancelScope(shield=True):
            while data := await self._errors.receive():
                self._tail += data
                if len(self._tail) > 2 * TAIL_BYTES:
                    del self._tail[:-TAIL_BYTES]

    async def close(self) -> None:
        """Leave nothing: no process, no zombie, no descriptor."""
        try:
            await self.kill()
            with anyio.move_on_after(END_SECONDS, shield=True) as scope:
                await self.wait()
            if scope.cancelled_caught:
                self._child.kill()
                with anyio.move_on_after(END_SECONDS, shield=True):
                    await self.wait()
        finally:
            for end in (self._input, self._output, self._errors, self._control):
                end.close()

    async def _read_report(self) -> bool:
        """Read what the supervisor reports next; False when it is gone."""
        data = await self._control.receive()
        self._reports += data
        return bool(data)


def start_failure(launch: Launch, stage: str, number: int) -> Failure:
    """What it means that starting failed at `stage` (`folder`, `program` or `fork`) with this error number."""
    program, reason = launch.argv[0], os.strerror(number).lower()
    if stage == "folder" and number in (errno.ENOENT, errno.ENOTDIR):
        return Unavailable(Code.ROOT_GONE, f"{launch.name}: its folder is gone: {launch.cwd}", scene=_scene(launch))
    if stage == "folder":
        return _not_started(launch, f"its folder {launch.cwd} cannot be entered: {reason}")
    if stage == "fork" or number not in MISSING:
        return _not_started(launch, reason)
    if number == errno.ENOENT and os.path.lexists(program):
        reason = "the interpreter or loader that it names is not installed"
    hint = HINTS.get(number, f"Install {launch.name}, or correct its `command`.")
    if number == errno.EACCES and launch.confinement is not None and os.access(program, os.X_OK):
        hint = "It, or the interpreter that it names, lies inside the workspace, which is not trusted."
    message = f"{launch.name} cannot be run: {program}: {reason}"
    return ServerFailed(Code.SERVER_MISSING, message, hint=hint, scene=_scene(launch))


def _not_started(launch: Launch, reason: str, stderr: tuple[str, ...] = ()) -> ServerFailed:
    message = f"{launch.name} could not be started: {reason}"
    return ServerFailed(Code.SERVER_START_FAILED, message, scene=_scene(launch, stderr))


def _scene(launch: Launch, stderr: tuple[str, ...] = ()) -> Scene:
    return Scene(server=launch.name, root=launch.cwd, phase="start", stderr=stderr)


def _order(launch: Launch, token: str) -> bytes:
    """The launch in the words of `supervisor.read_order`."""
    if not launch.argv or not os.path.isabs(launch.argv[0]):
        raise Bug(f"{launch.name}: its program must be an absolute path, or the project could supply it")
    environment = {**launch.environment, TAG: token}
    if any(not name or "=" in name for name in environment):
        raise _not_started(launch, "a variable of its environment has no proper name")
    variables = [f"{name}={value}" for name, value in environment.items()]
    confinement = launch.confinement
    if confinement is not None:
        # In the words of `supervisor.confined`, as variables without a name.
        for kind in ("sealed", "private", "readable", "writable"):
            variables += (f"={kind}={folder}" for folder in getattr(confinement, kind))
        variables.append(f"=network={'open' if confinement.network else 'closed'}")
        variables += ["=required="] if confinement.required else []
    fields = [launch.cwd, str(len(launch.argv)), *launch.argv, *variables]
    if any("\0" in field for field in fields):
        raise _not_started(launch, "its command, folder or environment contains a NUL character")
    body = os.fsencode("\0".join(fields))
    return b"%d\n%s" % (len(body), body)


def _start_supervisor(launch: Launch, token: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the program of `supervisor.py`, in its own session and outside every project folder."""
    try:
        with ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.enter_context(ours)
            undo.enter_context(theirs)
            control, folder = theirs.fileno(), os.path.dirname(os.path.abspath(__file__))
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOTSTRAP, folder, str(control), str(os.getpid()), launch.name],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(control,),
                start_new_session=True,
                cwd="/",
                env={**os.environ, TAG: token},
            )
            undo.pop_all()
            theirs.close()
    except OSError as error:
        raise _not_started(launch, os.strerror(error.errno or 0).lower()) from error
    return child, ours


async def _reap(child: subprocess.Popen[bytes]) -> None:
    """Collect the supervisor, which has closed its socket and is about to end."""
    if child.poll() is not None:
        return
    try:
        descriptor = calls.open_process(child.pid)
    except OSError:
        await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    child.wait()


# --- What is left of a tree whose supervisor was killed ---------------------------------------------------------------

# Found by the tag in its environment. The last resort: a supervisor that ended properly has left nothing. It looks so,
# too, where it is no subreaper: a process that left the server's group is nobody's child there. Not found are processes
# that cleared their environment or changed their user. It is not used when we are killed together with the supervisor:
# then the kernel ends the server (Linux), and what the server had started stays.

TAG = "PILOTFISH_TREE"
"""The variable every process of a tree inherits; its value is `OWNER_PID-RANDOM`, unique to one launch."""

DEATH_MILLISECONDS = 1000
"""A killed process is gone within milliseconds; one stuck in the kernel must not hold up the others."""

PASSES = 50
"""A tree that still grows after so many passes outruns us; the bound keeps the caller's thread from staying here."""


def kill_strays(token: str, group: int | None) -> None:
    """SIGKILL every process tagged with `token`, until a whole pass finds none. Blocks: call it in a thread."""
    if sys.platform != "linux" and sys.platform != "win32" and group is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    for _ in range(PASSES):
        killed = [_kill(pid) for pid in find_strays(token)]
        if not any(killed):
            return


def find_strays(token: str) -> list[int]:
    """The living processes whose environment carries the tag."""
    if sys.platform != "linux":
        return _tagged(token)
    needle, found = f"{TAG}={token}".encode(), list[int]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with (
            suppress(OSError),  # gone, or not ours to look at
            open(f"/proc/{name}/environ", "rb", buffering=0) as environment,
        ):
            found += [int(name)] if needle in environment.read().split(b"\0") else []
    return found


def _tagged(token: str) -> list[int]:
    """The same where there is no `/proc`: psutil asks the system about each process of this user."""
    import psutil

    found: list[int] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid == os.getppid():  # the supervisor, when it has this looked for
                continue
            if process.environ().get(TAG) == token and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def _kill(pid: int) -> bool:
    """Kill and wait for the death; False when there was nothing to kill."""
    if sys.platform == "win32":
        return False
    try:
        os.kill(pid, signal.SIGKILL)
        descriptor = calls.open_process(pid)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a kernel without descriptors of processes, or not ours: the next pass tells
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll(DEATH_MILLISECONDS)
    finally:
        os.close(descriptor)
    return True
