"""A repository whose every key tries to run `touch pwned` never does, through any verb."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from config.test_pwned import foreign_files, own_files
from pilotfish.protocol.wire import Json
from pilotfish.surfaces.cli.main import VERBS, run
from support.clients.frames import framed
from support.clients.raw_mcp import initialize, request
from support.daemon.homes import no_daemon_left

pytestmark = pytest.mark.proves("T1", "T14", "TRUST-1", "TRUST-5", "TRUST-6")

OWN = ".pilotfish/lsp.json"
ALL_FILES = [*((OWN, content) for content in own_files()), *foreign_files()]

WORDS = {
    "check": [["check", "."], ["check", "a.py", "--json"]],
    "touched": [["touched", "a.py"]],
    "symbols": [["symbols", "a.py"]],
    "workspace-symbols": [["workspace-symbols", "x"], ["workspace-symbols", "x", "--file", "a.py"]],
    "calls": [["calls", "in", "a.py:1:1"], ["calls", "out", "a.py", "x"]],
    "types": [["types", "sub", "a.py:1:1"]],
    "rename": [["rename", "a.py:1:1", "y", "--apply"]],
    "rename-file": [["rename-file", "a.py", "b.py", "--apply"]],
    "actions": [["actions", "a.py:1", "--action", "1", "--apply"]],
    "status": [["status"], ["status", "--json"]],
    "panel": [["panel"]],
    "doctor": [["doctor"], ["doctor", "--json"]],
    "logs": [["logs", "pyright"], ["logs"]],
    "trace": [["trace", "pyright"]],
    "stats": [["stats"]],
    "restart": [["restart", "pyright"]],
    "stop": [["stop", "pyright"]],
    "setup": [["setup", "--all", "--project", "--dry-run"], ["setup", "claude-code", "--project"]],
    "install": [["install"], ["install", "--list"]],
    "servers": [["servers"], ["servers", "--json"]],
    "config": [["config", "show"], ["config", "check"]],
    "trust": [["trust"], ["trust", "--list"], ["trust", "--hash", "x"]],
    "untrust": [["untrust"]],
    "tools": [["tools"]],
    "daemon": [["daemon", "status"], ["daemon", "logs"], ["daemon", "stop"]],
    "completion": [["completion", "bash"]],
    "demo": [["demo", "--help"]],
    "serve": [["serve", "--help"]],
}
"""How a verb is called; every other one is asked about a place."""

HOSTS_RUN = ("hook", "mcp", "service")
"""Verbs that are programs of their own: they talk on standard input and output."""


def calls(verb: str) -> list[list[str]]:
    return WORDS.get(verb) or [[verb, "a.py:1:1"], [verb, "x"]]


def unharmed(words: list[str]) -> None:
    """The command comes to an end of its own: one that broke down would have proven nothing."""
    assert run(words) in {0, 1, 2, 3}
    assert not (Path(os.environ["PILOTFISH_HOME"]) / "logs" / "crash.log").exists()


@pytest.fixture
def repository(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with programs of the very names that its files will want to run, in it and on the `PATH`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    # The one on the PATH stands for /usr/bin/touch: whoever starts it by whatever argument leaves the file.
    for program in (
        tools / "touch",
        tools / "pwned",
        folder / "pwned",
        folder / "node_modules/.bin/pyright-langserver",
    ):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho > {tmp_path}/pwned\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{folder}/node_modules/.bin")
    (folder / "a.py").write_text("x = 1\n")
    with no_daemon_left(os.environ["PILOTFISH_HOME"]):
        yield folder


def write(folder: Path, name: str, content: Json) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def everything() -> Json:
    """Every key of a server at once, for one that is known and one that is new."""
    servers: dict[str, Json] = {}
    for content in own_files():
        section = content.get("lsp") if isinstance(content, dict) else None
        servers |= section if isinstance(section, dict) else {}
    return {"lsp": servers}


def of_each_kind() -> Iterator[tuple[str, Json]]:
    """A file of every kind, with everything in it that goes together."""
    yield OWN, everything()
    last: dict[tuple[str, str], Json] = {}
    for name, content in foreign_files():
        keys = ",".join(content) if isinstance(content, dict) else ""
        last[name, keys] = content
    yield from ((name, content) for (name, _), content in last.items())


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in HOSTS_RUN])
def test_no_verb_runs_what_a_repository_names(verb: str, repository: Path, tmp_path: Path) -> None:
    write(repository, OWN, everything())
    for words in calls(verb):
        unharmed(words)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("by_daemon")
def test_neither_does_the_daemon(repository: Path, tmp_path: Path) -> None:
    write(repository, OWN, everything())
    for words in (["daemon", "start"], ["check", "."], ["hover", "a.py:1:1"], ["touched", "a.py"], ["daemon", "stop"]):
        unharmed(words)
    assert not (tmp_path / "pwned").exists()


HOVER = {"name": "lsp_hover", "arguments": {"filePath": "a.py", "line": 1, "character": 1}}
MCP = [initialize(), {"jsonrpc": "2.0", "method": "notifications/initialized"}, request(1, "tools/call", HOVER)]
LINES = b"".join(json.dumps(message).encode() + b"\n" for message in MCP)
CHECK = framed(request(1, "lsp/checkFile", {"filePath": "a.py", "text": "x = 1\n"}))


@pytest.mark.usefixtures("by_daemon")
@pytest.mark.parametrize(
    ("words", "said", "until"),
    [
        pytest.param(["hook", "plain"], json.dumps({"files": ["a.py"]}).encode(), None, id="hook"),
        pytest.param(["mcp"], LINES, b'"id":1', id="mcp by the daemon"),
        pytest.param(["mcp", "--in-process"], LINES, b'"id":1', id="mcp"),
        pytest.param(["service"], CHECK, b'"id":1', id="service"),
    ],
)
def test_no_program_that_hosts_run_does(
    words: list[str], said: bytes, until: bytes | None, repository: Path, tmp_path: Path
) -> None:
    write(repository, OWN, everything())
    bootstrap = json.dumps({"workspaceRoot": str(repository), "config": {}})
    assert conversation(words, said, until, {**os.environ, "LSP_BOOTSTRAP": bootstrap}) == 0
    assert not (tmp_path / "pwned").exists()


def conversation(words: list[str], said: bytes, until: bytes | None, environment: Mapping[str, str]) -> int:
    """Say something to a program of ours, hang up once it has answered, and return its exit code."""
    argv = [sys.executable, "-m", "pilotfish", *words]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with closing(process.stdin):
            process.stdin.write(said)
            process.stdin.flush()
            heard = b""
            while until is not None and until not in heard:
                more = os.read(process.stdout.fileno(), 65536)
                assert more, heard
                heard += more
    return process.returncode


@pytest.mark.parametrize(
    ("name", "content"), [pytest.param(*file, id=f"{n}-{file[0]}") for n, file in enumerate(of_each_kind())]
)
def test_no_kind_of_file_gets_anything_run(name: str, content: Json, repository: Path, tmp_path: Path) -> None:
    write(repository, name, content)
    for words in (["check", "a.py"], ["hover", "a.py:1:1"]):
        unharmed(words)
    assert not (tmp_path / "pwned").exists()


def keys(content: Json, depth: int = 3) -> str:
    """Which keys there are down to those of a server, whatever they hold."""
    if not isinstance(content, dict) or not depth:
        return ""
    return ",".join(f"{key}:{keys(value, depth - 1)}" for key, value in content.items())


FILES = [*{(name, keys(content)): (name, content) for name, content in ALL_FILES}.values()]
"""One for every key in every place; that no value of any of them gets through is proven where they are read."""

PARTS = 4
"""Each is a test of its own, so that none takes long."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_key_gets_anything_run(part: int, repository: Path, tmp_path: Path) -> None:
    assert len(FILES) > 100
    for name, content in FILES[part::PARTS]:
        write(repository, name, content)
        unharmed(["check", "a.py"])
        assert not (tmp_path / "pwned").exists(), (name, content)
        (repository / name).unlink()


def test_no_link_or_parent_folder_gets_anything_run(repository: Path, tmp_path: Path) -> None:
    write(repository, OWN, everything())
    inner = repository / "inner"
    inner.mkdir()
    (inner / "a.py").write_text("x = 1\n")
    (inner / ".pi").symlink_to(repository / ".pilotfish")
    for root in (inner, repository):
        unharmed(["check", str(root / "a.py"), "--root", str(root)])
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("verb", ["check", "hover", "touched"])
def test_with_trust_the_same_repository_does_run_it(verb: str, repository: Path, tmp_path: Path) -> None:
    """The tests above can fail: what they look for is there as soon as a person trusts the workspace."""
    trusting: Json = {"security": {"trustedProjectRoots": [str(repository)]}}
    write(tmp_path / "home" / ".config", "pilotfish/lsp.json", trusting)
    write(repository, OWN, {"lsp": {"pyright": {"command": ["pwned"], "extensions": [".py"]}}})
    run(calls(verb)[0])
    assert (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("by_daemon")
def test_with_trust_the_daemon_runs_it(repository: Path, tmp_path: Path) -> None:
    trusting: Json = {"security": {"trustedProjectRoots": [str(repository)]}}
    write(tmp_path / "home" / ".config", "pilotfish/lsp.json", trusting)
    write(repository, OWN, {"lsp": {"pyright": {"command": ["pwned"], "extensions": [".py"]}}})
    run(["check", "a.py"])
    assert (tmp_path / "pwned").exists()
