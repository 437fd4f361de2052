"""Real hosts, from one turn to the next: what comes late, what a command broke, and what is left before a stop.

Errors come late where the server does not start before somebody opens a gate. A model that waits for something runs a
command that asks `pilotfish status` until it is so.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS, ERROR, MENDED
from support.hosts.model_server import Call, ModelServer, Say, Turn
from support.hosts.opencode import CHAT, MESSAGES, opencode
from support.hosts.opencode_server import opencode_server
from support.hosts.pi import pi
from support.hosts.real import RUN_SECONDS, Agent, call, host_home, pilotfish, run

LATE = "Late result for a.py, edited 1 call ago:"
COMMAND = re.compile("LSP errors detected in files that were changed by a command|In files that a command changed:")
LEFT = "Before you finish: "

STATUS = f"{sys.executable} -I -m pilotfish status --json"
BREAK = "sed -i 's/return 1/return \"x\"/' a.py"

pytestmark = [pytest.mark.server("ty"), pytest.mark.proves("DIAG-12")]


@dataclass(frozen=True)
class Host:
    """A host and its shell."""

    agent: Agent
    shell: Callable[[str], Turn]
    read: Callable[[Path], Turn] | None = None
    """How its model reads a file, where it may change none by `sed -i` that it has not read."""


def shell(tool: str, name: str = "command", **more: object) -> Callable[[str], Turn]:
    return lambda command: Call(tool, {name: command, **more})


KNOWN = {agent.host: agent for agent in AGENTS}
HOSTS = {
    "claude-code": Host(KNOWN["claude-code"], shell("Bash")),
    "codex": Host(KNOWN["codex"], shell("exec_command", "cmd", yield_time_ms=30_000)),
    "copilot": Host(KNOWN["copilot"], shell("bash", description="run", initial_wait=300)),
    "gemini": Host(KNOWN["gemini"], shell("run_shell_command")),
    "qwen": Host(
        KNOWN["qwen"], shell("run_shell_command", is_background=False), read=call("read_file", file_path="{file}")
    ),
    "pi": Host(pi("pi"), shell("bash")),
    "opencode": Host(opencode(), shell("bash", description="run")),
}

ROWS = [
    pytest.param(host, id=name, marks=pytest.mark.host(name, "node", gate=name == "claude-code"))
    for name, host in HOSTS.items()
]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe into which something is written before the server starts."""
    made = tmp_path / "gate"
    os.mkfifo(made)
    return made


@pytest.fixture
def hurried(tmp_path: Path, gate: Path) -> Iterator[DaemonHome]:
    """A user who waits for no server, which is shut behind a gate."""
    with host_home(tmp_path, timing={"firstTouchTimeoutMs": 1, "diagnosticsWaitTimeoutMs": 1}) as home:
        server = Path(home.environment["PATH"].split(os.pathsep)[0]) / "ty"
        real = os.readlink(server)
        server.unlink()
        server.write_text(f'#!/bin/sh\n[ "$1" = server ] && read -r opened < {gate}\nexec {real} "$@"\n')
        server.chmod(0o755)
        yield home


def until(*words: str) -> str:
    """A command that ends when the status has one of these words."""
    either = " ".join(f"-e '{one}'" for one in words)
    return f"until {STATUS} | tr -d ' \\n' | grep -qF {either}; do true; done"


@pytest.mark.parametrize("host", ROWS)
def test_errors_that_come_late_arrive_with_the_next_tool_result(host: Host, hurried: DaemonHome, gate: Path) -> None:
    pilotfish(hurried, "setup", host.agent.host, "--global")
    opened = until('"late":1', '"told":1')
    waiting = host.shell(f"echo open > {gate}; {opened}")
    with ModelServer([host.agent.breaking(hurried.root / "a.py"), waiting, Say("Done."), Say("Yes.")]) as model:
        run(host.agent, hurried, model)
    assert ERROR not in model.after(1).text
    assert model.after(2).text.count(LATE) == 1
    assert ERROR in model.after(2).text


@pytest.mark.parametrize("host", ROWS)
def test_what_a_command_broke_is_told_and_once_more_before_the_turn_ends(host: Host, home: DaemonHome) -> None:
    pilotfish(home, "setup", host.agent.host, "--global")
    home.write("a.py", MENDED)
    calls = [host.shell(until(f'"connectedRoots":["{home.root}"]')), host.shell(BREAK)]
    calls[1:1] = [] if host.read is None else [host.read(home.root / "a.py")]
    with ModelServer([*calls, Say("Done."), Say("I leave it."), Say("No.")]) as model:
        run(host.agent, home, model)
    told = model.after(len(calls)).text
    assert len(COMMAND.findall(told)) == 1
    assert ERROR in told
    assert LEFT in model.after(len(calls) + 1).text
    # The loop guard: whatever the agent leaves then, it is not told again.
    assert not any(request.position > len(calls) + 1 for request in model.requests)


@pytest.mark.parametrize("host", ROWS)
def test_what_was_mended_is_not_told_before_the_turn_ends(host: Host, home: DaemonHome) -> None:
    pilotfish(home, "setup", host.agent.host, "--global")
    with ModelServer([*host.agent.turns(home), Say("Done.")]) as model:
        run(host.agent, home, model)
    assert LEFT not in "".join(request.text for request in model.requests)


@pytest.mark.host("opencode", "node", gate=False)
def test_opencode_goes_on_where_it_stays_when_a_turn_is_over(home: DaemonHome) -> None:
    pilotfish(home, "setup", "opencode", "--global")
    home.write("a.py", MENDED)
    shell = HOSTS["opencode"].shell
    turns = [shell(until(f'"connectedRoots":["{home.root}"]')), shell(BREAK), Say("Done."), Say("I leave it.")]
    with ModelServer([*turns, Say("No.")]) as model, opencode_server(home, model.url) as server:
        server.prompt(idles=2)
        # The loop guard: it was asked before the second stop, too, and said nothing.
        asked = '"$(grep -c kind=stop "$PILOTFISH_HOME"/logs/daemon.log)"'
        waiting = ["sh", "-c", f"until [ {asked} = 2 ]; do true; done"]
        subprocess.run(waiting, env=home.environment, check=True, timeout=RUN_SECONDS)
    assert model.after(3).text.count(LEFT) == 1
    assert not any(request.position > 3 for request in model.requests)


@pytest.mark.host("opencode", "node", gate=False)
@pytest.mark.parametrize("api", [CHAT, MESSAGES])
def test_opencode_is_told_before_it_stops_and_not_in_the_middle_of_a_turn(api: str, home: DaemonHome) -> None:
    pilotfish(home, "setup", "opencode", "--global")
    agent = opencode(npm=api)
    working = Call("bash", {"command": "true", "description": "run"}, said="I go on.")
    turns = [agent.breaking(home.root / "a.py"), working, working, Say("Done."), Say("I leave it."), Say("No.")]
    with ModelServer(turns) as model:
        run(agent, home, model)
    assert LEFT not in model.after(3).text
    assert model.after(4).text.count(LEFT) == 1
    assert not any(request.position > 4 for request in model.requests)
