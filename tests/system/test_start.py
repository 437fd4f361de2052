"""Starting servers: what they are given, and how a start fails."""

import errno
import os
import resource
import signal
from pathlib import Path

import anyio
import pytest

from pilotfish.errors import Bug, Code, Failure, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.system import process
from pilotfish.system.ports import Exit, Launch, Spawner
from pilotfish.system.process import spawn, start_failure
from support.left_behind import no_task_left_behind, nothing_left_behind
from support.process_tree import environment
from support.servers.small import (
    BOUND_SECONDS,
    launch,
    line,
    running,
    supervisor_of,
)

__all__ = ["no_task_left_behind", "nothing_left_behind"]

pytestmark = pytest.mark.anyio


async def run(plan: Launch) -> None:
    async with spawn(plan):
        pass


async def outcome(plan: Launch) -> Failure | None:
    try:
        await run(plan)
    except Failure as failure:
        return failure


def test_spawn_is_a_spawner() -> None:
    port: Spawner = spawn
    assert callable(port)


async def test_a_server_gets_its_arguments_folder_and_environment_and_only_a_tag_more(tmp_path: Path) -> None:
    wanted = {"LD_PRELOAD": "", "LC_ALL": "C", "NAME": "a=b", "ODD\udcff": "\udcfe ü", "PATH": "/nowhere"}
    plan = launch("hold('server')", "--stdio", "", "a b", "ü\udcff", "--", environment=wanted, cwd=str(tmp_path))
    with anyio.fail_after(BOUND_SECONDS):
        async with spawn(plan) as server:
            assert await line(server) == f"server {server.pid}"
            arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes()
            assert arguments == b"".join(os.fsencode(argument) + b"\0" for argument in plan.argv)
            assert os.readlink(f"/proc/{server.pid}/cwd") == str(tmp_path)
            given = environment(server.pid)
    assert given.pop(process.TAG).startswith(f"{os.getpid()}-")
    assert given == wanted


@pytest.mark.proves("F83")
async def test_a_server_inherits_its_standard_streams_and_no_other_descriptor() -> None:
    with open(os.devnull, "rb") as ours:
        os.set_inheritable(ours.fileno(), True)
        async with running("hold('server')") as server:
            await line(server)
            assert sorted(os.listdir(f"/proc/{server.pid}/fd")) == ["0", "1", "2"]
            assert {os.readlink(f"/proc/{supervisor_of(server)}/fd/{number}") for number in range(3)} == {os.devnull}


async def test_a_server_blocks_and_ignores_no_signal_and_leads_its_own_session() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM})
    try:
        async with running("hold('server')") as server:
            await line(server)
            status = Path(f"/proc/{server.pid}/status").read_text()
            assert (os.getpgid(server.pid), os.getsid(server.pid)) == (server.pid, server.pid)
            supervisor = supervisor_of(server)
            assert os.getsid(supervisor) == supervisor
            assert os.readlink(f"/proc/{supervisor}/cwd") == "/"
            await server.terminate()
            assert await server.wait() == Exit(-signal.SIGTERM)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    masks = dict(row.split(":\t") for row in status.splitlines() if row.startswith("Sig") and ":\t" in row)
    python_ignores = (
        1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
    )  # done by the interpreter that is the server here
    assert int(masks["SigBlk"], 16) == 0
    assert int(masks["SigIgn"], 16) & ~python_ignores == 0


@pytest.mark.proves("F15")
async def test_a_server_dies_of_sigpipe_as_a_program_expects() -> None:
    plan = Launch(["/bin/sh", "-c", "kill -PIPE $$"], AbsPath("/"), {}, "shell")
    with anyio.fail_after(BOUND_SECONDS):
        async with spawn(plan) as server:
            assert await server.wait() == Exit(-signal.SIGPIPE)


UNRUNNABLE = {
    "missing": "no such file",
    "below/a file": "not a directory",
    "not executable": "permission denied",
    "folder": "permission denied",
    "of another platform": "exec format error",
    "script without its interpreter": "interpreter or loader",
    "link to itself": "symbolic links",
}
"""Programs that cannot be run, and what the message says of each."""


def unrunnable(folder: Path) -> None:
    """Make what `UNRUNNABLE` names."""
    (folder / "below").touch()
    (folder / "not executable").write_text("#!/bin/sh\n")
    (folder / "folder").mkdir()
    (folder / "of another platform").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    (folder / "script without its interpreter").write_text("#!/no/such/interpreter\n")
    (folder / "link to itself").symlink_to("link to itself")
    for name in ("of another platform", "script without its interpreter"):
        (folder / name).chmod(0o755)


@pytest.mark.proves("F1")
@pytest.mark.parametrize("kind", UNRUNNABLE)
async def test_a_program_that_cannot_be_run_is_server_missing(tmp_path: Path, kind: str) -> None:
    unrunnable(tmp_path)
    program = tmp_path / kind
    with pytest.raises(ServerFailed) as caught:
        await run(Launch([str(program)], AbsPath("/"), {}, "pyright"))
    assert caught.value.code is Code.SERVER_MISSING
    assert caught.value.message.startswith(f"pyright cannot be run: {program}: ")
    assert UNRUNNABLE[kind] in caught.value.message
    assert caught.value.hint
    assert (caught.value.scene.server, caught.value.scene.phase) == ("pyright", "start")


@pytest.mark.proves("F55")
@pytest.mark.parametrize("name", ["gone", "file/below"])
async def test_a_folder_that_is_gone_is_root_gone(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable) as caught:
        await run(launch("", cwd=str(tmp_path / name)))
    assert caught.value.code is Code.ROOT_GONE
    assert str(tmp_path / name) in caught.value.message


@pytest.mark.proves("F62")
@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        pytest.param(launch("", "x" * 200_000), "argument list too long", id="too long"),
        pytest.param(launch("", "a\0b"), "NUL", id="NUL in an argument"),
        pytest.param(launch("", environment={"A": "a\0b"}), "NUL", id="NUL in a variable"),
        pytest.param(launch("", environment={"": "a"}), "proper name", id="nameless variable"),
        pytest.param(launch("", environment={"A=B": "a"}), "proper name", id="variable named A=B"),
    ],
)
async def test_what_the_system_will_not_start_is_server_start_failed(plan: Launch, reason: str) -> None:
    with pytest.raises(ServerFailed) as caught:
        await run(plan)
    assert caught.value.code is Code.SERVER_START_FAILED
    assert reason in caught.value.message


@pytest.mark.proves("F62")
@pytest.mark.parametrize(
    ("stage", "number"),
    [("fork", errno.EAGAIN), ("fork", errno.ENOMEM), ("folder", errno.EACCES), ("program", errno.ETXTBSY)],
)
def test_a_limit_of_the_system_is_server_start_failed(stage: str, number: int) -> None:
    failure = start_failure(launch(""), stage, number)
    assert failure.code is Code.SERVER_START_FAILED
    assert os.strerror(number).lower() in failure.message


@pytest.mark.proves("F61")
@pytest.mark.parametrize("free", range(0, 12, 2))
async def test_running_out_of_descriptors_is_a_typed_failure_and_loses_none(free: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as lowest:
        next_free = lowest.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free + free, hard))
    try:
        failure = await outcome(launch(""))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if free < 2:
        assert failure is not None
    assert failure is None or failure.code is Code.SERVER_START_FAILED


@pytest.mark.parametrize("program", ["server", "./server", "../bin/server"])
async def test_a_program_named_by_a_relative_path_is_never_run(program: str) -> None:
    with pytest.raises(Bug, match="absolute"):
        await run(Launch([program], AbsPath("/"), {}, "server"))


async def test_a_supervisor_that_breaks_is_reported_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "BOOTSTRAP", "raise SystemExit('no interpreter today')")
    with pytest.raises(ServerFailed) as caught:
        await run(launch(""))
    assert caught.value.code is Code.SERVER_START_FAILED
    assert caught.value.scene.stderr == ("no interpreter today",)


@pytest.mark.proves("F4")
async def test_a_start_that_never_comes_is_given_up_and_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "BOOTSTRAP", "import signal; signal.pause()")
    monkeypatch.setattr(process, "START_SECONDS", 0.05)
    monkeypatch.setattr(process, "END_SECONDS", 0.05)
    with pytest.raises(ServerFailed, match="did not run within"):
        await run(launch(""))


@pytest.mark.proves("C34")
async def test_a_cancelled_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "END_SECONDS", 0.05)
    monkeypatch.setattr(process, "BOOTSTRAP", "import signal; signal.pause()")
    with anyio.move_on_after(0.05) as scope:
        await run(launch(""))
    assert scope.cancelled_caught
