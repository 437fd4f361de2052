"""Many clients at once, rude ones among them; the daemon is in this process, and its sockets are real."""

import os
import socket
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from unittest.mock import Mock

import anyio
import pytest

from pilotfish.daemon import connection as door_module
from pilotfish.errors import Code, Failure, Unavailable
from pilotfish.ipc.rendezvous import DaemonPlace, connect
from support.daemon.in_process import Alive, alive
from support.daemon.mixed import REQUESTS, is_right, make_workspace
from support.daemon.scenarios import mute

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.proves("F75", "P20", "A16.3")
async def test_thirty_two_clients_with_mixed_requests_lose_none(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    count = 10 * int(str(pytestconfig.getoption("--rounds")))

    def work(here: Alive, number: int) -> int:
        right = 0
        with here.link(host=f"host-{number % 3}") as link:
            for step in range(count):
                method, params = REQUESTS[(number + step) % len(REQUESTS)]
                right += is_right(method, params, link.request(method, params))
        return right

    async with alive(tmp_path) as here:
        make_workspace(here.root)
        done: list[int] = []

        async def client(number: int) -> None:
            done.append(await here.in_thread(work, here, number))

        async with anyio.create_task_group() as tasks:
            for number in range(32):
                tasks.start_soon(client, number)
        assert done == [count] * 32
        assert len(here.servers) == 1


FLOOD = 600
"""Calls: more than a client may have at work, fewer than it may have waiting."""


@pytest.mark.proves("F75", "A16.2")
async def test_a_flood_of_one_client_makes_nobody_else_wait_for_its_end(tmp_path: Path) -> None:
    calls = (
        framed(b'{"jsonrpc":"2.0","id":%d,"method":"check","params":{"paths":["a.x","b.x"]}}' % number)
        for number in range(FLOOD)
    )

    def work(here: Alive) -> tuple[int, int]:
        with here.link() as polite, ExitStack() as stack:
            polite.request("check", {"paths": ["a.x"]})
            greedy = stack.enter_context(closing(connect(DaemonPlace(here.environment), 30.0)))
            greedy.sendall(framed(hello(here)) + b"".join(calls))
            while not greedy.recv(1, socket.MSG_PEEK):
                pass
            for request in REQUESTS:
                assert is_right(*request, polite.request(*request))
            heard = _at_hand(greedy)
            seen = answers(heard)
            while answers(heard) < FLOOD + 1:
                heard += greedy.recv(1 << 20)
            return seen, answers(heard)

    async with alive(tmp_path) as here:
        make_workspace(here.root)
        seen, heard = await here.in_thread(work, here)
        assert seen < FLOOD / 2
        assert heard == FLOOD + 1


def answers(data: bytes) -> int:
    return data.count(b"Content-Length: ")


def _at_hand(end: socket.socket) -> bytes:
    """What has arrived already."""
    heard = b""
    end.setblocking(False)
    with suppress(BlockingIOError):
        while data := end.recv(1 << 20):
            heard += data
    end.settimeout(30.0)
    return heard


@pytest.mark.proves("MCP-1")
async def test_a_link_can_become_something_else(tmp_path: Path) -> None:
    def work(here: Alive) -> bytes:
        end = here.link().upgraded("echo")
        end.sendall(b"hello")
        heard = b""
        while len(heard) < 5:
            heard += end.recv(100)
        end.shutdown(socket.SHUT_WR)
        assert end.recv(100) == b""
        end.close()
        return heard

    async with alive(tmp_path) as here:
        assert await here.in_thread(work, here) == b"HELLO"


@pytest.mark.proves("F72")
async def test_a_client_that_gives_up_waiting_is_over_and_the_call_is_cancelled(tmp_path: Path) -> None:
    definition = {"operation": "goToDefinition", "filePath": "a.x", "line": 1, "character": 1}

    def work(here: Alive) -> Code:
        with here.link() as link:
            link.request("check", {"paths": ["a.x"]})
            with pytest.raises(Unavailable) as late:
                link.request("ask", definition, 0.2)
            with pytest.raises(Unavailable):
                link.request("about")
            return late.value.code

    async with alive(tmp_path, mute) as here:
        (here.root / "a.x").write_text("good\n")
        assert await here.in_thread(work, here) is Code.REQUEST_TIMEOUT
        (server,) = here.servers
        asked = await server.until("textDocument/definition")
        with anyio.fail_after(5):
            while server.cancelled != [asked.id]:
                await anyio.sleep(0)


@pytest.mark.proves("F74", "P22")
async def test_a_client_that_never_reads_is_not_felt_by_others(tmp_path: Path) -> None:
    flood = b"".join(
        framed(b'{"jsonrpc":"2.0","id":%d,"method":"about","params":{}}' % number) for number in range(2000)
    )

    def work(here: Alive) -> bool:
        with here.link() as other:
            rude = connect(DaemonPlace(here.environment), 10.0)
            rude.sendall(framed(hello(here)))
            rude.setblocking(False)
            sent = 0
            try:
                while True:
                    sent += rude.send(flood)
                    assert is_right(*REQUESTS[0], other.request(*REQUESTS[0]))
            except (BlockingIOError, BrokenPipeError):
                pass
            assert sent > 0
            rights = [is_right(*REQUESTS[0], other.request(*REQUESTS[0])) for _ in range(20)]
            rude.close()
            return all(rights)

    async with alive(tmp_path) as here:
        (here.root / "a.x").write_text("bad\n")
        assert await here.in_thread(work, here)


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def hello(here: Alive) -> bytes:
    return b'{"jsonrpc":"2.0","id":"h","method":"hello","params":{"protocol":1,"cwd":"%b"}}' % str(here.root).encode()


@pytest.mark.proves("T26")
async def test_connections_are_limited_and_whoever_is_too_many_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "MAX_CONNECTIONS", 2)

    def work(here: Alive) -> Code:
        with here.link(), here.link() as last:
            with pytest.raises(Failure) as failed:
                here.link()
            last.request("about")
        return failed.value.code

    async with alive(tmp_path) as here:
        assert await here.in_thread(work, here) is Code.OVERLOADED


@pytest.mark.proves("T22")
async def test_another_user_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "peer_user", Mock(return_value=os.geteuid() + 1))

    def work(here: Alive) -> bytes:
        end = connect(DaemonPlace(here.environment), 10.0)
        try:
            end.sendall(framed(hello(here)))
            return end.recv(100)
        except ConnectionError:
            return b""
        finally:
            end.close()

    async with alive(tmp_path) as here:
        assert await here.in_thread(work, here) == b""
