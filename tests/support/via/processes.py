"""Every way in as the user's own programs use it: real processes and a real daemon, nothing of this process between.

Each way has the servers of some files say what they find, and returns everything that was printed or answered.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any, Protocol

from support.clients.frames import framed
from support.clients.http import http_served
from support.daemon.homes import WAIT_SECONDS, DaemonHome


class Way(Protocol):
    def __call__(self, home: DaemonHome, /, *files: str) -> str: ...


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def run(home: DaemonHome, *arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """`pilotfish ARGUMENTS` in the workspace. `-I`: what the variables do to this Python is not what is tested."""
    return subprocess.run(
        [sys.executable, "-I", "-m", "pilotfish", *arguments],
        input=given,
        capture_output=True,
        cwd=home.root,
        env=home.environment,
        timeout=2 * WAIT_SECONDS,
        check=False,
    )


def _printed(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode(errors="replace")


def _hook(home: DaemonHome, *files: str) -> str:
    return _printed(home.run_hook(json.dumps({"files": files, "kind": "edit"}).encode()))


def _check(home: DaemonHome, *files: str) -> str:
    return _printed(run(home, "check", *files))


def _without_daemon(home: DaemonHome, *files: str) -> str:
    return _printed(run(home, "check", "--no-daemon", *files))


def _doctor(home: DaemonHome, *_files: str) -> str:
    return _printed(run(home, "doctor"))


def _mcp(home: DaemonHome, *files: str) -> str:
    calls = [{"name": "lsp_diagnostics", "arguments": {"filePath": file}} for file in files]
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            for number, call in enumerate(calls, 2)
        ),
    ]
    given = "".join(json.dumps(message) + "\n" for message in messages)
    return _answered(home, "mcp", given.encode(), len(files))


def _http(home: DaemonHome, *files: str) -> str:
    with http_served(home) as served:
        served.ask("PUT", "/conversations/a/cwd", {"cwd": str(home.root)})
        questions = ({"operation": "diagnostics", "filePath": file} for file in files)
        answers = (served.ask("POST", "/conversations/a/lsp", question) for question in questions)
        return "".join(answer.body.decode() for answer in answers)


def _service(home: DaemonHome, *files: str) -> str:
    """LLxprt's, which it starts and ends itself."""
    start: dict[str, Any] = {"workspaceRoot": str(home.root), "config": {}}
    told = DaemonHome(home.root, {**home.environment, "LSP_BOOTSTRAP": json.dumps(start)})
    given = b""
    for number, file in enumerate(files, 2):
        params = {"filePath": str(home.root / file)}
        given += framed({"jsonrpc": "2.0", "id": number, "method": "lsp/checkFile", "params": params})
    return _answered(told, "service", given, len(files))


def _answered(home: DaemonHome, verb: str, given: bytes, count: int) -> str:
    """What `pilotfish VERB` says up to the end of its answers, which have the ids from 2 on, or to its own end."""
    answers = [re.compile(rb'"id":%d[,}]' % number) for number in range(2, count + 2)]
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "pilotfish", verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=home.root,
        env=home.environment,
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        try:
            host.stdin.write(given)
            host.stdin.flush()
            heard = b""
            while not all(answer.search(heard) for answer in answers) or heard.count(b"{") != heard.count(b"}"):
                more = os.read(host.stdout.fileno(), 65536)
                if not more:
                    break
                heard += more
            return heard.decode()
        finally:
            host.terminate()


WAYS: dict[str, Way] = {
    "hook": _hook,
    "check": _check,
    "check without a daemon": _without_daemon,
    "MCP": _mcp,
    "HTTP": _http,
    "service": _service,
    "doctor": _doctor,
}
