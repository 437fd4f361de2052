"""`GET /events`, `GET /status` and `GET /metrics` of a real daemon."""

import json
import re
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.clients.http import HttpServed, http_served
from support.daemon.homes import WAIT_SECONDS, daemon_home

pytestmark = pytest.mark.proves("HTTP-2", "OBS-1")


class Reader:
    """Reads pictures as they come."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._heard = b""

    def head(self) -> bytes:
        while b"\r\n\r\n" not in self._heard:
            self._heard += self._connection.recv(65536)
        head, _, self._heard = self._heard.partition(b"\r\n\r\n")
        return head

    def pictures(self) -> Iterator[dict[str, Any]]:
        """In order; a chunk of the transfer is one event."""
        while data := self._connection.recv(1 << 20):
            self._heard += data
            while match := re.match(rb"([0-9a-f]+)\r\n", self._heard):
                size, begin = int(match[1], 16), match.end()
                if len(self._heard) < begin + size + 2:
                    break
                event = self._heard[begin : begin + size].decode()
                self._heard = self._heard[begin + size + 2 :]
                assert event.startswith("event: everything\ndata: ")
                assert event.endswith("\n\n")
                yield json.loads(event.split("data: ", 1)[1])


@contextmanager
def watching(served: HttpServed) -> Generator[Reader]:
    with socket.create_connection(("127.0.0.1", served.port), WAIT_SECONDS) as connection:
        own = f"Host: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n\r\n"
        connection.sendall(f"GET /events HTTP/1.1\r\n{own}".encode())
        reader = Reader(connection)
        head = reader.head()
        assert head.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in head
        yield reader


def instances(picture: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        instance
        for workspace in picture["workspaces"]
        for server in workspace["servers"]
        for instance in server.get("instances", [])
    ]


def test_a_server_is_seen_to_start_to_run_and_to_fail(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served, watching(served) as reader:
        home.write("wrong.x", "bad\n")
        pictures = reader.pictures()
        assert instances(next(pictures)) == []
        with home.link("an agent") as link:
            feedback = link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
        assert "bad word" in feedback["text"]
        running = next(
            picture for picture in pictures if picture.get("feedback") and picture["workspaces"][0].get("files")
        )
        [instance] = instances(running)
        assert instance["state"] == "active"
        assert instance["memoryMib"] > 1
        assert running["workspaces"][0]["files"] == [
            {
                "path": "wrong.x",
                "diagnostics": [{"line": 1, "severity": "error", "message": "bad word", "server": "toy"}],
                "counts": {"error": 1, "warning": 0, "info": 0, "hint": 0, "total": 1},
            }
        ]
        assert running["feedback"][0]["feedback"]["text"] == feedback["text"]
        assert running["feedback"][0]["host"] == "an agent"
        assert running["feedback"][0]["paths"] == ["wrong.x"]


def test_who_comes_and_goes_is_seen_at_once(served: HttpServed) -> None:
    with watching(served) as reader:
        pictures = reader.pictures()
        next(pictures)
        with served.home.link("visitor"):
            assert any("visitor" in _hosts(picture) for picture in pictures)
        assert any("visitor" not in _hosts(picture) for picture in pictures)


def _hosts(picture: dict[str, Any]) -> list[str | None]:
    return [known.get("host") for workspace in picture["workspaces"] for known in workspace["conversations"]]


@pytest.mark.proves("F85")
def test_readers_that_leave_hold_no_connection(served: HttpServed) -> None:
    for _ in range(80):
        with watching(served):
            pass
    assert served.ask("GET", "/status").status == 200


def test_a_head_request_ends(served: HttpServed) -> None:
    assert served.ask("HEAD", "/events").status == 200


@pytest.mark.proves("T32")
def test_what_a_server_says_is_clean_in_every_answer(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home:
        home.configure("hostile")
        home.write("a.x", "fine\n")
        with http_served(home) as served, home.link() as link:
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
            status = served.ask("GET", "/status").body.decode()
            assert "wickedness" in status
            for unwanted in ("\\u001b", "\\u202e", "\x1b", "\u202e", "\\u0007"):
                assert unwanted not in status


def test_the_counters_are_there_for_prometheus(served: HttpServed) -> None:
    with served.home.link() as link:
        link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
    answer = served.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples: dict[str, float] = {}
    for line in answer.body.decode().splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+(?:\{(?:[a-z]+="[^"]*",?)*\})?) (\S+)', line)
            assert match, line
            assert match[1] not in samples, "a sample is there once"
            samples[match[1]] = float(match[2])
    assert samples['pilotfish_server_starts_total{server="toy"}'] >= 1
    assert samples['pilotfish_checks_total{server="toy"}'] >= 1
    assert samples['pilotfish_diagnostics_total{server="toy"}'] >= 1
    buckets = [value for name, value in samples.items() if name.startswith("pilotfish_check_seconds_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples['pilotfish_check_seconds_count{server="toy"}']
    assert samples['pilotfish_servers{state="running"}'] >= 1
