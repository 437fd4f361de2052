"""Real hosts whose own LSP client is told to start `pilotfish lsp`, without any hook of ours.

An edit with the host's own tool breaks its own file and two others. The clients of Claude Code and OpenCode deliver
what was published, the first one at its own pace, so the model runs our check before it goes on. Those of Qwen Code
and Copilot deliver nothing: their models ask with the tool `lsp`.
"""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS, BROKEN
from support.hosts.model_server import Call, ModelServer, Turn
from support.hosts.opencode import opencode
from support.hosts.real import Agent, pilotfish, run, write

pytestmark = [pytest.mark.server("ty"), pytest.mark.proves("DIAG-11")]

GOOD = "def f() -> int:\n    return 1\n"
BROKEN_NAME = BROKEN.replace("f()", "g()")
USING = "from a import f\n\nprint(f())\n"
OTHERS = ("b.py", "c.py")
COMMAND = [sys.executable, "-I", "-m", "pilotfish", "lsp"]
CHECK = f"{sys.executable} -I -m pilotfish check a.py b.py c.py; true"


def claude_code(home: DaemonHome) -> Agent:
    """By a plugin of its own kind."""
    plugin = home.root.parent / "plugin"
    write(plugin / ".claude-plugin" / "plugin.json", {"name": "squiggles", "version": "1.0.0"})
    server = {"command": COMMAND[0], "args": COMMAND[1:], "extensionToLanguage": {".py": "python"}}
    write(plugin / ".lsp.json", {"squiggles": server})
    agent = agent_of("claude-code")

    def command(home: DaemonHome, url: str) -> list[str]:
        program, *usual = agent.command(home, url)
        return [program, "--plugin-dir", str(plugin), *usual]

    return replace(agent, command=command)


@pytest.mark.host("claude-code", gate=False)
def test_claude_code_is_told_of_its_file_and_of_others_by_its_lsp_plugin(home: DaemonHome) -> None:
    commit(home, {"a.py": GOOD, "b.py": USING, "c.py": USING})
    file = str(home.root / "a.py")
    turns: list[Turn] = [
        Call("Read", {"file_path": file}),
        Call("Edit", {"file_path": file, "old_string": GOOD, "new_string": BROKEN_NAME}),
        Call("Bash", {"command": CHECK}),
        Call("Bash", {"command": CHECK}),
        Call("Edit", {"file_path": file, "old_string": BROKEN_NAME, "new_string": GOOD}),
        Call("Bash", {"command": CHECK}),
    ]
    with ModelServer(turns) as model:
        run(claude_code(home), home, model)
    told = [reminders(model.after(number).text) for number in range(1, len(turns) + 1)]
    assert told[0] == []
    (everything,) = told[3]
    assert all(name in everything for name in ("a.py", *OTHERS))
    assert (everything.count("invalid-return-type"), everything.count("has no member `f`")) == (1, 2)
    # Once they are mended there is nothing to tell.
    assert told[-1] == told[3]


@pytest.mark.host("opencode", "node", gate=False)
def test_opencode_is_told_of_its_file_and_of_others_by_its_lsp_setting(home: DaemonHome) -> None:
    commit(home, {"a.py": GOOD, "b.py": USING, "c.py": USING})
    file = str(home.root / "a.py")
    turns: list[Turn] = [
        Call("read", {"filePath": file}),
        Call("write", {"filePath": file, "content": BROKEN_NAME}),
        Call("write", {"filePath": file, "content": GOOD}),
    ]
    with ModelServer(turns) as model:
        run(opencode(lsp={"squiggles": {"command": COMMAND, "extensions": [".py"]}}), home, model)
    results = model.after(len(turns)).heard.results
    broken, mended = results[1:]
    assert broken.startswith("Wrote file successfully.")
    assert (broken.count("Return type does not match"), broken.count("has no member `f`")) == (1, 2)
    assert mended == "Wrote file successfully."


@pytest.mark.host("qwen", "node", gate=False)
def test_qwen_reads_of_its_file_and_of_others_when_it_asks_with_its_lsp_tool(home: DaemonHome) -> None:
    commit(home, {"a.py": GOOD, "b.py": USING, "c.py": USING})
    pilotfish(home, "setup", "qwen", "--project", "--by", "lsp")
    file = str(home.root / "a.py")
    where = {"operation": "goToDefinition", "filePath": str(home.root / "b.py"), "line": 3, "character": 7}
    turns: list[Turn] = [
        Call("read_file", {"file_path": file}),
        Call("edit", {"file_path": file, "old_string": GOOD, "new_string": BROKEN_NAME}),
        Call("lsp", {"operation": "diagnostics", "filePath": file}),
        Call("lsp", {"operation": "workspaceDiagnostics"}),
        Call("edit", {"file_path": file, "old_string": BROKEN_NAME, "new_string": GOOD}),
        Call("lsp", {"operation": "workspaceDiagnostics"}),
        Call("lsp", where),
    ]
    agent = agent_of("qwen")

    def command(home: DaemonHome, url: str) -> list[str]:
        program, *usual = agent.command(home, url)
        return [program, "--experimental-lsp", *usual]

    with ModelServer(turns) as model:
        run(replace(agent, command=command), home, model)
    _, broken, own, everything, mended, silent, definition = model.after(len(turns)).heard.results
    # Nothing of ours stands beside an edit: it is not wired by hooks as well.
    assert all("has been updated." in result and "LSP errors" not in result for result in (broken, mended))
    assert (own.count("invalid-return-type"), own.count("has no member `f`")) == (1, 0)
    assert all(name in everything for name in ("a.py", *OTHERS))
    assert (everything.count("invalid-return-type"), everything.count("has no member `f`")) == (1, 2)
    assert silent == "No diagnostics found in the workspace."
    assert "a.py:1:5" in definition


@pytest.mark.host("copilot", gate=False)
def test_copilot_navigates_and_renames_with_its_lsp_tool_and_asks_for_diagnostics_with_ours(home: DaemonHome) -> None:
    """Its tool has no operation that shows diagnostics."""
    commit(home, {"a.py": GOOD, "b.py": USING, "c.py": USING})
    pilotfish(home, "setup", "copilot", "--by", "lsp")
    file = str(home.root / "a.py")
    start = {"file": file, "line": 1, "character": 5}
    turns: list[Turn] = [
        Call("lsp", {"operation": "goToDefinition", "file": str(home.root / "b.py"), "line": 3, "character": 7}),
        Call("lsp", {"operation": "findReferences", **start}),
        Call("edit", {"path": file, "old_str": GOOD, "new_str": BROKEN_NAME}),
        Call("lsp", {"operation": "hover", **start}),
        Call("pilotfish-lsp_diagnostics", {}),
        Call("edit", {"path": file, "old_str": BROKEN_NAME, "new_str": GOOD}),
        Call("lsp", {"operation": "rename", **start, "newName": "h"}),
    ]
    with ModelServer(turns) as model:
        run(agent_of("copilot"), home, model)
    definition, uses, broken, hover, everything, mended, renamed = model.after(len(turns)).heard.results
    assert f"{file}:1:5" in definition
    assert all(name in uses for name in ("a.py", *OTHERS))
    assert all(result == f"File {file} updated with changes." for result in (broken, mended))
    assert "def g() -> int" in hover
    assert (everything.count("invalid-return-type"), everything.count("has no member `f`")) == (1, 2)
    assert "Files changed: 3" in renamed
    assert (home.root / "c.py").read_text() == "from a import h\n\nprint(h())\n"


def agent_of(host: str) -> Agent:
    return next(agent for agent in AGENTS if agent.host == host)


def reminders(text: str) -> list[str]:
    return re.findall(r"<new-diagnostics>(.*?)</new-diagnostics>", text, re.DOTALL)


def commit(home: DaemonHome, files: dict[str, str]) -> None:
    """Files as they are in a repository."""
    for name, text in files.items():
        home.write(name, text)
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=home.root, env=home.environment, check=True)
