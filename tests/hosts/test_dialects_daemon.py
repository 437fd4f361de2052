"""What the daemon makes of hosts' events: the same findings for all, in the words and the size of each."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hosts.test_dialects import CLAUDE, CLINE, CODEX, EDIT, FAILED, GEMINI, QWEN, WRITE, batch
from pilotfish.hosts.shared.host_spec import installed_programs
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from support.daemon.desks import Desk, desk_on
from support.daemon.homes import WAIT_SECONDS, DaemonHome, daemon_home
from support.servers.script import Script
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


LONG = "a <word> & more of \u00e9 " * 30
"""More than is shown of one message."""


def verbose(script: Script) -> None:
    """One long diagnosis for every line with the word `bad`."""
    script.capabilities = {
        "textDocumentSync": 1,
        "diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False},
    }
    texts: dict[str, str] = {}

    def opened(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]

    def changed(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]

    def pulled(params: Any) -> Any:
        lines = texts[params["textDocument"]["uri"]].splitlines()
        return {"kind": "full", "items": [_diagnosed(line) for line, text in enumerate(lines) if "bad" in text]}

    script.on("textDocument/didOpen", opened)
    script.on("textDocument/didChange", changed)
    script.on("textDocument/diagnostic", pulled)
    script.ignore("textDocument/didSave", "textDocument/didClose", "workspace/didChangeWatchedFiles")


def _diagnosed(line: int) -> Any:
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 3}}
    return {"range": place, "severity": 1, "message": f"no {line} {LONG}"}


async def heard(desk: Desk, host: str, event: Mapping[str, Any]) -> str:
    """What a host's model gets to read after an event in the workspace; nothing when nothing is printed."""
    root = str(desk.ground.root)
    spoken = json.dumps({**event, "cwd": root}).replace("/w/", f"{root}/").replace('"/w"', json.dumps(root))
    call = {"protocol": PROTOCOL, "build": BUILD, "host": host, "cwd": root.encode().hex()}
    line = desk.connect()
    printed = bytes.fromhex(await line.request("hook", {**call, "event": spoken.encode().hex()}))
    line.hang_up()
    await line.closed.wait()
    if not printed:
        return ""
    answer = json.loads(printed)
    inner = answer.get("hookSpecificOutput", {})
    return inner.get("additionalContext") or answer["contextModification"]


def named(event: Mapping[str, Any], name: str = "a.x") -> Mapping[str, Any]:
    return json.loads(json.dumps(event).replace("a.py", name))


EDITS = {
    "claude-code": {**CLAUDE, **WRITE},
    "codex": {**CODEX, "tool_input": {"command": "*** Begin Patch\n*** Update File: a.py\n+bad\n*** End Patch"}},
    "gemini": GEMINI,
    "qwen": QWEN,
    "llxprt": GEMINI,
    "cline": CLINE,
}
PLAIN = {"gemini", "qwen"}
LIMITS = {"codex": 7000}


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1", "FMT-8")
@pytest.mark.parametrize("host", EDITS)
async def test_a_host_hears_of_errors_in_its_own_way_and_of_nothing_else(host: str, tmp_path: Path) -> None:
    async with desk_on(tmp_path, verbose) as desk:
        desk.ground.write("a.x", "bad\n" * 60)
        text = await heard(desk, host, named(EDITS[host]))
        assert "ERROR [1:1] no 0" in text
        assert "... and " in text
        assert len(text.encode()) <= LIMITS.get(host, 9000)
        assert ("<" in text or ">" in text) is (host not in PLAIN)
        assert text.splitlines()[-1].startswith("The edit was applied")
        desk.ground.write("a.x", "good\n")
        assert await heard(desk, host, named(EDITS[host])) == ""


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1", "FMT-8")
async def test_nobody_hears_anything_after_an_edit_that_failed(tmp_path: Path) -> None:
    failed = {
        "claude-code": {**CLAUDE, **WRITE, "hook_event_name": "PostToolUseFailure"},
        "codex": {**EDITS["codex"], "tool_response": "Exit code: 1\n"},
        "gemini": {**GEMINI, "tool_response": FAILED},
        "cline": {**CLINE, "postToolUse": {"success": False}},
    }
    async with desk_on(tmp_path, verbose) as desk:
        desk.ground.write("a.x", "bad\n")
        for host, event in failed.items():
            assert await heard(desk, host, named(event)) == ""
        assert desk.ground.started == {}


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1")
async def test_a_batch_is_answered_once_and_only_with_what_nobody_has_heard(tmp_path: Path) -> None:
    first, second = named({**CLAUDE, **EDIT}, "a.x"), named({**CLAUDE, **EDIT}, "b.x")
    both = batch(first, second)
    async with desk_on(tmp_path, verbose) as desk:
        desk.ground.write("a.x", "bad\n")
        desk.ground.write("b.x", "good\n")
        assert "no 0" in await heard(desk, "claude-code", first)
        assert await heard(desk, "claude-code", second) == ""
        assert await heard(desk, "claude-code", both) == ""
        desk.ground.write("a.x", "bad\n")
        desk.ground.write("b.x", "good\nbad\n")
        text = await heard(desk, "claude-code", both)
        assert "no 1" in text
        assert "no 0" not in text
        assert await heard(desk, "claude-code", both) == ""


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1", "DIAG-15")
@pytest.mark.parametrize("begins", [True, False], ids=["heard from its begin", "heard at its end only"])
async def test_what_the_first_command_of_a_conversation_changes_is_its_work(begins: bool, tmp_path: Path) -> None:
    command = {**CLAUDE, "tool_name": "Bash", "tool_input": {"command": "echo bad > a.x"}}
    async with desk_on(tmp_path, verbose) as desk:
        if begins:
            assert await heard(desk, "claude-code", {**command, "hook_event_name": "PreToolUse"}) == ""
        desk.ground.write("a.x", "bad\n")
        written = PathChange(AbsPath(str(desk.ground.root / "a.x")), Change.CREATED)
        desk.ground.service.conversations.noticed([written])
        assert ("no 0" in await heard(desk, "claude-code", command)) is begins


# --- Aider ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path) as home:
        yield home


def linted(home: DaemonHome, *files: str) -> tuple[int, bytes]:
    command = [*installed_programs({}).lint, *files]
    done = subprocess.run(
        command, capture_output=True, cwd=home.root, env=home.environment, timeout=WAIT_SECONDS, check=False
    )
    assert done.stderr == b""
    return done.returncode, done.stdout


@pytest.mark.proves("HOOK-1", "HOOK-2", "FMT-8", "T13")
def test_the_linter_of_aider_fails_when_there_is_something_to_fix_and_only_then(user: DaemonHome) -> None:
    with user.control(start=True):
        # The first event starts the server, which may take longer than Aider waits.
        user.write("a.x", "bad\n")
        user.write("-$(touch pwned) b.x", "bad\n")
        user.run_hook(b'{"files":["a.x"]}')
    status, text = linted(user, "a.x", "-$(touch pwned) b.x")
    assert status == 1
    assert b"File: a.x\nERROR [1:1] bad word" in text
    assert b"File: -$(touch pwned) b.x\nERROR [1:1] bad word" in text
    user.write("a.x", "good\n")
    assert linted(user, "a.x") == (0, b"")
    assert linted(user, "gone.x") == (0, b"")
    assert linted(user) == (0, b"")
    assert not (user.root / "pwned").exists()


@pytest.mark.slow
@pytest.mark.proves("HOOK-2", "FMT-8", "F82")
def test_the_linter_of_aider_is_silent_when_the_daemon_is_not_well(user: DaemonHome, tmp_path: Path) -> None:
    user.write("a.x", "bad\n")
    with user.control(start=True) as link:
        os.kill(int(link.welcome["pid"]), signal.SIGSTOP)
        assert linted(user, "a.x") == (0, b"")
        os.kill(int(link.welcome["pid"]), signal.SIGCONT)
    (tmp_path / "file").write_text("no folder")
    homeless = {**user.environment, "PILOTFISH_HOME": str(tmp_path / "file" / "below")}
    assert linted(DaemonHome(user.root, homeless), "a.x") == (0, b"")
