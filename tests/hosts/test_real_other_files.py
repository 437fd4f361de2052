"""Real hosts: an edit with the host's own tool breaks its own file and two others, and the next model request names
all three; the edit that mends them is followed by silence."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS, ERROR, MENDED, UPDATING
from support.hosts.model_server import Call, ModelServer, Say, Turn
from support.hosts.opencode import opencode
from support.hosts.pi import pi
from support.hosts.real import Agent, pilotfish, run

BROKEN_NAME = 'def g() -> int:\n    return "x"\n'
USING = "from a import f\n\nprint(f())\n"
OTHERS = ("b.py", "c.py")
MISSING = "has no member `f`"
"""What ty says about each of them."""

ROWS = [
    pytest.param(agent, id=agent.host, marks=pytest.mark.host(agent.host, "node", gate=False))
    for agent in (*AGENTS, opencode(), pi("pi"))
]


@pytest.mark.proves("DIAG-11", "HOOK-3")
@pytest.mark.server("ty")
@pytest.mark.parametrize("agent", ROWS)
def test_the_model_is_told_of_all_files_that_its_edit_broke_and_nothing_once_they_are_mended(
    agent: Agent, home: DaemonHome
) -> None:
    for name in OTHERS:
        home.write(name, USING)
    pilotfish(home, "setup", agent.host, "--global")
    file = home.root / "a.py"
    turns = [_editing(agent, home, MENDED, BROKEN_NAME), _editing(agent, home, BROKEN_NAME, MENDED)]
    if agent.own_words:
        turns.insert(0, _with_texts(agent.breaking(file), lambda text: text.replace('return "x"', "return 1")))
    else:
        # It has no tools: its turn ends with the first edit that breaks nothing.
        home.write("a.py", MENDED)
    with ModelServer([*turns, Say("Done."), Say("Done.")]) as model:
        run(agent, home, model)
    assert file.read_text().rstrip() == MENDED.rstrip()
    broken = len(turns) - 1
    assert MISSING not in model.after(broken - 1).text
    told = model.after(broken).text
    # One without tools says nothing of the old text: the other files are named, and that they may be older.
    expected = (1, 2 if agent.own_words else 0)
    assert (told.count(ERROR), told.count(MISSING)) == expected
    assert all(f"{name}" in told for name in OTHERS)
    # A host that has nothing to fix any more may not even ask.
    for later in (request.text for request in model.requests if request.position > broken):
        assert (later.count(ERROR), later.count(MISSING)) == expected


def _editing(agent: Agent, home: DaemonHome, old: str, new: str) -> Turn:
    """The host's own edit of the file, with other texts."""
    patch = "".join([f"-{line}\n" for line in old.splitlines()] + [f"+{line}\n" for line in new.splitlines()])
    changed = f"*** Begin Patch\n*** Update File: a.py\n@@\n{patch}*** End Patch\n"
    exact = {'"x"': old.rstrip(), "1": new.rstrip(), UPDATING: changed}

    def text_of(text: str) -> str:
        return exact.get(text) or text.replace(MENDED, new)

    return _with_texts(agent.mending(home.root / "a.py"), text_of)


def _with_texts(turn: Turn, change: Callable[[str], str]) -> Turn:
    if isinstance(turn, Say):
        return Say(change(turn.text))
    assert isinstance(turn, Call)
    return Call(turn.tool, _changed(turn.arguments, change))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON with other texts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(each, change) for key, each in cast("dict[str, Any]", value).items()}
    return [_changed(each, change) for each in cast("list[Any]", value)] if isinstance(value, list) else value
