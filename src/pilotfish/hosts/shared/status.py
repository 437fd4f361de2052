"""Which files of a host are wired in one scope, and whether what they start works.

What a host would start is tried: a real event goes through the real program to the real daemon. The event is the begin
of a conversation in an empty folder, which the daemon then lists; its end follows. No language server is started for
it.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec.structs import replace

from pilotfish.errors import Failure
from pilotfish.hosts.shared.changes import Receipts, read_state
from pilotfish.hosts.shared.host_spec import HostSpec, Programs, SetupScope, Where, WiredFile
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.protocol.frames import frame
from pilotfish.protocol.wire import Json
from pilotfish.system.real_path import real_path

WORDS = {
    "wired": "wired",
    "outdated": "wired by another installation or version: run setup again, or pilotfish setup --repair",
    "missing": "not wired",
    "unused": "not wired: a file of this name exists and is not ours",
}


@dataclass(frozen=True, slots=True)
class HostStatus:
    name: str
    title: str
    scope: SetupScope
    files: dict[str, str]
    """By path: its state in words, or why it cannot be read."""
    trouble: tuple[str, ...]
    installed: bool
    unseen: str = ""

    def lines(self) -> list[str]:
        verdict = "not installed" if not self.installed else "does not work" if self.trouble else "works"
        lines = [f"{self.title} ({self.scope}): {verdict}"]
        lines += [f"  {path}: {state}" for path, state in self.files.items()]
        lines += [f"  {trouble}" for trouble in self.trouble]
        return [*lines, *([f"  {self.unseen}"] if self.unseen else [])]

    def as_json(self) -> Json:
        return {
            "host": self.name,
            "scope": self.scope,
            "works": self.installed and not self.trouble,
            "installed": self.installed,
            "files": dict(self.files),
            "trouble": list(self.trouble),
        }


def check_host(host: HostSpec, where: Where, receipts: Receipts) -> HostStatus | None:
    """Its status; None when none of its files is wired."""
    where, files = _way_in_use(host, where, receipts)
    if not any(said in {WORDS["wired"], WORDS["outdated"]} for said in files.values()):
        return None
    trouble = [f"{path}: {said}" for path, said in files.items() if said not in {WORDS["wired"], WORDS["unused"]}]
    trouble += _try(host, where)
    installed = is_installed(host, where, receipts)
    return HostStatus(host.name, host.title, where.scope, files, tuple(trouble), installed, host.unseen)


def wired_otherwise(host: HostSpec, where: Where, receipts: Receipts) -> Where | None:
    """Where and how a host is wired by another installation or version; None when it is not."""
    used, files = _way_in_use(host, where, receipts)
    return used if WORDS["outdated"] in files.values() else None


def _way_in_use(host: HostSpec, where: Where, receipts: Receipts) -> tuple[Where, dict[str, str]]:
    """Of the ways in which the host may call us the one that is in use, and the state of each of its files."""

    def state(file: WiredFile) -> str:
        try:
            return WORDS[read_state(file, receipts)]
        except Failure as failure:
            return failure.message

    def fitness(files: dict[str, str]) -> tuple[int, int]:
        states = list(files.values())
        return states.count(WORDS["wired"]), states.count(WORDS["outdated"])

    ways = [replace(where, way=way) for way in host.ways]
    found = [(way, {file.path: state(file) for file in host.files(way)}) for way in ways]
    return max(found, key=lambda one: fitness(one[1]))


def _try(host: HostSpec, where: Where) -> list[str]:
    troubles: dict[str, str | None] = {}
    for probe in host.probes:
        match "lsp" if probe == "hook" and where.way == "lsp" else probe:
            case "hook":
                troubles["hook"] = try_hook(host, where.programs)
            case "lint":
                troubles["linter"] = try_lint(where.programs)
            case "mcp":
                troubles["MCP server"] = try_mcp_server(where.programs)
            case "lsp":
                troubles["language server"] = try_server(where.programs.lsp(host.name), frame(INITIALIZE))
            case "daemon":
                troubles["daemon"] = try_daemon(where.programs)
    return [f"the {what} fails: {why}" for what, why in troubles.items() if why]


SECONDS = 30.0
"""For a program that starts the daemon first, on a busy machine."""

ANSWER_BYTES = 65536
"""More than the answer to `initialize` has; its begin is enough."""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"pilotfish setup","version":"1"}}}'
)


def try_hook(host: HostSpec, programs: Programs) -> str | None:
    """What is wrong with the hook of a host; None when its event has reached the daemon."""
    conversation = f"setup {uuid.uuid4()}"
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        began, ended = ((one % (conversation, json.dumps(folder)[1:-1])).encode() for one in host.session_events)
        trouble = _run(programs.hook(host.name), began, folder)
        if trouble is None:
            known = [session["conversation"] for session in _about(programs).get("sessions", ())]
            trouble = (
                None if conversation in known else "the event did not reach the daemon: see `pilotfish daemon logs`"
            )
        _run(programs.hook(host.name), ended, folder)
        return trouble


def try_lint(programs: Programs) -> str | None:
    """What is wrong with Aider's linter; None when it prints nothing about a file that has no server."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-setup-") as folder:
        return _run([*programs.lint, "nothing.txt"], b"", folder) or try_daemon(programs)


@cache
def try_mcp_server(programs: Programs) -> str | None:
    """What is wrong with the MCP server, which several hosts start; None when it answers `initialize`."""
    return try_server(programs.mcp, INITIALIZE + b"\n")


def try_server(command: list[str], request: bytes) -> str | None:
    """What is wrong with a server of ours; None when it answers `initialize`."""
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, cwd="/")
    except OSError as error:
        return str(error)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with child.stdin as stdin, child.stdout as stdout:
            # Its input stays open until it has answered: the end of the input is the end of the session.
            stdin.write(request)
            stdin.flush()
            if not select.select([stdout], [], [], SECONDS)[0]:
                return f"no answer within {SECONDS:.0f} s"
            said = os.read(stdout.fileno(), ANSWER_BYTES)
            stdin.close()
            child.wait(SECONDS)
    except (BrokenPipeError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: see `pilotfish daemon logs`"
    finally:
        child.kill()
        child.wait()
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
    return tuple(_about(programs).get("unread", ()))


def _run(command: list[str], event: bytes, folder: str) -> str | None:
    try:
        ended = subprocess.run(command, input=event, capture_output=True, timeout=SECONDS, cwd=folder, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if ended.returncode == 0 and not ended.stdout:
        return None
    return ended.stderr.decode(errors="replace").strip() or f"it exited with status {ended.returncode}"


def _about(programs: Programs) -> dict[str, Any]:
    """What the daemon says of itself; nothing where it cannot be asked."""
    try:
        with open_link(Introduction(), _terms(programs)) as link:
            return link.request("about")
    except Failure:
        return {}


def _terms(programs: Programs) -> Terms:
    home = {"PILOTFISH_HOME": programs.home} if programs.home else {}
    return Terms({**os.environ, **home})


def is_installed(host: HostSpec, where: Where, receipts: Receipts) -> bool:
    """Whether its program is on the PATH, or something of it in the home folder that `setup` did not put there."""
    path = where.environment.get("PATH", os.defpath)
    if any(shutil.which(name, path=path) for name in host.programs):
        return True
    return any(_has_others_files(os.path.join(where.home, name), receipts) for name in host.folders)


def _has_others_files(path: str, receipts: Receipts) -> bool:
    path = real_path(path)
    if path not in receipts.folders():
        kept = receipts.find(path)
        return os.path.exists(path) and (kept is None or kept.before is not None)
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(_has_others_files(os.path.join(path, name), receipts) for name in names)
