"""A model on loopback that does what the test says, for real hosts: every API of `model_server_wires` at one address.

    with ModelServer([Call("Write", {...}), Call("Edit", {...}), Say("done")]) as model:
        ...  # run the host with `model.url`
        assert "diagnostics" in model.after(1).text

Hosts that want the version in the address take `f"{model.url}/v1"`; a path is known by its end alone.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

from support.hosts.model_apis import MODEL, TOKENS, Chat, Gemini, Messages, Responses, text_of
from support.hosts.model_script import Call, Heard, Json, Say, Script, Turn, Wire

__all__ = ["Call", "ModelServer", "Request", "Say", "Turn"]

WIRES: dict[str, Wire] = {
    "/messages": Messages(),
    "/chat/completions": Chat(),
    "/responses": Responses(),
    ":generateContent": Gemini(),
    ":streamGenerateContent": Gemini(),
}
"""How a path ends → the API."""

COUNTS: dict[str, Json] = {
    "/messages/count_tokens": {"input_tokens": TOKENS},
    ":countTokens": {"totalTokens": TOKENS},
    "/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []},
}
"""How a path ends → what is always said there."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the model."""

    path: str
    body: Json
    heard: Heard
    position: int
    """How many turns were behind it: the one with this index was the answer."""

    @property
    def text(self) -> str:
        """Every text in it, in order."""
        return text_of(self.body)


class ModelServer:
    """Answers every question with the next turn of the script, and keeps the questions."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.requests: list[Request] = []
        self.unknown: list[str] = []
        """The paths that somebody asked for and that are not here."""
        self._script = Script(turns)
        self._server = _Server(self)
        self._threads = ThreadPoolExecutor(1, "model server")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def after(self, turns: int) -> Request:
        """The question that came after so many turns: the first of those that offered tools, where any did."""
        found = [request for request in self.requests if request.position == turns]
        assert found, f"nobody asked after {turns} turns; the paths were {[each.path for each in self.requests]}"
        return next((request for request in found if request.heard.tools), found[0])

    def answered(self, path: str, body: Json) -> tuple[Json, list[Json] | None] | None:
        """The answer and, where a stream was asked for, its events; None for a path that is not here."""
        place = urlsplit(path)
        for end, said in COUNTS.items():
            if place.path.endswith(end):
                return said, None
        wire = next((wire for end, wire in WIRES.items() if place.path.endswith(end)), None)
        if wire is None:
            self.unknown.append(path)
            return None
        heard = wire.heard(body)
        self.requests.append(Request(place.path, body, heard, self._script.position(heard)))
        answer, number = self._script.answer(heard), len(self.requests)
        stream = body.get("stream") or "stream" in place.path
        return wire.whole(answer, number), wire.events(answer, number) if stream else None

    def __enter__(self) -> Self:
        self._threads.submit(self._server.serve_forever, poll_interval=0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._threads.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them

    def __init__(self, model: ModelServer) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A host that has gone in the middle of an answer needs no traceback."""


class _Handler(BaseHTTPRequestHandler):
    """One request per connection: nothing stays open that a test would have to wait for."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_CONNECT(self) -> None:
        """Somebody takes this for a proxy, on the way out of the machine."""
        cast("_Server", self.server).model.unknown.append(f"CONNECT {self.path}")
        self._write(HTTPStatus.BAD_GATEWAY, "text/plain", b"")

    def do_GET(self) -> None:
        self._answer({})

    def do_HEAD(self) -> None:
        self._write(HTTPStatus.OK, "application/json", b"")

    def do_POST(self) -> None:
        self._answer(json.loads(self._body() or b"{}"))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Nobody reads it."""

    def _answer(self, body: Json) -> None:
        answered = cast("_Server", self.server).model.answered(self.path, body)
        if answered is None:
            return self._write(HTTPStatus.NOT_FOUND, "application/json", b"{}")
        whole, events = answered
        if events is None:
            return self._write(HTTPStatus.OK, "application/json", json.dumps(whole).encode())
        return self._write(HTTPStatus.OK, "text/event-stream", b"".join(_streamed(self.path, events)))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def _write(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _streamed(path: str, events: list[Json]) -> Iterator[bytes]:
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if path.endswith("/chat/completions"):
        yield b"data: [DONE]\n\n"
