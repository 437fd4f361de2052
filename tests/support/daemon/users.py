"""A user at a shell: writes configuration files, runs `pilotfish`, and calls MCP tools through `pilotfish mcp`.

Nothing is configured beyond what the test writes, and no program is on the `PATH` but those that it puts there.
"""

import json
import os
import pty
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pilotfish.servers.catalogue import load
from support.daemon.homes import FAKELS, TESTS, WAIT_SECONDS, DaemonHome

SCENARIO = "support.daemon.scenarios:says_its_name"


def named_server(name: str, *extensions: str) -> dict[str, Any]:
    """An entry of `lsp`: a real process that finds a bad word in every file, and says its name."""
    command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), SCENARIO]
    return {"command": command, "extensions": [*extensions], "env": {"NAME": name}}


@dataclass(frozen=True)
class ShellUser:
    home: DaemonHome

    @property
    def root(self) -> Path:
        return self.home.root

    @property
    def environment(self) -> dict[str, str]:
        return {**self.home.environment, "PATH": f"{self._bin}:/usr/bin:/bin"}

    @property
    def _bin(self) -> Path:
        return Path(self.home.environment["HOME"]) / "bin"

    @property
    def log(self) -> str:
        return self.home.log

    def configure(self, value: dict[str, Any]) -> None:
        """Write the user's own file."""
        _write(Path(self.home.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json", json.dumps(value))

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        _write(self.root / name, text)

    def install(self, program: str) -> None:
        """Put a program on the `PATH` that is a server which says the program's name."""
        command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), SCENARIO]
        self.plant(program, f"#!/bin/sh\nNAME={program} exec {shlex.join(command)}\n")
        self._record(program)

    def plant(self, program: str, text: str) -> None:
        """Put any program on the `PATH`."""
        _write(self._bin / program, text)
        (self._bin / program).chmod(0o755)

    def _record(self, program: str) -> None:
        """What pip leaves beside a program, of a version that may run in any project."""
        spec = next(spec for spec in load().values() if spec.command[0] == program)
        assert spec.shown is not None
        package = spec.install["pip"][0].partition("==")[0]
        packages = self._bin.parent / "lib" / "python3" / "site-packages"
        (packages / f"{package}-{spec.shown.last}.dist-info").mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`pilotfish ARGUMENTS` in the project."""
        return subprocess.run(
            [sys.executable, "-m", "pilotfish", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
            env=self.environment,
            timeout=WAIT_SECONDS + 10,
        )

    def at_a_terminal(self, *arguments: str, answer: str) -> str:
        """What a person sees who runs `pilotfish ARGUMENTS`, and answers every question so."""
        argv = [sys.executable, "-m", "pilotfish", *arguments]
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.root)
            os.execve(argv[0], argv, {**self.environment, "TERM": "xterm"})
        os.write(terminal, f"{answer}\n".encode())
        seen = b"".join(iter(partial(_read, terminal), b""))
        os.waitpid(process, 0)
        os.close(terminal)
        return seen.decode()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """The result of one MCP tool, called as a host does it."""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
        ]
        with subprocess.Popen(
            [sys.executable, "-m", "pilotfish", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.root,
            env=self.environment,
        ) as host:
            assert host.stdin is not None
            assert host.stdout is not None
            try:
                for message in messages:
                    host.stdin.write(json.dumps(message) + "\n")
                host.stdin.flush()
                answers = (json.loads(line) for line in host.stdout)
                return next(answer["result"] for answer in answers if answer.get("id") == 2)
            finally:
                host.kill()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Its program has ended.
        return b""


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
