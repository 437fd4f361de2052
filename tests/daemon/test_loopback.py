"""Clients and the daemon at a port of this machine, as on Windows: who may connect, and to whom a client talks."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio.to_thread
import pytest

from pilotfish.daemon.claim import listen_here, make_private
from pilotfish.ipc.loopback import MOST, SIZE, Endpoint, KnownStream, meet, new_endpoint, read_endpoint, written
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.system.pipes import End
from support.daemon.lines import MemoryLine

pytestmark = [pytest.mark.anyio, pytest.mark.proves("PLAT-1", "T22")]

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:4711\r\nAccept: */*\r\nUser-Agent: a page in a browser\r\n\r\n"


@pytest.fixture
def anyio_backend() -> str:
    """Threads and sockets know no virtual time."""
    return "asyncio"


@pytest.fixture
def line() -> Iterator[MemoryLine]:
    made = MemoryLine()
    made.upgraded = True  # bytes, and no messages
    yield made
    made.close()


@pytest.fixture
def endpoint() -> Endpoint:
    return new_endpoint(4711)


async def test_a_client_that_knows_the_secret_is_heard_and_answered(tmp_path: Path) -> None:
    place = DaemonPlace({"PILOTFISH_HOME": str(tmp_path / "state")})
    make_private(place.folder)
    listener, own = listen_here(place)
    found = read_endpoint(Path(place.socket).read_bytes())
    assert found is not None
    assert written(found) == written(own)
    assert os.stat(place.socket).st_mode & 0o077 == 0
    heard: list[bytes] = []

    async def serve() -> None:
        await anyio.wait_readable(listener)
        stream = KnownStream(End(listener.accept()[0]), own)
        heard.append(await stream.receive())
        await stream.send(b"answer")
        stream.close()

    def ask() -> bytes:
        client = meet(found, 5.0)
        assert client is not None
        with closing(client):
            client.sendall(b"question")
            return client.recv(100)

    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            assert await anyio.to_thread.run_sync(ask) == b"answer"
    assert heard == [b"question"]


SAID: dict[str, Callable[[Endpoint], bytes]] = {
    "a page in a browser": lambda _: REQUEST,
    "one digit is wrong": lambda own: own.word[:-1] + b"x" + b"question",
    "the daemon's own word": lambda own: own.answer + b"question",
    "a part of it": lambda own: own.word[:-1],
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
async def test_nobody_else_is_heard_or_told_anything(
    said: Callable[[Endpoint], bytes], endpoint: Endpoint, line: MemoryLine
) -> None:
    stream = KnownStream(line, endpoint)
    line.say(said(endpoint))
    line.hang_up()
    assert await stream.receive() == b""
    await stream.send(b"closing")
    assert line.raw == b""


async def test_the_question_may_come_with_the_secret_or_in_pieces(endpoint: Endpoint, line: MemoryLine) -> None:
    stream = KnownStream(line, endpoint)
    line.say(endpoint.word[:5])
    line.say(endpoint.word[5:] + b"question")
    assert await stream.receive() == b"question"
    assert line.raw == endpoint.answer


@pytest.mark.parametrize("answer", [b"", b"x" * SIZE, b"x"], ids=["silent", "wrong", "short"])
async def test_a_client_tells_a_program_that_took_the_port_nothing_but_the_dead_secret(answer: bytes) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = new_endpoint(listener.getsockname()[1])

        def impostor() -> None:
            end, _ = listener.accept()
            with end:
                heard.append(end.recv(1000))
                end.sendall(answer)
                end.shutdown(socket.SHUT_WR)
                heard.append(end.recv(1000))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, impostor)
            assert await anyio.to_thread.run_sync(meet, own, 5.0) is None
    assert heard == [own.word, b""]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"4711", b"x y z", b"4711 short words", b"99999 " + b"a" * SIZE + b" " + b"b" * SIZE,
        b"1 " + b"a" * SIZE + b" " + b"b" * SIZE + b" c", b"1" * MOST, b"\xb2 " + b"a" * SIZE + b" " + b"b" * SIZE,
    ],
    ids=repr,
)  # fmt: skip
def test_a_file_that_no_daemon_has_written_leads_nowhere(content: bytes) -> None:
    assert read_endpoint(content) is None


def test_each_daemon_has_secrets_of_its_own() -> None:
    one, other = new_endpoint(1), new_endpoint(1)
    assert len({one.word, one.answer, other.word, other.answer}) == 4
