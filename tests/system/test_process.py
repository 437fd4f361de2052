"""How servers end, by themselves or by force, and that no process of their trees stays."""

import os
import signal
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest

from pilotfish.system import process
from pilotfish.system.ports import Exit, Process
from support.left_behind import no_task_left_behind, nothing_left_behind
from support.process_tree import alive, below, ends
from support.servers.small import ECHO, TREES, hear, line, members, running, supervisor_of, tree

__all__ = ["no_task_left_behind", "nothing_left_behind"]

pytestmark = pytest.mark.anyio


class Lost(Exception):
    """What a block of these tests raises."""


async def leave(server: Process) -> None: ...


async def fail(server: Process) -> None:
    raise Lost


async def cancel(server: Process) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await server.receive()
    raise Lost


async def kill(server: Process) -> None:
    await server.kill()
    assert await server.wait() == Exit(-signal.SIGKILL)


async def exit_alone(server: Process) -> None:
    await server.send(b".")
    assert await server.wait() == Exit(3)


async def crash(server: Process) -> None:
    os.kill(server.pid, signal.SIGKILL)
    assert await server.wait() == Exit(-signal.SIGKILL)


async def lose_supervisor(server: Process) -> None:
    os.kill(supervisor_of(server), signal.SIGKILL)
    assert await server.wait() == Exit(-signal.SIGKILL)


ENDINGS = [leave, fail, cancel, kill, exit_alone, crash, lose_supervisor]


@pytest.mark.proves("F10", "F12", "F13", "F14", "POOL-5", "C34", "C39")
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("shape", TREES)
async def test_no_process_of_a_tree_outlives_its_block(shape: str, end: Callable[[Process], Awaitable[None]]) -> None:
    pids: list[int] = []
    with suppress(Lost):
        async with running(tree(shape)) as server:
            pids = await members(server, shape)
            supervisor = supervisor_of(server)
            await end(server)
        pids.append(supervisor)
    assert all(ends(pid) for pid in pids)


@pytest.mark.proves("F13", "F16", "POOL-5", "P2")
@pytest.mark.parametrize("shape", TREES)
async def test_a_killed_supervisor_is_noticed_by_who_reads_though_others_of_the_tree_hold_the_pipes(shape: str) -> None:
    async with running(tree(shape)) as server:
        pids = await members(server, shape)
        os.kill(supervisor_of(server), signal.SIGKILL)
        assert await server.receive() == b""
        assert all(ends(pid) for pid in pids)


@pytest.mark.proves("F12", "F13", "POOL-5")
@pytest.mark.parametrize("shape", TREES)
async def test_when_wait_returns_the_whole_tree_is_gone_already(shape: str) -> None:
    async with running(tree(shape)) as server:
        pids = await members(server, shape)
        await server.send(b".")
        assert await server.wait() == Exit(3)
        assert [pid for pid in pids if alive(pid)] == []
        assert await server.receive() == b""


@pytest.mark.proves("F10", "POOL-4", "C39")
@pytest.mark.linux("elsewhere only the server's own group is asked")
async def test_terminate_asks_every_process_of_the_tree_and_ends_none_that_refuses() -> None:
    code = """
    def refuse(name):
        signal.signal(signal.SIGTERM, lambda *_: say(f"{name} refuses"))
        hold(name)
    if os.fork() == 0:
        os.setsid()
        os.fork() or refuse("grandchild")
        refuse("child")
    refuse("server")
    """
    async with running(code) as server:
        pids = [int(said.split()[1]) for said in await hear(server, 3)]
        await server.terminate()
        assert sorted(await hear(server, 3)) == ["child refuses", "grandchild refuses", "server refuses"]
        assert all(alive(pid) for pid in pids)
        await server.kill()
        assert await server.wait() == Exit(-signal.SIGKILL)
        assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.proves("POOL-4", "C39")
async def test_terminate_and_kill_are_harmless_after_the_end() -> None:
    async with running("os._exit(0)") as server:
        await server.wait()
        await server.terminate()
        await server.kill()
        await server.kill()
        await server.terminate()
        assert await server.wait() == Exit(0)


@pytest.mark.proves("F14")
async def test_daemons_that_end_while_the_server_lives_leave_no_zombie() -> None:
    code = """
    for _ in range(20):
        if os.fork() == 0:
            os.fork()
            os._exit(0)
        os.wait()
    hold("server")
    """
    async with running(code) as server:
        await line(server)
        while len(below(supervisor_of(server))) > 1:
            await anyio.lowlevel.checkpoint()


@pytest.mark.proves("F18")
async def test_a_stopped_tree_is_killed_too() -> None:
    shape = "a grandchild in its own session that ignores SIGTERM"
    async with running(tree(shape)) as server:
        pids = await members(server, shape)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        await server.kill()
        assert await server.wait() == Exit(-signal.SIGKILL)
        assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.proves("POOL-5")
async def test_leaving_the_block_is_enough_for_the_supervisor_to_end_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[str] = []
    monkeypatch.setattr(process, "END_SECONDS", 2.0)
    monkeypatch.setattr(process.subprocess.Popen, "kill", staticmethod(lambda: killed.append("supervisor")))
    shape = "a grandchild in its own session that ignores SIGTERM"
    async with running(tree(shape)) as server:
        pids = await members(server, shape)
    assert [pid for pid in pids if alive(pid)] == []
    assert killed == []


@pytest.mark.proves("POOL-5")
async def test_a_supervisor_that_is_stopped_is_killed_and_its_tree_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "END_SECONDS", 0.5)
    shape = "a daemon that started a daemon"
    async with running(tree(shape)) as server:
        pids = await members(server, shape)
        os.kill(supervisor_of(server), signal.SIGSTOP)
    assert all(ends(pid) for pid in pids)


async def test_a_supervisor_ignores_the_terminal_and_passes_sigterm_on() -> None:
    async with running("hold('server')") as server:
        await line(server)
        supervisor = supervisor_of(server)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            os.kill(supervisor, number)
        assert await server.wait() == Exit(-signal.SIGTERM)


@pytest.mark.proves("POOL-5")
@pytest.mark.linux("without a subreaper it may outrun every look")
async def test_a_tree_that_keeps_forking_is_ended() -> None:
    code = """
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
            os.write(1, b".")
    hold("server")
    """
    async with running(code) as server:
        await server.receive()
        tree = supervisor_of(server)
        await server.kill()
        while await server.receive():
            pass
        await server.wait()
    assert ends(tree)


@pytest.mark.proves("POOL-5")
async def test_a_forked_copy_of_us_that_holds_the_socket_does_not_keep_the_tree_alive() -> None:
    reading, writing = os.pipe()
    async with running("hold('server')") as server:
        await line(server)
        with warnings.catch_warnings(action="ignore"):  # idle threads of other tests are no danger to what it does
            copy = os.fork()
        if copy == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    assert ends(server.pid)
    os.close(writing)
    os.close(reading)
    os.waitpid(copy, 0)


async def test_any_number_may_wait_and_a_cancelled_wait_loses_nothing() -> None:
    found: list[Exit] = []
    async with running("os.read(0, 1); os._exit(9)") as server:

        async def wait() -> None:
            found.append(await server.wait())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
            with anyio.move_on_after(0.01) as scope:
                await server.wait()
            assert scope.cancelled_caught
            await server.send(b".")
    assert found == [Exit(9)] * 3


async def test_what_a_block_raises_is_what_the_caller_sees() -> None:
    with pytest.raises(Lost):
        async with running("hold('server')"):
            raise Lost


async def test_many_servers_run_side_by_side() -> None:
    async def one(number: int) -> None:
        async with running(ECHO) as server:
            await server.send(b"%d\n" % number)
            assert await line(server) == str(number)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(one, number)
