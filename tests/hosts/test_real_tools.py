"""What the models of hosts read when they ask: the compact text, small enough that no host cuts it."""

import json
import re
import shutil
from pathlib import Path

import click
import pytest

from support.daemon.homes import DaemonHome
from support.hosts.asking import ASKING
from support.hosts.model_server import Call, ModelServer
from support.hosts.real import Agent, pilotfish, run

pytestmark = [pytest.mark.server("ty"), pytest.mark.proves("MCP-2")]

MOST = 8 * 1024
SOURCES = Path(click.__file__).parent
"""A real package: the outline of one of its files alone is 130 KB of JSON."""

ASKED = {
    "lsp_document_symbols": {"filePath": "click/core.py"},
    "lsp_find_references": {"filePath": "click/core.py", "symbol": "Context"},
    "lsp_diagnostics": {"filePath": "click/core.py"},
}
OPENINGS = (
    r"click/core.py\n  55:1 constant F\n",
    r"141 results in 5 files:\n",
    r"click/core.py:\d+:\d+  \w+: ",
)


ROWS = [
    pytest.param(*asking, id=host, marks=pytest.mark.host(host, "node", gate=host == "claude-code"))
    for host, asking in ASKING.items()
]


def told(model: ModelServer, calls: int) -> list[str]:
    """What the tools have answered, without what the hosts put around it."""
    results = model.after(calls).heard.results
    # Cline gives its model the answer as it came.
    results = [json.loads(text)["content"][0]["text"] if text.startswith('{"content":') else text for text in results]
    return [
        re.sub(r"\AWall time: .*\nOutput:\n|\A<untrusted_context>\n|\n</untrusted_context>\Z", "", text)
        for text in results
    ]


@pytest.mark.parametrize(("agent", "prefix"), [row for row in ROWS if row.id != "cline"])
def test_answers_are_compact_text_of_a_bounded_size(agent: Agent, prefix: str, home: DaemonHome) -> None:
    shutil.copytree(SOURCES, home.root / "click", ignore=shutil.ignore_patterns("__pycache__"))
    pilotfish(home, "setup", agent.host)
    calls = [Call(prefix + tool, arguments) for tool, arguments in ASKED.items()]
    with ModelServer(calls) as model:
        run(agent, home, model)
    texts = told(model, len(calls))
    assert [len(text.encode()) <= MOST for text in texts] == [True] * len(calls)
    for text, opening in zip(texts, OPENINGS, strict=True):
        assert re.match(opening, text), text[:500]
        assert '":' not in text


@pytest.mark.host("cline", "node", gate=False)
def test_cline_cuts_an_answer_of_full_size_in_the_middle(home: DaemonHome) -> None:
    """It shows 8,000 characters of an answer written as JSON, which is less than our most; its page says so."""
    shutil.copytree(SOURCES, home.root / "click", ignore=shutil.ignore_patterns("__pycache__"))
    agent, prefix = ASKING["cline"]
    pilotfish(home, "setup", "cline")
    with ModelServer([Call(prefix + "lsp_document_symbols", {"filePath": "click/core.py"})]) as model:
        run(agent, home, model)
    (text,) = model.after(1).heard.results
    assert re.search(r"\.\.\.\[truncated \d+ chars\]\.\.\.", text)
    assert "more of 262 symbols; go on with offset" in text
    assert len(text) <= 8000


MONEY = "def total(count: int) -> int:\n    return count\n"
USER = "from money import total\n\n\ndef pay() -> int:\n    return total(2)\n"
BY_NAME = {
    "lsp_workspace_symbols": {"query": "total"},
    "lsp_source": {"symbol": "total"},
    "lsp_explore": {"symbol": "total"},
    "lsp_edit_symbol": {
        "symbol": "total",
        "edit": "replace",
        "text": "def total(count: int) -> int:\n    return count + 1\n",
        "apply": True,
    },
    "lsp_rename": {"symbol": "total", "newName": "amount", "apply": True},
}
SAID = (
    r"money.py:1:5  function total\b",
    r"money.py:1-2  function total  \(digest \w{8}\)\ndef total\(count: int\) -> int:\n    return count\Z",
    r"(?s)money.py:1:5  function total\n.*used \d times? in 1 file\nuser.py:\d",
    r"Applied: 1 file, 1 edit\.",
    r"Applied: 2 files, 3 edits\.",
)


@pytest.mark.proves("OPS-10", "OPS-3")
@pytest.mark.parametrize(("agent", "prefix"), ROWS)
def test_a_symbol_is_found_read_changed_and_renamed_by_name_from_a_cold_start(
    agent: Agent, prefix: str, home: DaemonHome
) -> None:
    home.write("money.py", MONEY)
    home.write("user.py", USER)
    pilotfish(home, "setup", agent.host)
    calls = [Call(prefix + tool, arguments) for tool, arguments in BY_NAME.items()]
    with ModelServer(calls) as model:
        run(agent, home, model)
    for text, said in zip(told(model, len(calls)), SAID, strict=True):
        assert re.match(said, text), text[:500]
    assert (home.root / "money.py").read_text() == "def amount(count: int) -> int:\n    return count + 1\n"
    assert (home.root / "user.py").read_text() == USER.replace("total", "amount")
