"""Claude Code: every way to wire it, several edits at once, an edit that fails, and the command for people."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import pilotfish
from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS, BROKEN, ERROR, MENDED, claude_code
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.programs import put_on_the_path
from support.hosts.real import Agent, left_by_host, run
from support.hosts.real import pilotfish as run_pilotfish
from support.hosts.told import hears_once

pytestmark = [pytest.mark.host("claude-code"), pytest.mark.server("ty")]

CLAUDE = next(agent for agent in AGENTS if agent.host == "claude-code")
PLUGIN = Path(pilotfish.__file__).parent / "hosts" / "plugins" / "claude-code"


def with_options(*options: str, prompt: str | None = None) -> Agent:
    def command(home: DaemonHome, url: str) -> list[str]:
        program, *usual, said = claude_code(home, url)
        return [program, *options, *usual, prompt or said]

    return replace(CLAUDE, command=command)


@pytest.mark.proves("HOOK-1", "HOOK-3")
def test_it_is_told_by_a_tool_of_the_mcp_server(home: DaemonHome) -> None:
    run_pilotfish(home, "setup", "claude-code", "--by", "mcp")
    hears_once(CLAUDE, home)
    assert left_by_host(home) == []


@pytest.mark.proves("HOOK-1")
@pytest.mark.host(gate=False)
@pytest.mark.parametrize("hooks", ["hooks.json", "mcp-tool.json"])
def test_it_is_told_by_the_plugin(hooks: str, home: DaemonHome, tmp_path: Path) -> None:
    put_on_the_path(home)
    shutil.copytree(PLUGIN, tmp_path / "plugin")
    (tmp_path / "plugin" / "hooks" / hooks).rename(tmp_path / "plugin" / "hooks" / "hooks.json")
    hears_once(with_options("--plugin-dir", str(tmp_path / "plugin")), home)
    assert left_by_host(home) == []


@pytest.mark.proves("HOOK-1")
def test_edits_made_at_once_are_each_told_once(home: DaemonHome) -> None:
    run_pilotfish(home, "setup", "claude-code")
    names = ("a.py", "b.py")
    for name in names:
        home.write(name, MENDED)
    files = [str(home.root / name) for name in names]
    reads = [Call("Read", {"file_path": file}) for file in files]
    edits = [Call("Edit", {"file_path": file, "old_string": "return 1", "new_string": 'return "x"'}) for file in files]
    with ModelServer([reads, edits]) as model:
        run(CLAUDE, home, model)
    told = model.after(2)
    assert [told.text.count(f'<diagnostics file="{name}">') for name in names] == [1, 1]
    assert all("has been updated successfully" in result for result in told.heard.results[2:])


@pytest.mark.proves("HOOK-1", "FMT-8")
def test_an_edit_that_fails_is_followed_by_nothing(home: DaemonHome) -> None:
    run_pilotfish(home, "setup", "claude-code")
    home.write("a.py", BROKEN)
    file = str(home.root / "a.py")
    failing = Call("Edit", {"file_path": file, "old_string": "no such text", "new_string": "1"})
    with ModelServer([Call("Read", {"file_path": file}), failing]) as model:
        run(CLAUDE, home, model)
    assert "String to replace not found" in model.after(2).heard.results[1]
    assert ERROR not in model.after(2).text


@pytest.mark.proves("HOOK-3")
@pytest.mark.host(gate=False)
def test_the_command_for_people_shows_the_status(home: DaemonHome) -> None:
    run_pilotfish(home, "setup", "claude-code")
    home.write("a.py", BROKEN)
    with ModelServer([Say("It is fine.")]) as model:
        run(with_options(prompt="/lsp"), home, model)
    assert f"Workspace {home.root} (trusted)" in model.after(0).text
    assert "\nty " in model.after(0).text
