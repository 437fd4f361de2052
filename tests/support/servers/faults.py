"""Servers that go wrong, each in its own way, as real processes by `support.servers.fakels`.

All of them are `daemon_scenarios.answering` but for one thing. Those that go wrong with a question do so with `hover`.
"""

import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

from pilotfish.protocol.frames import frame
from support.daemon.scenarios import answering
from support.servers.fakels import STDERR, STDIN, STDOUT, FakeServer
from support.servers.script import SILENCE

HOVER = {"contents": "a word"}
Handler = Callable[[Any], Any]


def _on_hover(server: FakeServer, handler: Handler) -> None:
    answering(server)
    server.on("textDocument/hover", handler)


def _writes(server: FakeServer, *raw: bytes) -> None:
    """Answers a hover with these bytes."""
    _on_hover(server, lambda params: [server.write(data) for data in raw] and SILENCE)


def _first(action: Callable[[], object]) -> Handler:
    """Do something, then answer a hover as one should."""
    return lambda params: (action(), HOVER)[1]


# --- In initialize ------------------------------------------------------------------------------------------------


def ends_at_once(server: FakeServer) -> None:
    server.on("initialize", lambda params: (server.say(b"no licence\n"), server.leave(3)))


def half_a_header(server: FakeServer) -> None:
    server.on("initialize", lambda params: (server.write(b"Content-Len"), server.leave(1)))


def hangs(server: FakeServer) -> None:
    server.spawn_child(new_session=True)
    server.ignore_sigterm()
    server.on("initialize", lambda params: server.hang())


def answers_too_late(server: FakeServer) -> None:
    """Well past the deadline that the matrix gives it; until then it waits like one that indexes."""
    answering(server)
    server.ignore_sigterm()
    identifier = 0
    server.on(
        "initialize", lambda params: server.later(6, lambda: server.reply(identifier, {"capabilities": {}})) or SILENCE
    )


# --- With a question ----------------------------------------------------------------------------------------------


def dies_of_a_fault(server: FakeServer) -> None:
    _on_hover(server, lambda params: server.die(signal.SIGSEGV))


def is_killed(server: FakeServer) -> None:
    _on_hover(server, lambda params: server.die(signal.SIGKILL))


def dies_in_its_answer(server: FakeServer) -> None:
    _on_hover(server, lambda params: (server.write(b'Content-Length: 99\r\n\r\n{"id":'), server.leave(1)))


def closes_its_output(server: FakeServer) -> None:
    _on_hover(server, lambda params: (server.close(STDOUT), server.hang()))


def closes_its_input(server: FakeServer) -> None:
    _on_hover(server, lambda params: (server.close(STDIN), server.hang()))


def freezes(server: FakeServer) -> None:
    _on_hover(server, lambda params: server.freeze() or SILENCE)


def says_nothing(server: FakeServer) -> None:
    _on_hover(server, lambda params: SILENCE)


def lies_about_the_length(server: FakeServer) -> None:
    _writes(server, b'Content-Length: 5\r\n\r\n{"jsonrpc":"2.0","id":1,"result":null}\n' * 2)


def announces_a_terabyte(server: FakeServer) -> None:
    _writes(server, b"Content-Length: 1000000000000\r\n\r\n{}")


def never_ends_its_header(server: FakeServer) -> None:
    _writes(server, b"Content-Type: x\r\n", b"X: y\r\n" * 4000)


def talks_without_end(server: FakeServer) -> None:
    _writes(server, *[b"progress " * 8000] * 20)


def breaks_its_json(server: FakeServer) -> None:
    _writes(server, frame(b'{"jsonrpc":"2.0","id":'), frame(b"\xff\xfe"), frame(b"[" * 100_000))


def answers_in_the_wrong_shape(server: FakeServer) -> None:
    _on_hover(server, lambda params: 17)


# --- Odd, and right all the same ----------------------------------------------------------------------------------


def writes_crumbs(server: FakeServer) -> None:
    answering(server)
    server.chunk = 1


def prints_on_its_output(server: FakeServer) -> None:
    _on_hover(server, _first(lambda: server.write("npm WARN deprecated\nProgress: 50 % 😀\n".encode())))


def floods_its_errors(server: FakeServer) -> None:
    _on_hover(server, _first(lambda: server.flood_stderr(8_000_000)))


def closes_its_errors(server: FakeServer) -> None:
    _on_hover(server, _first(lambda: server.close(STDERR)))


def asks_without_reading(server: FakeServer) -> None:
    """Sends thousands of requests before it reads a single reply."""
    _on_hover(server, _first(lambda: [server.ask("workspace/configuration", {"items": [{}]}) for _ in range(3000)]))


def answers_twice(server: FakeServer) -> None:
    def twice(params: Any) -> Any:
        server.write(server.peer.notify("window/logMessage", {"type": 3, "message": "x"}))
        identifier = server.received[-1].id
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"contents":"a word"}}' % identifier
        server.write(frame(body) * 2)
        return SILENCE

    _on_hover(server, twice)


def uses_our_ids(server: FakeServer) -> None:
    """Asks something of its own under the id of the question that it has not answered yet."""

    def ask(params: Any) -> Any:
        server.write(frame(b'{"id":%d,"method":"workspace/workspaceFolders"}' % server.received[-1].id))
        return HOVER

    _on_hover(server, ask)


def floods_diagnostics(server: FakeServer) -> None:
    """Publishes for thousands of files before it answers."""

    def flood() -> None:
        for number in range(6000):
            server.publish(f"file:///elsewhere/{number % 3000}.x", ["noise"] * 3)

    _on_hover(server, _first(flood))


# --- Chaos --------------------------------------------------------------------------------------------------------


def chaotic(server: FakeServer) -> None:
    """Whatever a pipe can do to both sides, in an order that `CHAOS` decides; every answer comes, and is right."""
    answering(server)
    chance = random.Random(os.environ.get("CHAOS"))
    server.chunk = chance.choice((None, 1, 7, 4000))
    reading = server.feed

    def stall() -> None:
        threading.Event().wait(chance.choice((0, 0, 0.001, 0.02)))

    def disturb() -> None:
        match chance.randint(0, 5):
            case 0:
                server.flood_stderr(chance.choice((100, 200_000)))
            case 1:
                for _ in range(chance.choice((1, 100))):
                    server.ask("workspace/configuration", {"items": [{}, {}]})
            case 2:
                for number in range(chance.choice((1, 100))):
                    server.publish(f"file:///elsewhere/{number}.x", ["noise"])
            case 3:
                server.notify("window/logMessage", {"type": 3, "message": "x" * chance.choice((1, 3000))})
            case _:
                stall()

    def feed(data: bytes) -> None:
        size = 1 + len(data) // chance.choice((1, 2, 9))
        for start in range(0, len(data), size):
            stall()
            reading(data[start : start + size])
        if chance.random() < 0.5:
            disturb()

    server.feed = feed


def floods_everything(server: FakeServer) -> None:
    """More files than are kept, each with diagnostics, and words that nobody wants, before it answers."""

    def flood() -> None:
        for number in range(25_000):
            server.publish(f"file:///elsewhere/{number}.x", ["noise"] * 3)
            if number % 50 == 0:
                server.flood_stderr(100_000)

    server.chunk = None
    _on_hover(server, _first(flood))


def floods_as_told(server: FakeServer) -> None:
    """As much as `PUBLISHES` and `STDERR_MB` say, before it answers."""
    publishes, size = int(os.environ["PUBLISHES"]), int(os.environ["STDERR_MB"])

    def flood() -> None:
        share = max(1, publishes // max(1, size))
        for number in range(publishes):
            server.publish(f"file:///elsewhere/{number}.x", ["noise"] * 3)
            if number % share == 0:
                server.flood_stderr(1_000_000)

    _on_hover(server, _first(flood))
