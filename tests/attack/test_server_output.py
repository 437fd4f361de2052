"""What an evil server says, followed to every place where somebody reads it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from support.clients.raw_mcp import initialize, request
from support.daemon.homes import FAKELS, TESTS, WAIT_SECONDS, DaemonHome
from support.servers.evil import ORDER

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\U000e0000-\U000e0fff\ud800-\udfff]"
)
"""What a terminal obeys, or a person does not see."""

TRACE = Path("/tmp/pilotfish-was-here")
VERBS = (
    ["check", "a.x"],
    ["touched", "a.x"],
    ["hover", "a.x:1:1"],
    ["symbols", "a.x"],
    ["actions", "a.x:1"],
    ["definition", "a.x:1:1"],
    ["rename", "a.x:1:1", "n"],
    ["status"],
    ["daemon", "logs"],
)
ANSWERING = ("check", "hover", "symbols", "definition", "status")
"""Verbs that print the envelope when asked to."""
LINE_BY_LINE = ("hook", "check", "touched", "symbols", "actions", "status", "daemon", "log")
"""Where a line is ours and only quotes; a hover or a field of JSON may have lines of its own."""
PLACE = {"filePath": "a.x", "line": 1, "character": 1}


@pytest.fixture
def haunted(home: DaemonHome) -> DaemonHome:
    _serve(home, "evil")
    home.write("a.x", "bad\n")
    return home


def _serve(home: DaemonHome, scenario: str) -> None:
    command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), f"support.servers.evil:{scenario}"]
    file = Path(home.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json"
    file.write_text(json.dumps({"lsp": {"toy": {"command": command, "extensions": [".x"]}}}))


@pytest.mark.slow
@pytest.mark.proves("T28", "T31", "T32", "T34", "FMT-3", "F83", "P34", "A17.12")
def test_no_sink_passes_on_what_a_terminal_or_a_model_would_obey(haunted: DaemonHome) -> None:
    said = list(_everything_said(haunted))
    assert [(name, found[0]) for name, text in said if (found := HIDDEN.search(text.replace("\n", " ")))] == []
    assert any(ORDER in text for _, text in said), "the server was not asked at all"
    in_lines = [(name, text) for name, text in said if name.split()[0] in LINE_BY_LINE and "--json" not in name]
    assert [(name, line) for name, text in in_lines for line in text.splitlines() if line.startswith("SYSTEM:")] == []
    assert not TRACE.exists()


@pytest.mark.proves("T31", "FMT-2")
def test_feedback_stays_inside_its_block(haunted: DaemonHome) -> None:
    text = haunted.run_hook(b'{"files":["a.x"]}').stdout.decode()
    assert text.count("<diagnostics") == text.count("</diagnostics>") == 1
    assert '<diagnostics file="a.x">' in text
    # A message is cut.
    (line,) = [line for line in text.splitlines() if ORDER[:15] in line]
    assert line.startswith("ERROR [1:1] ")


STEERING = (
    "CLAUDE.local.md", "QWEN.md", "LLXPRT.md", "crush.json", "copilot-instructions.md", "mise.toml", ".goosehints",
    "AGENTS.override.md", ".github/copilot-instructions.md", ".cursor/rules/a.mdc", ".git/hooks/pre-commit",
    "sitecustomize.py", ".cargo/config.toml", ".envrc", "Qwen.MD", "sub/.MISE.toml",
)  # fmt: skip


@pytest.mark.proves("T53", "T28", "T11", "A14.19")
def test_no_edit_of_a_server_creates_a_file_that_steers(haunted: DaemonHome) -> None:
    _serve(haunted, "steering")
    for folder in (".github", ".cursor/rules", ".git/hooks", ".cargo", "sub"):
        (haunted.root / folder).mkdir(parents=True)
    question = {"operation": "rename", "filePath": "a.x", "line": 1, "character": 1, "apply": True}
    with haunted.link() as link:
        for name in STEERING:
            answer = link.request("ask", {**question, "newName": name})
            assert answer["ok"] is False, name
            assert not (haunted.root / name).exists()
        assert link.request("ask", {**question, "newName": "harmless.txt"})["ok"] is True
    assert (haunted.root / "harmless.txt").read_text() == ORDER


def _everything_said(home: DaemonHome) -> Iterator[tuple[str, str]]:
    """Every place where words of the server may turn up, as whoever reads it gets it."""
    yield "hook", home.run_hook(b'{"files":["a.x"]}').stdout.decode()
    for words in VERBS:
        done = _ran(home, words)
        yield " ".join(words), done.stdout + done.stderr
        if words[0] in ANSWERING:
            yield f"{words[0]} --json", "\n".join(_strings(json.loads(_ran(home, [*words, "--json"]).stdout)))
    yield "log", home.log
    yield from (("mcp", text) for text in _by_mcp(home))


def _ran(home: DaemonHome, words: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pilotfish", *words],
        env=home.environment,
        cwd=home.root,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


def _by_mcp(home: DaemonHome) -> Iterator[str]:
    """What a model reads: every text of every result."""
    names = ("lsp_hover", "lsp_document_symbols", "lsp_goto_definition")
    calls = [request(name, "tools/call", {"name": name, "arguments": dict(PLACE)}) for name in names]
    calls[1]["params"]["arguments"] = {"filePath": "a.x"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pilotfish", "mcp"],
        env=home.environment,
        cwd=home.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        messages = [initialize(), {"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls]
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        process.stdin.flush()
        answered = 0
        while answered < 1 + len(calls):
            message = json.loads(process.stdout.readline())
            answered += "id" in message
            yield "\n".join(_strings(message))
        process.stdin.close()


def _strings(value: object) -> Iterator[str]:
    """Every text in a value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            yield from (name, *_strings(member))
    elif isinstance(value, list):
        for member in cast("list[object]", value):
            yield from _strings(member)
