"""Real hosts, from `pilotfish setup` to what their model reads: an edit breaks a file, the next one mends it.

Turn 1 is a call of the host's own tool that writes or patches, turn 2 one that edits. What the model is told in between
comes from a real language server, through the real daemon and the hook that the host itself has run.
"""

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS
from support.hosts.real import Agent, left_by_host, pilotfish
from support.hosts.told import hears_once

ROWS = [
    pytest.param(agent, scope, id=f"{agent.host} {scope}", marks=pytest.mark.host(agent.host, gate=scope == "--global"))
    for agent in AGENTS
    for scope in ("--global", "--project")
]


@pytest.mark.proves("HOOK-1", "HOOK-3", "FMT-7")
@pytest.mark.server("ty")
@pytest.mark.parametrize(("agent", "scope"), ROWS)
def test_the_model_is_told_what_its_edit_broke_and_nothing_once_it_is_mended(
    agent: Agent, scope: str, home: DaemonHome
) -> None:
    pilotfish(home, "setup", agent.host, scope)
    hears_once(agent, home)
    assert left_by_host(home) == []
    pilotfish(home, "daemon", "stop")
    assert home.processes() == {}
