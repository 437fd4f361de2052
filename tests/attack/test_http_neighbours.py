"""Other users of the machine reach loopback too: they learn nothing, redeem nothing, and keep nobody out."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.clients.http import JSON, HttpServed, http_served
from support.daemon.homes import WAIT_SECONDS, DaemonHome

NOBODY = 65534

SLOW = {
    "says nothing": b"",
    "half a head": b"GET /status HTTP/1.1\r\nHost: 127.0.0.1",
    "a body that never comes": b"POST /page-key HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n",
}


@pytest.mark.proves("T55", "F85", "A14.22", "A18.25")
@pytest.mark.parametrize("slow", SLOW)
def test_the_owner_gets_in_however_many_strangers_stay(home: DaemonHome, slow: str) -> None:
    with http_served(home) as served, ExitStack() as crowd:
        for _ in range(150):
            stranger = crowd.enter_context(socket.create_connection(("127.0.0.1", served.port), WAIT_SECONDS))
            stranger.sendall(SLOW[slow].replace(b"{port}", str(served.port).encode()))
        # A connection of the owner that stays open is not closed for a stranger.
        mine = crowd.enter_context(socket.create_connection(("127.0.0.1", served.port), WAIT_SECONDS))
        request = (
            f"GET /status HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n\r\n"
        )
        mine.sendall(request.encode())
        assert mine.recv(12) == b"HTTP/1.1 200"
        for _ in range(70):
            crowd.enter_context(socket.create_connection(("127.0.0.1", served.port), WAIT_SECONDS))
            assert served.ask("GET", "/status").status == 200
        mine.sendall(request.encode())
        heard = b""
        while heard.count(b"HTTP/1.1 200") < 1:
            heard += mine.recv(65536)


@pytest.mark.proves("T54", "T21", "A14.22")
def test_a_stranger_is_told_of_no_place(home: DaemonHome) -> None:
    with http_served(home) as served:
        secrets = [home.environment["HOME"], home.environment["PILOTFISH_HOME"], str(home.root), "token"]
        for method, path in (
            ("GET", "/status"),
            ("POST", "/mcp"),
            ("GET", "/nowhere"),
            ("PUT", "/conversations/a/cwd"),
        ):
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                answer = served.bare(method, path, b"{}" if method != "GET" else b"", {**JSON, **headers})
                assert answer.status == 401
                assert set(answer.json) == {"error", "code"}
                told = answer.body.decode() + str(answer.headers)
                assert [secret for secret in secrets if secret in told.replace("bearer token", "")] == []


@pytest.mark.proves("T54", "A14.21", "A18.26")
def test_the_link_that_works_once_is_in_no_arguments(home: DaemonHome, tmp_path: Path) -> None:
    programs, told = tmp_path / "programs", tmp_path / "told"
    programs.mkdir()
    (programs / "xdg-open").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {told}.new\nmv {told}.new {told}\n")
    (programs / "xdg-open").chmod(0o755)
    variables = {**home.environment, "PATH": f"{programs}:/usr/bin:/bin"}
    with subprocess.Popen(
        [sys.executable, "-m", "pilotfish", "serve", "--open", "--json"],
        cwd=home.root,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    ) as serve:
        assert serve.stdout is not None
        try:
            said = HttpServed(home, json.loads(serve.stdout.readline()))
            while not told.exists():
                assert serve.poll() is None
            (opened,) = told.read_text().splitlines()
            ticket = said.said["page"].partition("#")[2]
            assert ticket not in opened
            file = Path(opened.removeprefix("file://"))
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            assert said.said["page"] in file.read_text()
            lines = [(path.parent.name, path.read_bytes()) for path in Path("/proc").glob("[0-9]*/cmdline")]
            assert [pid for pid, line in lines if ticket.encode() in line] == []
            if os.geteuid() == 0:
                assert _as_nobody(file) != 0
        finally:
            serve.send_signal(signal.SIGINT)
            serve.wait(WAIT_SECONDS)
    assert not file.exists()


def _as_nobody(file: Path) -> int:
    program = f"import os, sys; os.setgid({NOBODY}); os.setuid({NOBODY}); open(sys.argv[1])"
    quiet = subprocess.DEVNULL
    return subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-c", program, str(file)], stderr=quiet, check=False
    ).returncode
