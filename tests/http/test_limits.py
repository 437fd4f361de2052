"""Clients that are slow, endless, wrong or gone (F85): they hold nothing but their own connection."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish_http import application as http_listening
from pilotfish_http import guard as http_guard
from pilotfish_http.admission import MAX_BODY, AccessKeys, own_names
from pilotfish_http.application import bound, listening
from pilotfish_http.guard import AsgiApplication, AsgiReceive, AsgiScope, AsgiSend, Guard
from support.clients.http import JSON, HttpServed

pytestmark = pytest.mark.proves("F85", "T27")


def head(served: HttpServed, *lines: str) -> bytes:
    always = (
        f"Host: 127.0.0.1:{served.port}",
        f"Authorization: Bearer {served.token}",
        "Content-Type: application/json",
    )
    return "\r\n".join(["PUT /conversations/limits/cwd HTTP/1.1", *always, *lines, "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_body_that_says_it_is_too_large_is_not_read(served: HttpServed) -> None:
    assert status(served.raw(head(served, f"Content-Length: {MAX_BODY + 1}"))) == 413


def test_a_chunked_body_without_end_is_cut_at_the_limit(served: HttpServed) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", served.port), 60) as connection:
        connection.sendall(head(served, "Transfer-Encoding: chunked"))
        answer = b""
        for _ in range(6):
            try:
                connection.sendall(chunk)
            except ConnectionError:
                break
        try:
            answer = connection.recv(4096)
        except ConnectionError:
            # It has hung up while we were still sending, and the kernel threw away what it had said.
            return
        assert status(answer) == 413


def test_a_head_without_end_is_cut_at_the_limit(served: HttpServed) -> None:
    assert status(served.raw(head(served, "X-Long: " + "a" * 100_000))) in {400, 431}


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET /status\r\n\r\n", id="HTTP/0.9"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", id="TLS"),
        pytest.param(
            b"GET /status HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="smuggling"
        ),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
    ],
)
def test_what_is_no_request_is_refused(served: HttpServed, garbage: bytes) -> None:
    answer = served.raw(garbage)
    assert not answer or status(answer) in {400, 421, 505}
    assert served.ask("GET", "/status").status == 200


def test_requests_one_after_the_other_are_answered_in_order(served: HttpServed) -> None:
    own = f"Host: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n"
    one = f"GET /conversations/{{}}/cwd HTTP/1.1\r\n{own}"
    last = one.format("second") + "Connection: close\r\n\r\n"
    answer = served.raw((one.format("first") + "\r\n" + last).encode())
    assert [name in answer for name in (b'"first"', b'"second"')] == [True, True]
    assert answer.index(b'"first"') < answer.index(b'"second"')


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b'{"cwd": "\xed\xa0\x80"}', b"[" * 100_000, b"", b"NaN", b"\xef\xbb\xbf{}"]
)
def test_what_is_no_json_is_refused(served: HttpServed, body: bytes) -> None:
    answer = served.bare("PUT", "/conversations/limits/cwd", body, {**served.bearer, **JSON})
    assert answer.status == 400
    assert answer.json["code"] == "invalid_input"


@pytest.mark.proves("A17.14")
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("Content-Length: 2", "Content-Length: 3"), id="two lengths"),
        pytest.param(("Content-Length: +2",), id="a signed length"),
        pytest.param(("Content-Length: 0x2",), id="a hexadecimal length"),
        pytest.param(("Transfer-Encoding: chunked, identity",), id="another last encoding"),
        pytest.param(("Transfer-Encoding: xchunked",), id="an unknown encoding"),
        pytest.param(("Content-Length : 2",), id="a space before the colon"),
        pytest.param(("X: a\x00b",), id="a zero byte"),
        pytest.param(("X: a\rContent-Length: 2",), id="a bare carriage return"),
        pytest.param(("Host: evil.com",), id="two hosts"),
    ],
)
def test_what_two_parsers_would_read_differently_is_refused(served: HttpServed, lines: tuple[str, ...]) -> None:
    answer = served.raw(head(served, *lines) + b"{}")
    assert status(answer) in {400, 413, 421, 501}
    assert answer.count(b"HTTP/1.1") == 1


@given(st.data())
@settings(max_examples=100)
def test_no_bytes_end_the_listening_or_reach_the_inside(served: HttpServed, data: st.DataObject) -> None:
    good = head(served, "Content-Length: 2").replace(served.token.encode(), b"wrong") + b"{}"
    begin = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(begin, len(good)))
    mutated = good[:begin] + data.draw(st.binary(max_size=40)) + good[end:]
    with socket.create_connection(("127.0.0.1", served.port), 60) as connection:
        connection.sendall(mutated)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while more := connection.recv(65536):
                answer += more
    assert not answer or 400 <= status(answer) < 500
    assert served.ask("GET", "/metrics").status == 200


# --- With shorter limits, in this process ---------------------------------------------------------------------------


@asynccontextmanager
async def guarded(application: AsgiApplication, folder: Path) -> AsyncGenerator[tuple[int, str, Guard]]:
    listener = bound(0)
    port = listener.getsockname()[1]
    keys = AccessKeys(str(folder / "token"))
    keys.publish()
    guard = Guard(application, keys, own_names(port))
    async with listening(listener, guard):
        yield port, Path(keys.path).read_text().strip(), guard
    keys.withdraw()


async def nothing(_scope: AsgiScope, _receive: AsgiReceive, send: AsgiSend) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def heard(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while more := connection.recv(65536):
                answer += more
        except ConnectionError:
            pass
        return answer


@pytest.mark.anyio
@pytest.mark.parametrize("begun", [b"", b"GET /status HTTP/1.1\r\nHost: 127"], ids=["silent", "half a head"])
async def test_who_does_not_say_what_it_wants_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(http_listening, "QUIET_SECONDS", 0.2)
    async with guarded(nothing, tmp_path) as (port, _, _guard):
        assert await anyio.to_thread.run_sync(heard, port, begun) == b""


@pytest.mark.anyio
async def test_half_a_head_after_a_whole_request_is_hung_up_on_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_listening, "QUIET_SECONDS", 0.5)
    async with guarded(nothing, tmp_path) as (port, token, _):
        whole = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        answer = await anyio.to_thread.run_sync(heard, port, whole + whole[:20])
    assert answer.count(b"HTTP/1.1 204") == 1


@pytest.mark.anyio
async def test_a_request_under_way_is_never_overdue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listening, "QUIET_SECONDS", 0.05)

    async def slow(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        for _ in range(3):
            # Another connection is hung up on meanwhile, because it asks nothing for as long.
            assert await anyio.to_thread.run_sync(heard, port, b"") == b""
        await nothing(scope, receive, send)

    async with guarded(slow, tmp_path) as (port, token, _):
        request = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        answer = await anyio.to_thread.run_sync(heard, port, request.encode())
    assert status(answer) == 204


@pytest.mark.anyio
async def test_half_a_body_is_answered_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_guard, "BODY_SECONDS", 0.2)
    async with guarded(nothing, tmp_path) as (port, token, _):
        lines = f"PUT /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        half = f"{lines}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{".encode()
        answer = await anyio.to_thread.run_sync(heard, port, half)
    assert status(answer) == 408


@pytest.mark.anyio
async def test_an_exception_is_one_answer_and_tells_nothing_of_the_inside(tmp_path: Path) -> None:
    async def broken(_scope: AsgiScope, _receive: AsgiReceive, _send: AsgiSend) -> None:
        raise ValueError("the secret inside")

    async with guarded(broken, tmp_path) as (port, token, _):
        request = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        answer = await anyio.to_thread.run_sync(heard, port, request.encode())
    assert status(answer) == 500
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "bug"
    assert b"secret" not in answer


@pytest.mark.anyio
@pytest.mark.parametrize("begun", [False, True], ids=["before its answer", "within its answer"])
async def test_what_is_under_way_is_ended_properly_when_the_listening_ends(tmp_path: Path, begun: bool) -> None:
    reached = anyio.Event()
    answers: list[bytes] = []

    async def endless(_scope: AsgiScope, _receive: AsgiReceive, send: AsgiSend) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        reached.set()
        await anyio.sleep_forever()

    async def call(port: int, token: str) -> None:
        request = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        answers.append(await anyio.to_thread.run_sync(heard, port, request.encode()))

    async with anyio.create_task_group() as tasks, guarded(endless, tmp_path) as (port, token, _):
        tasks.start_soon(call, port, token)
        await reached.wait()
    assert status(answers[0]) == (200 if begun else 503)
    assert answers[0].endswith(b"0\r\n\r\n") or not begun
