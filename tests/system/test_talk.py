"""Talking to servers that run: both pipes, standard error, and what a server may do to each."""

import asyncio
import os
import signal
import tracemalloc
from io import FileIO

import anyio
import anyio.lowlevel
import pytest
import trio.testing

from pilotfish.system import process
from pilotfish.system.pipes import READ_BYTES, End
from pilotfish.system.ports import BrokenPipe, Exit, Stalled
from support.left_behind import no_task_left_behind, nothing_left_behind
from support.process_tree import alive
from support.servers.small import ECHO, line, running

__all__ = ["no_task_left_behind", "nothing_left_behind"]

pytestmark = pytest.mark.anyio


async def test_five_megabytes_come_back_as_they_went() -> None:
    sent = os.urandom(5_000_000)
    heard = bytearray()
    async with running(ECHO) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.send, sent)
        while len(heard) < len(sent):
            heard += await server.receive()
    assert heard == sent


@pytest.mark.proves("F2", "F6")
@pytest.mark.parametrize("code", [0, 1, 7, 255])
async def test_a_server_that_exits_at_once_gives_its_code_and_last_words(code: int) -> None:
    async with running(f"os.write(1, b'out'); os.write(2, b'why\\n'); os._exit({code})") as server:
        assert await server.wait() == Exit(code)
        assert await server.receive() == b"out"
        assert await server.receive() == b""
        assert server.stderr_tail() == ("why",)
        assert await server.wait() == Exit(code)


@pytest.mark.proves("F6", "F9")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGTERM])
async def test_a_server_that_dies_of_a_signal_gives_its_number(number: signal.Signals) -> None:
    async with running(f"os.kill(os.getpid(), {number:d})") as server:
        ended = await server.wait()
    assert ended == Exit(-number)
    assert ended.signal == number


@pytest.mark.proves("F16", "C44")
async def test_standard_output_that_is_closed_is_an_end_though_the_server_lives() -> None:
    async with running("os.close(1); os.read(0, 1); os._exit(4)") as server:
        assert [await server.receive() for _ in range(3)] == [b"", b"", b""]
        assert alive(server.pid)
        await server.send(b".")
        assert await server.wait() == Exit(4)


@pytest.mark.proves("F15")
async def test_writing_to_a_server_that_closed_its_input_is_a_broken_pipe_and_reading_goes_on() -> None:
    code = """
    os.close(0)
    signal.signal(signal.SIGTERM, lambda *_: say("asked"))
    hold("server")
    """
    async with running(code) as server:
        await line(server)
        with pytest.raises(BrokenPipe):
            await server.send(b"x")
        with pytest.raises(BrokenPipe):
            await server.send(b"y")
        await server.close_input()
        await server.terminate()
        assert await line(server) == "asked"


async def test_closing_the_input_is_an_end_of_file_and_may_be_done_twice() -> None:
    async with running(ECHO + "os._exit(6)") as server:
        await server.close_input()
        await server.close_input()
        assert await server.wait() == Exit(6)
        with pytest.raises(BrokenPipe):
            await server.send(b"late")


async def test_closing_the_input_breaks_a_write_that_waits() -> None:
    async with running("hold('server')") as server, anyio.create_task_group() as tasks:
        await line(server)
        broken = anyio.Event()

        async def write() -> None:
            with pytest.raises(BrokenPipe):
                await server.send(bytes(10_000_000))
            broken.set()

        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        await server.close_input()
        await broken.wait()


@pytest.mark.proves("F18", "F38")
@pytest.mark.parametrize("code", ["hold('server')", "os.write(1, b'ready\\n'); os.kill(os.getpid(), signal.SIGSTOP)"])
async def test_a_server_that_takes_nothing_is_stalled_and_the_torn_stream_is_closed(code: str) -> None:
    async with running(code, write_stall_seconds=0.05) as server:
        await line(server)
        with pytest.raises(Stalled):
            await server.send(bytes(10_000_000))
        with pytest.raises(BrokenPipe):
            await server.send(b"the rest of another frame")
        assert alive(server.pid)
        await server.kill()
        assert await server.wait() == Exit(-signal.SIGKILL)


async def test_a_cancelled_write_closes_the_torn_stream() -> None:
    async with running("hold('server')") as server:
        await line(server)
        with anyio.move_on_after(0.02):
            await server.send(bytes(10_000_000))
        with pytest.raises(BrokenPipe):
            await server.send(b"the rest of another frame")


@pytest.mark.proves("F18", "F38")
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": trio.testing.MockClock()})], ids=["virtual time"])
async def test_the_deadline_of_a_write_starts_again_with_every_part_taken() -> None:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, trio.testing.MockClock)
    reading, writing = os.pipe()
    end = End(FileIO(writing, "w"), 10.0)
    stalled = anyio.Event()

    async def write() -> None:
        with pytest.raises(Stalled):
            await end.send(bytes(7 * READ_BYTES))
        stalled.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
            clock.jump(9.0)
            assert len(os.read(reading, READ_BYTES)) == READ_BYTES
        await anyio.wait_all_tasks_blocked()
        assert not stalled.is_set()
        clock.jump(11.0)
    os.close(reading)
    end.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", ["reads", "writes"])
async def test_an_end_that_is_closed_between_ready_and_running_on_touches_no_other_file(kind: str) -> None:
    """Both wake-ups come in one turn of the loop: the end is ready first, and is closed before its task runs on."""
    reading, writing = os.pipe()
    ours, theirs = (reading, writing) if kind == "reads" else (writing, reading)
    end = End(FileIO(ours, "r" if kind == "reads" else "w"))
    watched, waking = os.pipe()
    heard: list[bytes] = []

    async def use() -> None:
        if kind == "reads":
            heard.append(await end.receive())
        else:
            with pytest.raises(BrokenPipe):
                await end.send(bytes(2 * READ_BYTES))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await anyio.wait_all_tasks_blocked()
        asyncio.get_running_loop().add_reader(watched, end.close)
        if kind == "reads":
            os.write(theirs, b"late")
        else:
            os.read(theirs, READ_BYTES)
        os.write(waking, b"!")
    asyncio.get_running_loop().remove_reader(watched)
    for descriptor in (theirs, watched, waking):
        os.close(descriptor)
    assert heard in ([b"late"], [])


async def test_who_reads_while_another_does_is_refused_and_leaves_the_other_alone() -> None:
    reading, writing = os.pipe()
    end, heard = End(FileIO(reading, "r")), list[bytes]()

    async def read() -> None:
        heard.append(await end.receive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await end.receive()
        os.write(writing, b"for the first")
    assert heard == [b"for the first"]
    end.close()
    os.close(writing)


async def test_what_nobody_reads_stays_in_the_pipe_and_keeps_no_loop_busy() -> None:
    reading, writing = os.pipe()
    end = End(FileIO(reading, "r"))
    os.write(writing, b"first")
    assert await end.receive() == b"first"
    os.write(writing, b"second")
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert os.read(reading, 100) == b"second"
    assert not asyncio.get_running_loop().remove_reader(reading)
    os.write(writing, b"third")
    assert await end.receive() == b"third"
    end.close()
    assert await end.receive() == b""
    os.close(writing)


@pytest.mark.proves("F21")
async def test_a_flood_of_standard_error_neither_stops_the_server_nor_fills_memory() -> None:
    flood = """
    for _ in range(50):
        rest = b"x" * 99 + b"\\n"
        rest *= 10_000
        while rest:
            rest = rest[os.write(2, rest):]
        say(os.read(0, 1).decode())
    """
    tracemalloc.start()
    try:
        async with running(flood) as server:
            for _ in range(50):
                await server.send(b".")
                assert await line(server) == "."
            assert await server.wait() == Exit(0)
            assert server.stderr_tail() == ("x" * 99,) * 20
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.proves("F17", "F21", "F22")
@pytest.mark.parametrize(
    ("code", "tail"),
    [
        pytest.param("os.write(2, b'caf\\xe9\\n\\xff\\xfe')", ("caf\ufffd", "\ufffd\ufffd"), id="not UTF-8"),
        pytest.param("os.write(2, b'no newline')", ("no newline",), id="no newline"),
        pytest.param(
            "os.write(2, b''.join(b'%d\\n' % n for n in range(50)))", tuple(map(str, range(30, 50))), id="many"
        ),
        pytest.param("os.write(2, b'before\\n'); os.close(2)", ("before",), id="closed early"),
        pytest.param("", (), id="silent"),
    ],
)
async def test_the_tail_of_standard_error_is_its_last_lines_whatever_they_are(code: str, tail: tuple[str, ...]) -> None:
    async with running(code + "\n" + ECHO) as server:
        await server.send(b"still works\n")
        assert await line(server) == "still works"
        await server.close_input()
        await server.wait()
        assert server.stderr_tail() == tail
    assert server.stderr_tail() == tail


@pytest.mark.proves("F21")
async def test_a_line_without_an_end_is_kept_in_part() -> None:
    code = """
    rest = b"x" * 10_000_000
    while rest:
        rest = rest[os.write(2, rest):]
    """
    async with running(code) as server:
        await server.wait()
        assert server.stderr_tail() == ("x" * process.TAIL_BYTES,)


@pytest.mark.proves("F11", "F21")
async def test_standard_error_is_read_also_while_the_owner_is_being_cancelled() -> None:
    code = """
    os.read(0, 1)
    rest = b"x" * 2_000_000
    while rest:
        rest = rest[os.write(2, rest):]
    os._exit(5)
    """
    ended: Exit | None = None
    with anyio.CancelScope() as scope:
        async with running(code) as server:
            scope.cancel()
            with anyio.move_on_after(5.0, shield=True):
                await server.send(b".")
                ended = await server.wait()
                assert server.stderr_tail() == ("x" * process.TAIL_BYTES,)
    assert ended == Exit(5)
