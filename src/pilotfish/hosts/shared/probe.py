"""Tries what a host would start: a real event through the real program to the real daemon.

The event is the begin of a conversation in an empty folder, which the daemon then lists; its end follows. No language
server is started for it.
"""

import json
import os
import select
import subprocess
import tempfile
import uuid
from functools import cache

from pilotfish.errors import Failure
from pilotfish.hosts.shared.host_spec import HostSpec
from pilotfish.hosts.shared.programs import Programs
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.protocol.frames import frame
from pilotfish.protocol.wire import Json

SECONDS = 30.0
"""For a program that starts the daemon first, on a busy machine."""

ANSWER_BYTES = 65536
"""More than the answer to `initialize` has; its begin is enough."""

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


def try_hook(host: HostSpec, programs: Programs) -> str | None:
    """What is wrong with the hook of a host; None when its event has reached the daemon."""
    conversation = f"setup {uuid.uuid4()}"
    began, ended = host.session_events
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        event = (began % (conversation, json.dumps(folder)[1:-1])).encode()
        trouble = _run(programs.hook(host.name), event, folder)
        if trouble is None and not _is_known(conversation, programs):
            trouble = "the event did not reach the daemon: see `pilotfish daemon logs`"
        _run(programs.hook(host.name), (ended % (conversation, json.dumps(folder)[1:-1])).encode(), folder)
        return trouble


def try_lint(programs: Programs) -> str | None:
    """What is wrong with Aider's linter; None when it prints nothing about a file that has no server."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        return _run([*programs.lint, "nothing.txt"], b"", folder) or try_daemon(programs)


@cache
def try_mcp_server(programs: Programs) -> str | None:
    """What is wrong with the MCP server; None when it answers `initialize`."""
    return _try_server(programs.mcp, json.dumps(INITIALIZE).encode() + b"\n")


def try_lsp(host: str, programs: Programs) -> str | None:
    """What is wrong with the language server; None when it answers `initialize`."""
    return _try_server(programs.lsp(host), frame(json.dumps(INITIALIZE).encode()))


def _try_server(command: list[str], request: bytes) -> str | None:
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, cwd="/")
    except OSError as error:
        return str(error)
    try:
        return _initialize(child, request)
    except (BrokenPipeError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: see `pilotfish daemon logs`"
    finally:
        child.kill()
        child.wait()


def _initialize(child: subprocess.Popen[bytes], request: bytes) -> str | None:
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin as stdin, child.stdout as stdout:
        # Its input stays open until it has answered: the end of the input is the end of the session.
        stdin.write(request)
        stdin.flush()
        if not select.select([stdout], [], [], SECONDS)[0]:
            return f"no answer within {SECONDS:.0f} s"
        said = os.read(stdout.fileno(), ANSWER_BYTES)
        stdin.close()
        child.wait(SECONDS)
    return None if b'"serverInfo"' in said else "it exited without an answer: see `pilotfish daemon logs`"


def try_daemon(programs: Programs) -> str | None:
    """What is wrong with the daemon, which is started if it does not run."""
    try:
        with open_link(Introduction(), _terms(programs)):
            return None
    except Failure as failure:
        return failure.message


def read_unread(programs: Programs) -> tuple[str, ...]:
    """What hosts have sent to their hooks and the daemon could not read."""
    try:
        with open_link(Introduction(), _terms(programs)) as link:
            return tuple(link.request("about").get("unread", ()))
    except Failure:
        return ()


def _run(command: list[str], event: bytes, folder: str) -> str | None:
    try:
        ended = subprocess.run(command, input=event, capture_output=True, timeout=SECONDS, cwd=folder, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ended.returncode == 0 and not ended.stdout:
        return None
    return ended.stderr.decode(errors="replace").strip() or f"it exited with status {ended.returncode}"


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
