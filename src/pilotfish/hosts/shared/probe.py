"""Whether what a host would start works: a real event through the real program to the real daemon.

The event is the beginning of a conversation in an empty folder, which the daemon then lists; its end follows. No
language server is started for it.
"""

import json
import os
import select
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from functools import cache

from pilotfish.errors import Failure
from pilotfish.hosts.shared.programs import Programs
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.protocol.wire import Json

SECONDS = 30.0
"""For a program that starts the daemon first, on a busy machine."""

EVENTS: Mapping[str, tuple[str, str]] = {
    "cline": (
        '{"hookName":"agent_start","taskId":"%s","workspaceRoots":["%s"]}',
        '{"hookName":"session_shutdown","taskId":"%s","workspaceRoots":["%s"]}',
    ),
}
"""How a host says that a conversation begins and ends, where it does not say it as most do."""

USUAL = (
    '{"hook_event_name":"SessionStart","session_id":"%s","cwd":"%s"}',
    '{"hook_event_name":"SessionEnd","session_id":"%s","cwd":"%s"}',
)

ANSWER_BYTES = 65536
"""More than any greeting has; its first words are enough."""

INITIALIZE: Json = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "pilotfish setup", "version": "1"},
    },
}


def hook_trouble(host: str, programs: Programs) -> str | None:
    """What is wrong with the hook of a host; None when the daemon has heard its event."""
    conversation = f"setup {uuid.uuid4()}"
    began, ended = EVENTS.get(host, USUAL)
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        event = (began % (conversation, json.dumps(folder)[1:-1])).encode()
        trouble = _trouble(programs.hook(host), event, folder)
        if trouble is None and not _is_known(conversation, programs):
            trouble = "the daemon has not heard of it: see `pilotfish daemon logs`"
        _trouble(programs.hook(host), (ended % (conversation, json.dumps(folder)[1:-1])).encode(), folder)
        return trouble


def lint_trouble(programs: Programs) -> str | None:
    """What is wrong with Aider's linter; None when it has nothing to say about a text without a server."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        return _trouble([*programs.lint, "nothing.txt"], b"", folder) or daemon_trouble(programs)


@cache
def mcp_trouble(programs: Programs) -> str | None:
    """What is wrong with the MCP server; None when it greets back."""
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen(programs.mcp, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, cwd="/")
    except OSError as error:
        return str(error)
    try:
        return _greeted(child)
    except (BrokenPipeError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: see `pilotfish daemon logs`"
    finally:
        child.kill()
        child.wait()


def _greeted(child: subprocess.Popen[bytes]) -> str | None:
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin as hearing, child.stdout as saying:
        # Its input stays open until it has answered: the end of it is the end of the conversation.
        hearing.write(json.dumps(INITIALIZE).encode() + b"\n")
        hearing.flush()
        if not select.select([saying], [], [], SECONDS)[0]:
            return f"no answer within {SECONDS:.0f} s"
        said = os.read(saying.fileno(), ANSWER_BYTES)
        hearing.close()
        child.wait(SECONDS)
    return None if b'"serverInfo"' in said else "it ended without an answer: see `pilotfish daemon logs`"


def daemon_trouble(programs: Programs) -> str | None:
    """What is wrong with the daemon, which is started if it does not run."""
    try:
        with open_link(Introduction(), _terms(programs)):
            return None
    except Failure as failure:
        return failure.message


def _trouble(command: list[str], event: bytes, folder: str) -> str | None:
    try:
        ended = subprocess.run(command, input=event, capture_output=True, timeout=SECONDS, cwd=folder, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ended.returncode == 0 and not ended.stdout:
        return None
    return ended.stderr.decode(errors="replace").strip() or f"it ended with {ended.returncode}"


def _is_known(conversation: str, programs: Programs) -> bool:
    try:
        with open_link(Introduction(), _terms(programs)) as link:
            sessions = link.request("about")["sessions"]
    except Failure:
        return False
    return any(session["conversation"] == conversation for session in sessions)


def _terms(programs: Programs) -> Terms:
    home = {"PILOTFISH_HOME": programs.home} if programs.home else {}
    return Terms({**os.environ, **home})
