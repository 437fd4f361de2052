"""The real daemon: one, shared, and gone without a trace."""

import json
import os
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from pilotfish.errors import Code, Failure, Refused, Unavailable
from support.daemon.homes import DaemonHome, ended
from support.process_tree import below

pytestmark = pytest.mark.slow

HOVER = {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1}
DEFINITION = {"operation": "goToDefinition", "filePath": "a.x", "line": 1, "character": 1}


@pytest.mark.proves("POOL-6", "T22", "T42")
def test_a_daemon_is_started_for_whoever_needs_it_and_a_second_session_shares_its_server(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    with home.link(host="pi") as first, home.link(host="opencode") as second:
        assert first.welcome["pid"] == second.welcome["pid"]
        assert "bad word" in first.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        before = {member.pid for member in below(int(first.welcome["pid"]))}
        assert "bad word" in second.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        assert second.request("ask", HOVER)["data"]["contents"] == ["a word"]
        assert {member.pid for member in below(int(first.welcome["pid"]))} == before
        canary = {"paths": ["a.x"], "kind": "edit", "texts": {"a.x": "bad CANARY\n"}}
        assert "bad word" in second.request("touched", canary)["text"]
        assert "CANARY" not in home.log
        about = first.request("about")
        assert about["servers"] == {"toy": 1}
        assert sorted(session["host"] for session in about["sessions"]) == ["opencode", "pi"]
    place = home.place
    assert stat.S_IMODE(os.stat(place.folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(place.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(place.lock).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(place.log).st_mode) == 0o600


def test_the_daemon_has_no_folder_and_no_terminal_and_belongs_to_nobody(home: DaemonHome) -> None:
    with home.control(start=True) as link:
        pid = link.welcome["pid"]
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
        assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2)} == {home.place.log}
        parent, group, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1:4]
        assert int(parent) != os.getpid()
        assert int(session) not in {os.getsid(0), pid}
        assert int(group) == int(session)
        soft = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "open files" in line)
        assert int(soft.split()[3]) >= 1024


@pytest.mark.proves("F65", "POOL-5", "P1", "A13.8")
def test_kill_9_of_the_daemon_leaves_nothing_and_the_next_client_starts_a_clean_one(home: DaemonHome) -> None:
    home.configure("prolific")
    home.write("a.x", "bad\n")
    with home.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        pid = int(link.welcome["pid"])
        tree = [member.pid for member in below(pid)]
        assert len(tree) >= 3, "a supervisor, a server and its child"
        os.kill(pid, signal.SIGKILL)
        assert [left for left in (pid, *tree) if not ended(left)] == []
        with pytest.raises(Unavailable):
            link.request("about")
    assert home.processes() == {}
    assert Path(home.place.socket).exists(), "a dead daemon leaves its socket"
    with home.link() as link:
        assert link.welcome["pid"] != pid
        assert f"ended without a word: killed, or out of memory pid={pid}\n" in home.log
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]


@pytest.mark.proves("F66", "P3")
@pytest.mark.parametrize(
    ("number", "scenario"),
    [
        pytest.param(signal.SIGTERM, "answering", id="SIGTERM"),
        pytest.param(signal.SIGTERM, "prolific", id="SIGTERM with a stubborn server"),
        pytest.param(signal.SIGINT, "answering", id="SIGINT"),
        pytest.param(signal.SIGHUP, "answering", id="SIGHUP"),
    ],
)
def test_a_signal_stops_everything_and_clients_are_told(
    home: DaemonHome, number: signal.Signals, scenario: str
) -> None:
    home.configure(scenario)
    home.write("a.x", "bad\n")
    with home.link() as link:
        link.request("check", {"paths": ["a.x"]})
        pid = int(link.welcome["pid"])
        tree = [member.pid for member in below(pid)]
        os.kill(pid, number)
        assert [left for left in (pid, *tree) if not ended(left)] == []
        with pytest.raises(Unavailable) as told:
            link.request("ask", DEFINITION)
        assert (told.value.code, number.name in told.value.message) == (Code.SHUTTING_DOWN, True)
    assert not Path(home.place.socket).exists()
    assert f"ended why={number.name}" in home.log


def test_stop_answers_before_it_stops(home: DaemonHome) -> None:
    with home.control(start=True) as link:
        assert link.request("stop") is True
        assert ended(int(link.welcome["pid"]))
    with pytest.raises(Unavailable) as none:
        home.control()
    assert none.value.code is Code.NOT_FOUND


def test_nothing_stays_in_the_temporary_folder(home: DaemonHome) -> None:
    """A server that nobody trusts has its own folders by a link there, where their names are long."""
    home.write("a.x", "bad\n")
    with tempfile.TemporaryDirectory(prefix="links-", dir="/tmp") as folder:
        home.environment["TMPDIR"] = folder
        with home.link() as link:
            assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
            assert [name.split("-")[3] for name in os.listdir(folder)] == [str(link.welcome["pid"])]
            link.request("stop")
            assert ended(int(link.welcome["pid"]))
        assert os.listdir(folder) == []


def test_a_daemon_that_is_ending_is_waited_for_and_then_replaced(home: DaemonHome) -> None:
    with home.control(start=True) as link:
        link.request("stop")
        with home.control(start=True) as next_one:
            assert next_one.welcome["pid"] != link.welcome["pid"]
    assert home.daemons() == [next_one.welcome["pid"]]


def test_an_idle_daemon_ends_by_itself(home: DaemonHome) -> None:
    home.environment["PILOTFISH_IDLE_SECONDS"] = "0"
    with home.link() as link:
        pid = int(link.welcome["pid"])
        assert link.request("about")["pid"] == pid
    assert ended(pid)
    assert "ended why=idle" in home.log


@pytest.mark.proves("F71", "F92")
def test_newer_code_gets_a_newer_daemon_at_once(home: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with home.control(start=True) as link:
        old = int(link.welcome["pid"])
    monkeypatch.setattr("pilotfish.ipc.client.BUILD", link.welcome["build"] + 1)
    with pytest.raises(Unavailable) as refused:
        home.link()
    # The daemon that comes next is as old as the files are, which only this test says have changed.
    assert refused.value.code is Code.UPGRADE
    assert ended(old)
    assert home.log.count("started pid=") >= 2


@pytest.mark.proves("MCP-1")
def test_a_connection_becomes_one_of_mcp(home: DaemonHome) -> None:
    def answer(end: socket.socket, message: dict[str, Any]) -> Any:
        end.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode() + b"\n")
        with end.makefile("rb") as lines:
            return json.loads(lines.readline())["result"]

    capable = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with socket.socket(fileno=home.link("claude-code").upgraded("mcp", {"tools": "lsp"}).detach()) as end:
        assert answer(end, {"method": "initialize", "params": capable})["protocolVersion"] == "2025-06-18"
        end.sendall(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        assert [tool["name"] for tool in answer(end, {"method": "tools/list"})["tools"]] == ["lsp"]
        with home.control() as link:
            assert [session["host"] for session in link.request("about")["sessions"]] == ["claude-code"]
    with home.control() as link:
        while link.request("about")["sessions"]:
            pass


# --- Exactly one ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("F68", "F69", "P21")
def test_sixteen_racers_find_one_daemon(home: DaemonHome, pytestconfig: pytest.Config) -> None:
    rounds = int(str(pytestconfig.getoption("--rounds")))
    racers = 16
    barrier = Barrier(racers)

    def race(_: int) -> int:
        barrier.wait()
        with home.control(start=True) as link:
            return int(link.welcome["pid"])

    with ThreadPoolExecutor(racers) as pool:
        for number in range(rounds):
            winners = set(pool.map(race, range(racers)))
            assert len(winners) == 1, f"round {number}: {winners}"
            assert home.daemons() == list(winners)
            # The next round finds a stale socket, and locks that a dead process held.
            home.kill_all()
            assert Path(home.place.socket).exists()


def make_file(path: Path) -> None:
    path.write_text("precious")


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def make_foreign(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))
    os.chown(path, 65534, 65534)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.proves("F69", "T22", "T23")
@pytest.mark.parametrize(
    "obstacle",
    [make_file, make_folder, make_link, pytest.param(make_foreign, marks=AS_ROOT)],
    ids=lambda obstacle: obstacle.__name__,
)
def test_what_is_in_the_way_of_the_socket_is_neither_used_nor_removed(
    home: DaemonHome, obstacle: Callable[[Path], None]
) -> None:
    path = Path(home.place.socket)
    path.parent.mkdir(parents=True, mode=0o700)
    obstacle(path)
    with pytest.raises(Refused) as refused:
        home.link()
    assert refused.value.code is Code.UNTRUSTED
    assert os.path.lexists(path)
    assert home.run_hook(b"{}").stdout == b""
    assert home.processes() == {}


def open_to_others(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def a_link(folder: Path) -> None:
    target = folder.parent / "target"
    target.mkdir(parents=True, mode=0o700)
    folder.symlink_to(target)


def anothers(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    os.chown(folder, 65534, 65534)


@pytest.mark.proves("T22", "T23")
@pytest.mark.parametrize(
    "make",
    [open_to_others, a_link, pytest.param(anothers, marks=AS_ROOT)],
    ids=lambda make: make.__name__,
)
def test_a_folder_that_is_not_ours_alone_is_not_used(home: DaemonHome, make: Callable[[Path], None]) -> None:
    make(Path(home.place.folder))
    with pytest.raises(Failure) as failed:
        home.link()
    assert failed.value.code is Code.UNTRUSTED
    assert home.processes() == {}


@pytest.mark.proves("F70")
def test_a_path_that_is_too_long_for_a_socket_is_replaced_by_a_short_private_one(
    home: DaemonHome, tmp_path: Path
) -> None:
    home.environment["PILOTFISH_HOME"] = str(tmp_path / ("long" * 30))
    place = home.place
    try:
        with home.control(start=True) as link:
            assert link.request("about")["socket"] == place.socket
        assert place.socket_folder != place.folder
        assert stat.S_IMODE(os.stat(place.socket_folder).st_mode) == 0o700
        assert home.place.socket == place.socket
    finally:
        home.kill_all()
        Path(place.socket).unlink()
        Path(place.socket_folder).rmdir()


def remove_socket(home: DaemonHome) -> None:
    Path(home.place.socket).unlink()


def remove_state(home: DaemonHome) -> None:
    shutil.rmtree(home.place.state)


def remove_lock(home: DaemonHome) -> None:
    Path(home.place.lock).unlink()


@pytest.mark.proves("F69", "F68", "F104", "A14.24")
@pytest.mark.parametrize("remove", [remove_socket, remove_state, remove_lock])
def test_a_daemon_that_nobody_can_find_ends_and_the_next_call_starts_another(
    home: DaemonHome, remove: Callable[[DaemonHome], None]
) -> None:
    home.write("a.x", "bad\n")
    event = json.dumps({"files": ["a.x"], "kind": "edit"}).encode()
    assert b"bad word" in home.run_hook(event).stdout
    (old,) = home.daemons()
    remove(home)
    # At once, and not when it happens to look.
    assert b"bad word" in home.run_hook(event).stdout
    assert ended(old)
    (new,) = home.daemons()
    assert new != old
    assert len([line for line in home.processes().values() if "scenarios" in line and "supervisor" not in line]) == 1
