"""Real hosts, when something of ours is missing, dead or hung: the edit stays as it is, and the host goes on.

No assertion is about time: a hook that hangs is given a short deadline of its own, and the host ends by itself.
"""

import re
from pathlib import Path

import pytest

from pilotfish.hosts.shared import hook_settings
from pilotfish.ipc import hook_program as relay
from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS, BROKEN, ERROR, MENDED
from support.hosts.model_server import ModelServer
from support.hosts.real import Agent, left_by_host, pilotfish, run
from support.hosts.told import NOT_CHECKED, has_own_words
from support.hosts.trouble import (
    Trouble,
    a_dead_daemon,
    a_hung_daemon,
    no_configuration,
    no_daemon_can_start,
    no_language_server,
)

SHORT = "--deadline-ms 700"
"""For a hook whose daemon says nothing: enough to run into that."""

SILENT: dict[str, Trouble] = {
    "no daemon can start": no_daemon_can_start,
    "a hung daemon": a_hung_daemon,
}
SPOKEN: dict[str, Trouble] = {"a dead daemon": a_dead_daemon, "no configuration": no_configuration}


def rows(troubles: dict[str, Trouble]) -> list[object]:
    return [
        pytest.param(agent, trouble, id=f"{agent.host}, {name}", marks=pytest.mark.host(agent.host))
        for agent in AGENTS
        for name, trouble in troubles.items()
    ]


@pytest.mark.proves("HOOK-2", "FMT-8")
@pytest.mark.server("ty")
@pytest.mark.parametrize(("agent", "trouble"), rows(SILENT))
def test_trouble_of_ours_leaves_the_edit_as_it_is(agent: Agent, trouble: Trouble, home: DaemonHome) -> None:
    pilotfish(home, "setup", agent.host, "--global")
    if trouble is a_hung_daemon:
        shorten_deadlines(home, agent.host)
    with trouble(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    last = model.requests[-1]
    # Without a word from us Aider has nothing to fix, and its model gets no second turn.
    assert last.position == len(agent.own_words)
    assert ERROR not in last.text
    assert has_own_words(agent, last)
    assert not any("LSP" in result for result in last.heard.results)
    assert (home.root / "a.py").read_text().rstrip() == (MENDED if last.position else BROKEN).rstrip()
    assert left_by_host(home) == []


@pytest.mark.proves("HOOK-2", "FMT-8")
@pytest.mark.server("ty")
@pytest.mark.parametrize(
    "agent", [pytest.param(each, id=each.host, marks=pytest.mark.host(each.host)) for each in AGENTS]
)
def test_a_missing_server_is_named_once_beside_the_edit(agent: Agent, home: DaemonHome) -> None:
    pilotfish(home, "setup", agent.host, "--global")
    with no_language_server(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    last = model.requests[-1]
    # Aider would have its model mend it, so its linter does not fail.
    assert last.position == len(agent.own_words)
    assert last.text.count(NOT_CHECKED) == bool(agent.own_words)
    assert has_own_words(agent, last)
    assert (home.root / "a.py").read_text().rstrip() == (MENDED if last.position else BROKEN).rstrip()
    assert left_by_host(home) == []


@pytest.mark.proves("HOOK-2", "F65")
@pytest.mark.server("ty")
@pytest.mark.parametrize(("agent", "trouble"), rows(SPOKEN))
def test_trouble_that_can_be_helped_is(agent: Agent, trouble: Trouble, home: DaemonHome) -> None:
    pilotfish(home, "setup", agent.host, "--global")
    with trouble(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    assert ERROR in model.after(1).text
    assert has_own_words(agent, model.after(1))
    assert (home.root / "a.py").read_text().rstrip() == MENDED.rstrip()
    assert left_by_host(home) == []


@pytest.mark.proves("HOOK-2")
def test_a_hook_gives_up_before_its_host_would_give_up_on_it() -> None:
    assert relay.DEADLINE_SECONDS < hook_settings.TIMEOUT_SECONDS


def shorten_deadlines(home: DaemonHome, host: str) -> None:
    """Give every hook that setup has written a short deadline of its own."""
    written = [
        path for path in Path(home.environment["HOME"]).rglob("*") if path.is_file() and path.stat().st_size < 65536
    ]
    for path in written:
        text = path.read_text(errors="surrogateescape")
        if f"hook.py {host}" in text:
            short = re.sub(rf"hook\.py {host}(?: --deadline-ms \d+)?", f"hook.py {host} {SHORT}", text)
            path.write_text(short, errors="surrogateescape")
