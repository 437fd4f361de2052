"""Real coding agents, run without a person: where they are, who sits in front of them, what they leave.

They come from `tools/setup.py hosts`. Each test has a home, a workspace, a daemon and a model of its own; whoever looks
for the network finds a proxy that refuses, so that nothing but loopback is ever reached.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.daemon.homes import DaemonHome, ended
from support.hosts.model_server import Call, ModelServer, Turn
from support.servers.real import REPOSITORY, make_user

HOSTS = REPOSITORY / ".tools" / "hosts"
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
MANIFEST: dict[str, Any] = json.loads((REPOSITORY / "tools" / "hosts.json").read_text().replace("{cpu}", CPU))

RUN_SECONDS = 300
"""For a host to end by itself; most take five, and Aider half a minute, of which it computes most."""

NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


@dataclass(frozen=True, slots=True)
class Agent:
    """How to run one host for a single prompt, and how its model edits `a.py`."""

    host: str
    """As `hosts.json` and `pilotfish setup` call it."""
    command: Callable[[DaemonHome, str], list[str]]
    """What to run, for a home and the address of the model; writes what the host wants to read."""
    breaking: Callable[[Path], Turn]
    mending: Callable[[Path], Turn]
    own_words: tuple[str, ...]
    """What the host's own results of these two say, wherever the file is; none where it has no tools."""

    def turns(self, home: DaemonHome) -> list[Turn]:
        return [self.breaking(home.root / "a.py"), self.mending(home.root / "a.py")]


def program(host: str) -> str:
    """Where a host's program is. One that is not there fails the test: skipped, it would prove nothing."""
    path = HOSTS / host / MANIFEST[host]["program"]
    if not path.exists():
        pytest.fail(f"{host} is not installed: run `python3 tools/setup.py hosts`", pytrace=False)
    return str(path)


@contextmanager
def host_home(folder: Path, servers: Sequence[str] = ("ty",), **config: Any) -> Generator[DaemonHome]:
    """A user with one workspace and these language servers, whose processes are all gone afterwards."""
    user = make_user(folder, servers, config, trusted=True)
    path = [user.environment["PATH"], os.path.dirname(program("node")), "/usr/bin", "/bin"]
    home = DaemonHome(user.workspace, {**user.environment, "PATH": os.pathsep.join(path), "NO_COLOR": "1"})
    try:
        yield home
    finally:
        home.kill_all()


def pilotfish(home: DaemonHome, *arguments: str) -> str:
    """What the command says; it must not fail."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "pilotfish", *arguments],
        capture_output=True,
        cwd=home.root,
        env=home.environment,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"pilotfish {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def run(agent: Agent, home: DaemonHome, model: ModelServer) -> None:
    """Run the host until it ends by itself, which it must do well."""
    argv = agent.command(home, model.url)
    proxies = dict.fromkeys(NETWORK, model.url) | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=home.root,
        env=home.environment | proxies,
        text=True,
        errors="replace",
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{agent.host} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"


def strangers(home: DaemonHome) -> dict[int, str]:
    """What runs in this home and is no daemon, nor anything of one."""
    return {pid: command for pid, command in home.processes().items() if not _of_daemon(command)}


def left_by_host(home: DaemonHome) -> list[str]:
    """Which strangers do not end by themselves.

    An MCP server of ours that waits for a hung daemon notices only after that wait that its host has gone.
    """
    return [command for pid, command in strangers(home).items() if not ended(pid)]


def _of_daemon(command: str) -> bool:
    return any(word in command for word in ("pilotfish.daemon.start", "supervisor.run", "ty server"))


def write(path: Path, content: object) -> None:
    """Text as it is, anything else as JSON, laid over what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict) and path.exists():
        content = json.loads(path.read_text()) | content
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def call(tool: str, **arguments: Any) -> Callable[[Path], Turn]:
    """A call whose arguments are texts in which `{file}` is the file."""
    return lambda file: Call(tool, {name: value.replace("{file}", str(file)) for name, value in arguments.items()})
