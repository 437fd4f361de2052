"""How much of a text a host shows to its model, from a hook or a plugin and from a tool: what is longer is cut.

The programs that `setup` has written are exchanged for ones that say texts of given sizes. A version of a host with
other limits fails here; ours are below all of them.
"""

import pytest

from pilotfish.hosts.shared.tool_hooks import MAX_BYTES
from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS
from support.hosts.asking import ASKING
from support.hosts.long_texts import give_long_tool, say_long_texts, shown
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.opencode import opencode
from support.hosts.pi import pi
from support.hosts.real import Agent, pilotfish, run

LONG = 100_000
"""No host says that it takes so much; some do."""

HOOKS: dict[str, tuple[int, int | None]] = {
    "aider": (LONG, None),
    "claude-code": (10_000, 10_001),
    "cline": (50_000, 50_001),
    "codex": (10_000, 10_001),
    "copilot": (10_240, 10_241),
    "gemini": (LONG, None),
    "opencode": (LONG, None),
    "pi": (LONG, None),
    # Its own words about the edit count, too.
    "qwen": (50_000, 51_000),
}
"""Host → a number of characters that is shown whole, and the next one that is not."""

TOOLS: dict[str, tuple[int, int | None]] = {
    "claude-code": (50_000, 50_001),
    # The time that the call took counts, too.
    "codex": (47_950, 48_001),
    "copilot": (20_480, 20_481),
    "gemini": (39_959, 39_960),
    "goose": (LONG, None),
    "opencode": (51_200, 51_201),
    "qwen": (28_000, 28_001),
}
MOST = 8 * 1024
"""What our own tools answer with at most."""

KNOWN = {agent.host: agent for agent in (*AGENTS, opencode(), pi("pi"))}


def rows(hosts: dict[str, tuple[int, int | None]]) -> list[object]:
    return [pytest.param(host, id=host, marks=pytest.mark.host(host, "node", gate=False)) for host in hosts]


@pytest.mark.proves("HOOK-1")
@pytest.mark.server("ty")
@pytest.mark.parametrize("host", rows(HOOKS))
def test_the_text_of_a_hook_is_shown_whole_up_to_the_limit_of_the_host(host: str, home: DaemonHome) -> None:
    agent, (whole, cut) = KNOWN[host], HOOKS[host]
    assert whole > MAX_BYTES
    pilotfish(home, "setup", host, "--global")
    sizes = _sizes(whole, cut)
    say_long_texts(home, host, sizes)
    _is_cut_between(agent, home, ModelServer([*agent.turns(home), Say("Done."), Say("Done.")]), sizes)


@pytest.mark.proves("MCP-2")
@pytest.mark.server("ty")
@pytest.mark.parametrize("host", rows(TOOLS))
def test_the_text_of_a_tool_is_shown_whole_up_to_the_limit_of_the_host(host: str, home: DaemonHome) -> None:
    (agent, prefix), (whole, cut) = ASKING[host], TOOLS[host]
    assert whole > MOST
    pilotfish(home, "setup", host, "--global")
    give_long_tool(home, host)
    sizes = _sizes(whole, cut)
    calls = [Call(f"{prefix}long", {"size": size}) for size in sizes]
    _is_cut_between(agent, home, ModelServer([*calls, Say("Done.")]), sizes)


def _sizes(whole: int, cut: int | None) -> list[int]:
    return [whole] if cut is None else [whole, cut]


def _is_cut_between(agent: Agent, home: DaemonHome, script: ModelServer, sizes: list[int]) -> None:
    with script as model:
        run(agent, home, model)
    read = [shown(size, model.after(number).text) for number, size in enumerate(sizes, 1)]
    assert read[0] == sizes[0]
    assert read[1:] < sizes[1:] or not read[1:]
