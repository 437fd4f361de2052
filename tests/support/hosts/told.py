"""What the model of a host was told about its two turns, the one that breaks a file and the one that mends it."""

from support.daemon.homes import DaemonHome
from support.hosts.agents import ERROR, MENDED
from support.hosts.model_server import ModelServer, Request
from support.hosts.real import Agent, pilotfish, run, strangers

NOT_CHECKED = ".py files are not checked by "
"""What a model is told, once, where the server is missing."""


def hears_once(agent: Agent, home: DaemonHome) -> ModelServer:
    """Run the two turns: the error is told after the first, and nothing more after the second."""
    with ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    told = model.after(1)
    assert told.text.count(ERROR) == 1
    assert has_own_words(agent, told)
    assert not any("&lt;" in result for result in told.heard.results)
    # A host that has nothing to fix any more may not even ask.
    for later in (request for request in model.requests if request.position == 2):
        assert later.text.count(ERROR) == 1
        assert has_own_words(agent, later)
    assert (home.root / "a.py").read_text().rstrip() == MENDED.rstrip()
    return model


def appended_once(agent: Agent, model: ModelServer, opening: str) -> str:
    """The error was appended to the result of the first turn; gives the result of the second."""
    wrote, told = model.after(1).heard.results[0].split("\n\n", 1)
    assert wrote.startswith(agent.own_words[0])
    assert told.startswith(opening)
    assert ERROR in told
    mended = model.after(2).heard.results[1]
    assert mended.startswith(agent.own_words[1])
    return mended


def leaves_only_the_edits(home: DaemonHome) -> None:
    """After the two turns the file is mended, and once the daemon is stopped nothing runs any more."""
    assert (home.root / "a.py").read_text() == MENDED
    assert strangers(home) == {}
    pilotfish(home, "daemon", "stop")
    assert home.processes() == {}


def has_own_words(agent: Agent, request: Request) -> bool:
    """Whether every result of a tool still says what the host itself says there."""
    results = zip(agent.own_words[: request.position], request.heard.results, strict=True)
    return all(words in result for words, result in results)
