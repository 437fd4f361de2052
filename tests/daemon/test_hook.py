"""The hook program as hosts run it: the daemon's words, or silence and 0."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from pilotfish.daemon.claim import listen, make_private
from pilotfish.hosts.shared.hook_settings import SILENT_MILLISECONDS
from pilotfish.ipc import hook_program as relay
from pilotfish.ipc.messages import HookCall
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL, DaemonPlace, packed
from pilotfish.protocol.frames import FrameDecoder
from pilotfish.protocol.rpc import Peer, Requested
from support.daemon.homes import HOOK, WAIT_SECONDS, DaemonHome
from support.process_tree import below

TOUCHED = b'{"files":["a.x"],"session":"7"}'

SHORT = ("plain", "--deadline-ms", "700")
"""Enough for the program to run into what the test has put there."""


def is_silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.proves("HOOK-2", "FMT-8", "POOL-6")
def test_a_hook_starts_the_daemon_and_the_next_one_finds_it_warm(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    first = home.run_hook(TOUCHED)
    assert (first.returncode, first.stderr) == (0, b"")
    assert b"bad word" in first.stdout
    (daemon,) = home.daemons()
    servers = {member.pid for member in below(daemon)}
    assert home.run_hook(TOUCHED).stdout == first.stdout
    assert home.daemons() == [daemon]
    assert {member.pid for member in below(daemon)} == servers
    home.write("a.x", "good\n")
    assert is_silent(home.run_hook(TOUCHED))
    for trouble in (b"not JSON", b"", b'{"files":["gone.x"]}', b'{"files":["/etc/passwd"]}'):
        assert is_silent(home.run_hook(trouble))
    nobody = home.run_hook(TOUCHED, "nobody")
    assert (nobody.returncode, nobody.stdout) == (0, b"")
    assert b"no host is called nobody" in nobody.stderr
    for arguments in (("two", "words"), ('"',), ("plain", "--deadline-ms", "soon")):
        assert is_silent(home.run_hook(TOUCHED, *arguments))
    assert home.daemons() == [daemon]


@pytest.mark.proves("HOOK-2", "POOL-6")
def test_a_hook_that_prints_nothing_waits_for_no_daemon_and_starts_one(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    began = home.run_hook(TOUCHED, "plain", "--deadline-ms", str(SILENT_MILLISECONDS))
    assert is_silent(began), "it would have said what is wrong, had it waited"
    assert b"bad word" in home.run_hook(TOUCHED).stdout
    (daemon,) = home.daemons()
    silent = home.run_hook(TOUCHED, "plain", "--deadline-ms", str(SILENT_MILLISECONDS))
    assert b"bad word" in silent.stdout, "where a daemon runs, it is asked as ever"
    assert home.daemons() == [daemon]


@pytest.mark.proves("HOOK-2", "F65", "A15.5")
def test_a_hook_whose_daemon_was_killed_starts_another(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    with home.control(start=True) as link:
        os.kill(int(link.welcome["pid"]), signal.SIGKILL)
    assert b"bad word" in home.run_hook(TOUCHED).stdout


@pytest.mark.proves("HOOK-2", "F82")
def test_a_hook_whose_daemon_hangs_is_silent_in_time(home: DaemonHome) -> None:
    with home.control(start=True) as link:
        os.kill(int(link.welcome["pid"]), signal.SIGSTOP)
        assert is_silent(home.run_hook(TOUCHED, *SHORT))


@pytest.mark.proves("HOOK-2", "FMT-8")
def test_a_hook_waits_for_the_answer_as_long_as_it_was_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only as long as most hosts give their hooks: the daemon was told the longer time as well."""
    patience = list[float]()
    ours, theirs = socket.socketpair()
    body = relay.RESULT + b"late".hex().encode() + b'"}'

    def connect(_place: DaemonPlace, seconds: float) -> socket.socket:
        patience.append(seconds)
        return ours

    monkeypatch.setattr(relay, "connect", connect)
    with ours, theirs:
        theirs.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert relay.relay("plain", b"", 50.0) == b"late"
    assert patience == [50.0]


@pytest.mark.proves("HOOK-2")
def test_a_hook_without_a_daemon_to_be_had_is_silent(home: DaemonHome, tmp_path: Path) -> None:
    home.environment["PILOTFISH_HOME"] = str(tmp_path / "file" / "below")
    (tmp_path / "file").write_text("no folder")
    assert is_silent(home.run_hook(TOUCHED))


@pytest.mark.proves("HOOK-2")
def test_a_hook_in_a_folder_that_is_gone_is_silent(home: DaemonHome) -> None:
    gone = home.root / "gone"
    gone.mkdir()
    program = f"cd {gone}; rmdir {gone}; exec {sys.executable} -I -S {HOOK} plain"
    done = subprocess.run(["sh", "-c", program], input=b"{}", capture_output=True, env=home.environment, check=False)
    assert is_silent(done)


@pytest.mark.proves("HOOK-2", "F82")
def test_a_hook_whose_input_never_ends_is_silent_in_time(home: DaemonHome) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing):
        done = subprocess.run(
            [sys.executable, "-I", "-S", HOOK, *SHORT],
            stdin=reading,
            capture_output=True,
            env=home.environment,
            check=False,
        )
    assert is_silent(done)


@contextmanager
def impostor(home: DaemonHome, answers: list[bytes]) -> Generator[list[bytes]]:
    """Something of our own user that listens in the daemon's place, and says these things to one client each.

    What clients said first is in the list that this gives.
    """
    make_private(home.place.folder)
    listener = listen(home.place)
    listener.settimeout(WAIT_SECONDS)
    said: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            end, _ = listener.accept()
            with end:
                said.append(end.recv(1 << 20))
                with suppress(BrokenPipeError):  # it has heard enough
                    end.sendall(answer)

    with ThreadPoolExecutor(1) as pool, listener:
        serving = pool.submit(serve)
        yield said
        serving.result()


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


ERROR = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32803,"message":"no"}}'


@pytest.mark.proves("HOOK-2")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(framed(ERROR), id="an error"),
        pytest.param(framed(b'{"jsonrpc":"2.0","id":0,"result":"xyz"}'), id="no digits"),
        pytest.param(framed(b'{"jsonrpc":"2.0","id":0,"result":null}'), id="another type"),
        pytest.param(framed(b'{"jsonrpc":"2.0","id":0,"result":""}'), id="nothing to say"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nhello", id="another protocol"),
        pytest.param(b"Content-Length: -1\r\n\r\n", id="an odd length"),
        pytest.param(b"\xff" * 2_000_000, id="a flood"),
    ],
)
def test_a_hook_prints_nothing_but_a_result(home: DaemonHome, answer: bytes) -> None:
    with impostor(home, [answer]):
        assert is_silent(home.run_hook(TOUCHED))


@pytest.mark.parametrize(
    "farewell",
    [
        pytest.param(b"", id="without a word"),
        pytest.param(framed(b'{"jsonrpc":"2.0","method":"closing","params":{"code":"shutting_down"}}'), id="ending"),
        pytest.param(
            framed(b'{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"","data":{"code":"upgrade"}}}'), id="upgrade"
        ),
        pytest.param(b"Content-Length: 9", id="in the middle of a word"),
    ],
)
@pytest.mark.proves("F71", "F79")
def test_a_daemon_that_is_leaving_is_asked_for_once_more(home: DaemonHome, farewell: bytes) -> None:
    answer = framed(b'{"jsonrpc":"2.0","id":0,"result":"%b"}' % b"so\n".hex().encode())
    with impostor(home, [farewell, answer]) as said:
        assert home.run_hook(TOUCHED).stdout == b"so\n"
    assert len(said) == 2
    assert said[0] == said[1]


def test_setup_gives_silent_hooks_the_time_by_which_they_are_known() -> None:
    assert SILENT_MILLISECONDS / 1000 == relay.SILENT_SECONDS


def test_the_bytes_of_the_one_message_are_these() -> None:
    body = (
        b'{"jsonrpc":"2.0","id":0,"method":"hook","params":{"protocol":%d,"build":%d,"host":"claude-code",'
        b'"cwd":"2fff","seconds":8.0,"environment":"413d42","event":"7b7d"}}' % (PROTOCOL, BUILD)
    )
    assert relay.request("claude-code", b"/\xff", b"{}", packed({"A": "B"})) == framed(body)


def test_the_daemon_reads_what_the_hook_writes_and_the_other_way_round() -> None:
    event = bytes(range(256))
    peer = Peer()
    (body,) = FrameDecoder().feed(relay.request("plain", b"/w", event, packed({"A": "B", "C": "\udcff"})))
    asked = peer.receive(body)
    assert isinstance(asked, Requested)
    call = msgspec.json.decode(asked.params, type=HookCall)
    assert (call.protocol, call.build, call.host) == (PROTOCOL, BUILD, "plain")
    assert (bytes.fromhex(call.cwd), bytes.fromhex(call.event)) == (b"/w", event)
    assert bytes.fromhex(call.environment) == b"A=B\0C=\xff"
    (answer,) = FrameDecoder().feed(peer.reply(asked.id, event.hex()))
    assert relay.printed(answer) == event


@pytest.mark.parametrize("host", ["", "a b", 'a"b', "ü", "a\\"])
def test_an_impossible_host_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(host)}$"):
        relay.request(host, b"/", b"", "")


@pytest.mark.proves("HOOK-2")
def test_a_warm_hook_imports_next_to_nothing(home: DaemonHome) -> None:
    answer = framed(b'{"jsonrpc":"2.0","id":0,"result":""}')
    with impostor(home, [answer]):
        hook = _imports(home, HOOK, "plain")
    extra = hook - _imports(home, "-c", "import os")
    assert extra == {
        "_socket", "pilotfish", "pilotfish.ipc", "pilotfish.ipc.hook_program", "pilotfish.ipc.rendezvous",
    }  # fmt: skip


def _imports(home: DaemonHome, *program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", *program],
        input=b"{}",
        capture_output=True,
        cwd=home.root,
        env=home.environment,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()[1:]}


@pytest.mark.proves("DIAG-5", "HOOK-2")
def test_the_socket_waits_for_as_long_as_the_program_may(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def connect(_place: object, seconds: float) -> None:
        waits.append(seconds)
        raise ConnectionError

    monkeypatch.setattr(relay, "connect", connect)
    with pytest.raises(ConnectionError):
        relay.relay("llxprt", b"{}", 13.0)
    assert waits == [13.0, 13.0]
