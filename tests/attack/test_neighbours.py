"""Others on the same machine: clients of other roots, another user, and children that could tell our secrets."""

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from pilotfish.errors import Failure
from pilotfish.ipc.client import Introduction, Link, open_link
from pilotfish.ipc.rendezvous import connect
from pilotfish.system import calls
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.process_tree import environment

HOVER = {"operation": "hover", "line": 1, "character": 1}
SECRET = "hunter2-and-some-more"
NOBODY = 65534


def _probes(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to name a file on the socket."""
    yield "touched", {"paths": [path], "kind": "write"}
    yield "touched", {"paths": [path], "kind": "edit", "texts": {path: "bad\n"}}
    yield "check", {"paths": [path]}
    yield "check", {"paths": [path], "texts": {path: "bad\n"}}
    yield "ask", {**HOVER, "filePath": path}
    for operation in ("goToDefinition", "findReferences", "documentSymbol", "codeActions", "diagnostics"):
        place = {} if operation in {"documentSymbol", "diagnostics"} else {"line": 1, "character": 1}
        yield "ask", {"operation": operation, "filePath": path, **place}
    yield "ask", {"operation": "rename", "filePath": path, "line": 1, "character": 1, "newName": "n", "apply": True}
    yield "ask", {"operation": "renameFile", "filePath": path, "newPath": "stolen.x", "apply": True}


@pytest.mark.slow
@pytest.mark.proves("T24", "T45", "F77", "PATH-3")
def test_a_client_of_one_root_learns_and_changes_nothing_of_another(home: DaemonHome) -> None:
    home.write("secret.x", f"bad {SECRET}\n")
    other = home.root.parent / "other"
    other.mkdir()
    (other / "link.x").symlink_to(home.root / "secret.x")
    with home.link() as owner, _session(home, other) as thief:
        assert "bad word" in owner.request("touched", {"paths": ["secret.x"], "kind": "edit"})["text"]
        spellings = (str(home.root / "secret.x"), "../workspace/secret.x", "link.x", f"@{home.root}/secret.x")
        answers = [_answer(thief, method, params) for path in spellings for method, params in _probes(path)]
        answers += [_answer(thief, method, {}) for method in ("status", "details", "stats")]
    told = json.dumps(answers)
    assert "bad word" not in told
    assert SECRET not in told
    assert not any('"ok": true' in json.dumps(answer) for answer in answers)
    assert (home.root / "secret.x").read_text() == f"bad {SECRET}\n"
    assert sorted(path.name for path in other.iterdir()) == ["link.x"]


@pytest.mark.proves("T45", "DIAG-9")
def test_a_text_that_one_client_only_supposes_is_nobody_elses(home: DaemonHome) -> None:
    home.write("a.x", "good\n")
    with home.link(host="pi") as one, home.link(host="pi") as other:
        assert other.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"] == ""
        supposed = one.request("check", {"paths": ["a.x"], "texts": {"a.x": "bad\n"}})
        assert len(supposed["data"]["a.x"]) == 1
        seen = other.request("check", {"paths": ["a.x"]})
        assert (seen["meta"]["state"], seen["data"]) == ("fresh", {"a.x": []})


HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}'


@pytest.mark.proves("T26", "F75", "A16.4")
@pytest.mark.parametrize("word", [b"", b"Content-Length: %d\r\n\r\n%b" % (len(HELLO), HELLO)], ids=["silent", "hello"])
def test_a_thousand_connections_at_once_keep_no_hook_out(home: DaemonHome, word: bytes) -> None:
    home.write("a.x", "bad\n")
    home.control(start=True).close()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    calls.allow_descriptors(4096)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        for _ in range(1000):
            end = stack.enter_context(closing(connect(home.place, WAIT_SECONDS)))
            with suppress(BrokenPipeError):
                end.sendall(word)
        assert b"bad word" in home.run_hook(b'{"files":["a.x"]}').stdout
        if not word:
            home.link().close()


@pytest.mark.proves("T12", "T21", "T35", "T42")
def test_secrets_of_the_user_reach_neither_servers_nor_logs_nor_process_lists(home: DaemonHome) -> None:
    names = (
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "SSH_AUTH_SOCK",
        "AWS_SECRET_ACCESS_KEY",
        "PILOTFISH_TOKEN",
        "NODE_OPTIONS",
    )
    home.environment.update(dict.fromkeys(names, SECRET))
    home.write("a.x", f"bad {SECRET}\n")
    with home.link() as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        (daemon,) = home.daemons()
        # The daemon and the supervisors are the user's own; what they run is not.
        servers = [pid for pid, command in home.processes().items() if pid != daemon and "supervisor" not in command]
        assert len(servers) == 1
        assert SECRET not in str(environment(servers[0]))
        assert SECRET not in str(home.processes())
    logs = Path(home.place.log).parent
    assert [
        file.name for file in logs.rglob("*") if file.is_file() and SECRET in file.read_text(errors="replace")
    ] == []


@pytest.mark.proves("T22", "T23")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user for a moment")
def test_another_user_of_this_machine_gets_no_word(home: DaemonHome) -> None:
    home.control(start=True).close()
    for folder in (*Path(home.place.socket).parents,):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    Path(home.place.socket).chmod(0o777)
    program = (
        "import os, socket, sys\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "end = socket.socket(socket.AF_UNIX); end.connect(sys.argv[1]); end.settimeout(20)\n"
        "try:\n    end.sendall(b'x' * 100); sys.exit(len(end.recv(100)))\n"
        "except ConnectionError:\n    sys.exit(0)\n"
    )
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-c", program, home.place.socket],
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "refused another user" in home.log


@pytest.mark.proves("T20", "T22")
def test_a_daemon_listens_at_its_socket_and_nowhere_else(home: DaemonHome) -> None:
    with home.link() as link:
        link.request("about")
        (daemon,) = home.daemons()
        inodes = {os.readlink(f"/proc/{daemon}/fd/{number}") for number in os.listdir(f"/proc/{daemon}/fd")}
        listening = {f"socket:[{line.split()[9]}]" for line in _internet() if line.split()[3] == "0A"}
        assert inodes & listening == set()
        assert not any(line.split()[-1].startswith("@") for line in _unix() if f"socket:[{line.split()[6]}]" in inodes)


def _internet() -> list[str]:
    return [line for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]


def _unix() -> list[str]:
    """Sockets with a name."""
    return [line for line in Path("/proc/net/unix").read_text().splitlines()[1:] if len(line.split()) > 7]


def _session(home: DaemonHome, root: Path) -> Link:
    return open_link(Introduction(cwd=str(root)), home.terms())


def _answer(link: Link, method: str, params: dict[str, Any]) -> Any:
    try:
        return link.request(method, params)
    except Failure as failure:
        return f"{failure.code} {failure.message}"
