"""The daemon, the hook and the command line on Windows, as a program: `tools/wine.py` runs it with Windows' Python.

It edits a project as Claude Code does, and prints what the agent reads. Nothing of it may be left behind.
"""

import json
import ntpath
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress

import psutil

FILES = {
    "ty.toml": "",
    "lib.py": 'def greet(name: str) -> str:\n    return f"hello {name}"\n',
    "app.py": 'from lib import greet\n\nprint(greet("x"))\n',
}
ANSWER_SECONDS = 300


class Machine:
    """A user's folders below a temporary one, and the programs that a host starts in a project there."""

    def __init__(self, home: str, wheels: str) -> None:
        self.project = ntpath.join(home, "My Project")  # as people call it, and Windows writes it
        os.mkdir(self.project)
        for name, text in FILES.items():
            self.write(name, text)
        self.environment = {
            **os.environ,
            "USERPROFILE": home,
            "LOCALAPPDATA": ntpath.join(home, "AppData", "Local"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": wheels,
            "PILOTFISH_IDLE_SECONDS": "600",
        }

    def write(self, name: str, text: str) -> None:
        with open(ntpath.join(self.project, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name: str) -> str:
        with open(ntpath.join(self.project, name), encoding="utf-8") as file:
            return file.read()

    def run(self, *words: str, event: dict[str, object] | None = None) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "pilotfish", *words],
            env=self.environment,
            cwd=self.project,
            input=b"" if event is None else json.dumps(event).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_SECONDS,
            check=False,
        )
        return ran.stdout.decode()

    def tools(self) -> str:
        """The names of what an MCP client is offered."""
        information = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        said = (
            {"id": 1, "method": "initialize", "params": information},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
        )
        with subprocess.Popen(
            [sys.executable, "-m", "pilotfish", "mcp"],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.writelines(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in said)
            client.stdin.flush()
            answers = [json.loads(line) for _ in range(2) if (line := client.stdout.readline())]
            client.stdin.close()
            client.wait(ANSWER_SECONDS)
        return " ".join(tool["name"] for tool in answers[-1]["result"]["tools"])

    def hook(self, name: str, **more: object) -> str:
        event = {"session_id": "one", "cwd": self.project, "hook_event_name": name, **more}
        return self.run("hook", "claude-code", "--deadline-ms", "120000", event=event)


def feedback(machine: Machine, name: str, before: str, after: str) -> str:
    """What the agent reads after an edit."""
    path = ntpath.join(machine.project, name)
    edit = {"file_path": path, "old_string": before, "new_string": after}
    machine.hook("PreToolUse", tool_name="Edit", tool_input=edit)
    machine.write(name, FILES[name].replace(before, after))
    response = {"filePath": path, "success": True}
    printed = machine.hook("PostToolUse", tool_name="Edit", tool_input=edit, tool_response=response)
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""


def held(what: str, text: str, *expected: str) -> None:
    print(text.rstrip(), flush=True)
    missing = [word for word in expected if word not in text]
    if missing:
        raise AssertionError(f"{what}: {missing} is missing")
    print("held:", what, flush=True)


def prove(machine: Machine) -> None:
    held("a server is installed", machine.run("install", "ty"), "installed ty==0.0.100 from PyPI")
    held("it is found", machine.run("servers", "ty"), "installed", "tools/servers/ty-")
    held("a check without a daemon", machine.run("check", "--no-daemon"), "No problems")
    machine.hook("SessionStart", source="startup")
    broken = feedback(machine, "lib.py", "name: str", "name: int")
    held("an edit shows what it broke in another file", broken, "app.py", "Expected `int`")
    held("status", machine.run("status"), "ty", "active")
    held("a question", machine.run("references", "lib.py:1:5"), "app.py")
    held("a change in two files", machine.run("rename", "lib.py:1:5", "hello", "--apply"), "app.py", "lib.py")
    held("what was written", machine.read("app.py") + machine.read("lib.py"), 'hello("x")', "def hello(")
    held("the tools of an MCP client", machine.tools(), "references", "rename")
    held("the end", machine.run("daemon", "stop"), "Stopped")
    held("the server is removed", machine.run("install", "--remove", "ty"), "removed")


def main(wheels: str) -> None:
    before = set(psutil.pids())
    with tempfile.TemporaryDirectory() as home:
        machine = Machine(home, wheels)
        try:
            prove(machine)
        finally:
            machine.run("daemon", "stop")
    held("nothing is left", f"left: {sorted(names_of(set(psutil.pids()) - before))}", "left: []")


def names_of(pids: set[int]) -> Iterator[str]:
    """Without the consoles, which are the system's, and what has ended since it was listed."""
    for pid in pids:
        with suppress(psutil.Error, OSError):
            name = psutil.Process(pid).name()
            if name != "conhost.exe":
                yield name


if __name__ == "__main__":
    main(sys.argv[1])
