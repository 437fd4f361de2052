"""Real hosts: an edit with the host's own tool breaks its own file and two others, and the next model request names
all three; the edit that mends them is followed by silence.

What the model reads then is committed word by word in `golden/`, one file for each host: whoever changes what it shows
of a hook, or of its own result, is noticed.
"""

import pytest

from support.daemon.homes import DaemonHome
from support.files.repositories import commit_everything
from support.hosts.agents import AGENTS, ERROR, MENDED
from support.hosts.asking import ASKING
from support.hosts.edits import editing, with_texts
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.opencode import opencode
from support.hosts.pi import pi
from support.hosts.reached import is_as_committed, reached
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
    turns = [editing(agent, home, MENDED, BROKEN_NAME), editing(agent, home, BROKEN_NAME, MENDED)]
    if agent.own_words:
        turns.insert(0, with_texts(agent.breaking(file), lambda text: text.replace('return "x"', "return 1")))
    else:
        # It has no tools: its turn ends with the first edit that breaks nothing. It says nothing of the old text, which
        # the repository knows.
        home.write("a.py", MENDED)
        commit_everything(home.root)
    with ModelServer([*turns, Say("Done."), Say("Done.")]) as model:
        run(agent, home, model)
    assert file.read_text().rstrip() == MENDED.rstrip()
    broken = len(turns) - 1
    assert MISSING not in model.after(broken - 1).text
    told = model.after(broken).text
    expected = (1, 2)
    assert (told.count(ERROR), told.count(MISSING)) == expected
    assert all(f"{name}" in told for name in OTHERS)
    said = {"broke": reached(model.after(broken), home)}
    # A host that has nothing to fix any more may not even ask.
    for later in (request for request in model.requests if request.position > broken):
        assert (later.text.count(ERROR), later.text.count(MISSING)) == expected
        said.setdefault("mended", reached(later, home))
    heads = (f"== What the model reads after an edit that {what}\n{text}" for what, text in said.items())
    is_as_committed(agent.host, "\n".join(heads))


@pytest.mark.proves("DIAG-11", "MCP-2")
@pytest.mark.server("ty")
@pytest.mark.host("goose", gate=False)
def test_a_model_that_no_hook_tells_reads_of_all_files_when_it_asks(home: DaemonHome) -> None:
    agent, prefix = ASKING["goose"]
    home.write("a.py", MENDED)
    for name in OTHERS:
        home.write(name, USING)
    pilotfish(home, "setup", agent.host)
    asking = Call(f"{prefix}lsp_diagnostics", {})
    turns = [editing(agent, home, MENDED, BROKEN_NAME), asking, editing(agent, home, BROKEN_NAME, MENDED), asking]
    with ModelServer([*turns, Say("Done.")]) as model:
        run(agent, home, model)
    edited, told, mended, silent = model.after(len(turns)).heard.results
    assert all(agent.own_words[1] in result for result in (edited, mended))
    assert (told.count(ERROR), told.count(MISSING)) == (1, 2)
    assert all(f"{name}:" in told for name in ("a.py", *OTHERS))
    assert not any(word in silent for word in (ERROR, MISSING, *OTHERS))
    is_as_committed(agent.host, "\n".join(reached(model.after(number), home) for number in range(1, len(turns) + 1)))
