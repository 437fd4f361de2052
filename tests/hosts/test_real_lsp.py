"""Real hosts whose own LSP client is told to start `pilotfish lsp`, without any hook of ours.

An edit with the host's own tool breaks its own file and two others. Their clients deliver what was published at their
own pace, so the model runs our check before it goes on.
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
from support.hosts.real import Agent, run, write

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
    agent = next(agent for agent in AGENTS if agent.host == "claude-code")

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


def reminders(text: str) -> list[str]:
    return re.findall(r"<new-diagnostics>(.*?)</new-diagnostics>", text, re.DOTALL)


def commit(home: DaemonHome, files: dict[str, str]) -> None:
    """Files as they are in a repository."""
    for name, text in files.items():
        home.write(name, text)
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=home.root, env=home.environment, check=True)
