"""`pilotfish serve` as a person runs it, and what it leaves behind: nothing."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.clients.http import HttpServed, http_served
from support.daemon.homes import WAIT_SECONDS, DaemonHome, daemon_home, ended

pytestmark = pytest.mark.proves("HTTP-1", "T20", "T21")

SERVE = [sys.executable, "-m", "pilotfish", "serve"]


@pytest.fixture
def fresh(tmp_path: Path) -> Generator[DaemonHome]:
    with daemon_home(tmp_path) as made:
        yield made


@contextmanager
def serving(home: DaemonHome, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [*SERVE, *arguments],
        cwd=home.root,
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_it_says_where_it_listens_and_ends_with_an_interrupt(fresh: DaemonHome) -> None:
    with serving(fresh) as process:
        said = [line(process) for _ in range(4)]
        assert re.match(r"Listening on http://127\.0\.0\.1:\d+ \(this machine only\); Ctrl-C ends it\.", said[0])
        token = Path(said[1].removeprefix("Token in:").strip())
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        secret = token.read_text().strip()
        assert secret not in "".join(said), "a terminal is no place for it"
        served = HttpServed(fresh, {"address": said[0].split()[2], "token_file": str(token)})
        assert served.ask("GET", "/status").status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 0
    assert not token.exists()
    with pytest.raises(ConnectionRefusedError):
        served.raw(b"")
    assert fresh.daemons(), "the daemon itself goes on"


def test_the_listening_ends_with_the_program_however_that_ends(fresh: DaemonHome) -> None:
    with serving(fresh, "--json") as process:
        served = HttpServed(fresh, json.loads(line(process)))
        assert served.ask("GET", "/status").status == 200
        process.kill()
        process.wait(WAIT_SECONDS)
    with fresh.control() as control:
        # Whatever ended before this question was asked has been noticed when it is answered.
        while any(session["host"] == "serve" for session in control.request("about")["sessions"]):
            pass
    with http_served(fresh) as again:
        assert again.ask("GET", "/status").status == 200


def test_it_ends_and_says_so_when_the_daemon_does(fresh: DaemonHome) -> None:
    with serving(fresh, "--json") as process:
        line(process)
        [daemon] = fresh.daemons()
        with fresh.control() as control:
            control.request("stop")
        assert ended(daemon)
        assert process.wait(WAIT_SECONDS) == 2
        assert process.stderr is not None
        assert "the daemon has ended" in process.stderr.read()


def test_a_port_can_be_chosen_and_one_that_is_taken_is_said(served: HttpServed, fresh: DaemonHome) -> None:
    with serving(fresh, "--port", str(served.port)) as process:
        assert process.wait(WAIT_SECONDS) == 3
        assert process.stderr is not None
        assert f"port {served.port} cannot be used" in process.stderr.read()


def test_a_second_one_is_told_of_the_first(served: HttpServed) -> None:
    with serving(served.home) as process:
        assert process.wait(WAIT_SECONDS) == 3
        assert process.stderr is not None
        assert served.said["address"] in process.stderr.read()
    assert served.ask("GET", "/status").status == 200


def test_no_other_address_than_loopback_can_be_asked_for(fresh: DaemonHome) -> None:
    with serving(fresh, "--host", "0.0.0.0") as process:
        assert process.wait(WAIT_SECONDS) == 3


def test_the_token_is_in_no_environment_argument_or_log(served: HttpServed) -> None:
    with served.home.link() as link:
        link.request("touched", {"paths": ["wrong.x"], "kind": "edit"})
    token = served.token.encode()
    ticket = served.said["page"].partition("#")[2].encode()
    processes = served.home.processes()
    assert len(processes) >= 3, "the daemon, a supervisor and a server"
    for pid in processes:
        seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert token not in seen
        assert ticket not in seen
    assert token.decode() not in served.home.log
    assert ticket.decode() not in served.home.log


def test_each_listening_has_a_token_of_its_own(fresh: DaemonHome) -> None:
    with http_served(fresh) as first:
        one = first.token
    assert not os.path.exists(first.said["token_file"])
    with http_served(fresh) as second:
        assert second.token != one
        assert second.bare("GET", "/status", b"", {"Authorization": f"Bearer {one}"}).status == 401


def test_a_daemon_that_does_not_serve_has_imported_nothing_for_it() -> None:
    program = (
        "import sys, pilotfish.daemon.main; "
        "print([name for name in ('starlette', 'uvicorn', 'h11', 'mcp', 'sse_starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
