"""`pilotfish setup` on real files: shown, written, kept a copy of, and taken back to the byte."""

import io
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import pilotfish
from hosts.test_setup_json import SETTINGS, texts
from pilotfish.hosts.claude_code import EDIT_TOOLS
from pilotfish.hosts.edits.json_edit import value_of
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared import changes
from pilotfish.surfaces.cli.main import run
from support.hosts.users import User

pytestmark = pytest.mark.proves("HOOK-3")

SCOPES = [(host, scope) for host, row in load_hosts().items() for scope in row.scopes]

COMMENTED = '{\n    // mine\n    "model": "x", // why\n    "env": {"KEY": "secret"},\n}\n'

EXISTING = {
    ".claude/settings.json": COMMENTED,
    ".claude/settings.local.json": '{"permissions":{"allow":["Bash"]}}',
    ".claude.json": '{"numStartups": 7, "mcpServers": {"other": {"command": "x"}}}',
    ".mcp.json": "",
    ".codex/hooks.json": '{"hooks": {"PostToolUse": []}}\n',
    ".codex/config.toml": '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"',
    ".gemini/settings.json": '\ufeff{\r\n  "hooks": {}\r\n}\r\n',
    ".qwen/settings.json": COMMENTED,
    ".config/llxprt-code/settings.json": '{"hooks": {"enabled": false}}',
    ".llxprt/settings.json": '{"hooks": {"enabled": true, "AfterTool": [{"hooks": []}]}}',
    ".cline/data/settings/cline_mcp_settings.json": '{\n\t"mcpServers": {}\n}',
    ".aider.conf.yml": "# mine\nmodel: x\nread:\n- a",
    ".config/opencode/opencode.jsonc": COMMENTED,
    "opencode.json": "{ }",
    ".config/goose/config.yaml": "extensions:\n    developer:\n        enabled: true\nGOOSE_MODEL: x\n",
    ".config/crush/crush.json": "{}",
    "crush.json": '{"$schema": "x"}',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}',
    ".windsurf/hooks.json": COMMENTED,
    ".codeium/windsurf/hooks.json": '{"hooks": {"post_write_code": [{"command": "x", "show_output": true}]}}',
    ".cursor/mcp.json": '{"mcpServers": {"other": {}}}',
    ".config/zed/settings.json": COMMENTED,
    ".vscode/mcp.json": COMMENTED,
    ".codeium/windsurf/mcp_config.json": '{"mcpServers": {}}',
    ".kiro/settings/mcp.json": COMMENTED,
    ".config/amp/settings.json": COMMENTED,
    ".amp/settings.json": '{"amp.mcpServers": {"other": {}}}',
    ".junie/mcp/mcp.json": '{"mcpServers": {"other": {"command": "x"}}}',
    ".roo/mcp.json": '{"mcpServers": {"other": {"command": "x"}}}',
}


def at(scope: str) -> list[str]:
    return [f"--{scope}"]


@pytest.mark.parametrize("existing", [{}, EXISTING], ids=["new", "existing"])
@pytest.mark.parametrize(("host", "scope"), SCOPES, ids=[f"{host} {scope}" for host, scope in SCOPES])
def test_setup_and_its_removal_leave_every_file_as_it_was(
    host: str, scope: str, existing: dict[str, str], user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    user.give(existing)
    before = user.files()
    assert run(["setup", host, *at(scope), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "+++" in shown
    assert user.files() == before
    assert run(["setup", host, *at(scope)]) == 0
    capsys.readouterr()
    wired = user.files()
    assert wired != before
    kept = {path: mode for path, (mode, content) in before.items() if content is not None}
    assert {path: wired[path][0] for path in kept} == kept
    assert run(["setup", host, *at(scope)]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert user.files() == wired
    assert run(["setup", host, *at(scope), "--remove"]) == 0
    assert user.files() == before
    assert run(["setup", host, *at(scope), "--remove"]) == 0
    assert user.files() == before
    assert list((user.state / "setup").iterdir()) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts(SETTINGS))
def test_any_settings_come_back_to_the_byte(text: str, user: User) -> None:
    file = user.home / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode())
    before = user.files()
    if run(["setup", "claude-code"]) == 0:
        assert user.files() != before
        assert run(["setup", "claude-code", "--remove"]) == 0
    assert user.files() == before


def test_all_hosts_at_once_leave_nothing_behind_one_after_the_other(user: User) -> None:
    for host, scope in SCOPES:
        assert run(["setup", host, *at(scope)]) == 0
    for host, scope in SCOPES:
        assert run(["setup", host, *at(scope), "--remove"]) == 0
    assert set(user.files()) == {str(user.project / ".git")}


def test_all_means_the_hosts_that_are_there(user: User, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(user.home / "bin"))
    (user.home / "bin").mkdir()
    (user.home / "bin" / "qwen").touch(0o755)
    (user.home / ".codex").mkdir()
    assert run(["setup", "--all", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "Found here: Codex, Qwen Code." in said
    assert "Wired: Codex, Qwen Code." in said
    assert said.count("Undo it with `pilotfish setup --all --remove`.") == 1
    assert (user.home / ".qwen" / "settings.json").exists()
    assert not (user.home / ".gemini").exists()
    (user.home / ".codex" / "hooks.json").write_text("{")
    assert run(["setup", "--all", "--yes"]) == 1
    assert "Codex" in capsys.readouterr().err
    assert run(["setup", "--all", "--yes", "--remove", "--global"]) == 1
    assert not (user.home / ".qwen").exists()


class Terminal(io.StringIO):
    """Where a person types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_all_asks_a_person_once_and_sums_up_once(
    answer: str, written: bool, user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".gemini", ".qwen"):
        (user.home / name).mkdir()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert run(["setup", "--all"]) == (0 if written else 1)
    said = capsys.readouterr().out
    assert said.count("Write these files?") == 1
    assert f"{user.home}/.qwen/settings.json (new)" in said
    assert (user.home / ".qwen" / "settings.json").exists() is written
    assert said.count("Wired: Gemini CLI, Qwen Code.") == (1 if written else 0)
    assert said.count("started again") == (1 if written else 0)


def test_all_writes_nothing_where_nobody_can_be_asked(
    user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (user.home / ".qwen").mkdir()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    before = user.files()
    assert run(["setup", "--all"]) == 1
    said = capsys.readouterr().out
    assert f"{user.home}/.qwen/settings.json (new)" in said
    assert "add --yes to write these files" in said
    assert user.files() == before


def test_all_asks_nothing_with_yes(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    (user.home / ".qwen").mkdir()
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert run(["setup", "--all", "--yes"]) == 0
    assert (user.home / ".qwen" / "settings.json").exists()
    assert run(["setup", "--all", "--yes", "--remove"]) == 0
    assert list((user.home / ".qwen").iterdir()) == []


# --- What a host finds ----------------------------------------------------------------------------------------------


@pytest.mark.proves("A13.6")
def test_claude_code_gets_its_hooks_its_tools_and_its_command(user: User) -> None:
    assert run(["setup", "claude-code"]) == 0
    hooks = json.loads((user.home / ".claude" / "settings.json").read_text())["hooks"]
    turns = {"UserPromptSubmit", "Stop", "SubagentStop", "SessionStart", "SessionEnd"}
    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolBatch"} | turns
    (group,) = hooks["PostToolUse"]
    assert group["matcher"] == f"{EDIT_TOOLS}|Read"
    (hook,) = group["hooks"]
    words = hook["command"].split()
    interpreter = words.index("-I") - 1
    assert os.path.isabs(words[interpreter])
    assert words[interpreter + 1 : interpreter + 3] == ["-I", "-S"]
    assert words[-1] == "claude-code"
    server = json.loads((user.home / ".claude.json").read_text())["mcpServers"]["pilotfish"]
    assert server["args"][-3:] == ["-m", "pilotfish", "mcp"]
    command = (user.home / ".claude" / "commands" / "lsp.md").read_text()
    assert "pilotfish status`" in command
    # What a person, or a model, types after `/lsp` would be a part of the shell's line.
    assert "$" not in command


PLUGINS = Path(pilotfish.__file__).parent / "hosts" / "plugins"
BY_UV = "exec uvx --no-config --python '>=3.11' --from 'pilotfish[mcp]'"


def started(words: str) -> str:
    """What a plugin runs: the program on the `PATH`, else what uv brings, whatever the project's settings say."""
    return f"command -v pilotfish >/dev/null && exec pilotfish {words}; {BY_UV} pilotfish {words}"


@pytest.mark.parametrize(
    ("host", "wired", "hooks", "manifest"),
    [
        ("claude-code", ".claude/settings.json", "hooks/hooks.json", ".claude-plugin/plugin.json"),
        ("codex", ".codex/hooks.json", ".codex-plugin/plugin.json", ".codex-plugin/plugin.json"),
        ("gemini", ".gemini/settings.json", "hooks/hooks.json", "gemini-extension.json"),
    ],
)
def test_the_plugin_of_a_host_says_what_setup_writes(
    host: str, wired: str, hooks: str, manifest: str, user: User
) -> None:
    assert run(["setup", host]) == 0
    written = json.loads((user.home / wired).read_text())["hooks"]
    packaged = json.loads((PLUGINS / host / hooks).read_text())["hooks"]
    packaged = packaged.get("hooks", packaged)
    for groups in written.values():
        for hook in (hook for group in groups for hook in group["hooks"]):
            words = hook["command"].rpartition("hook.py")[2].strip("' ")
            hook["command"] = started(f"hook {words}")
    assert packaged == written
    server = json.loads((PLUGINS / host / manifest).read_text())["mcpServers"]["pilotfish"]
    assert (server["command"], server["args"]) == ("sh", ["-c", started("mcp")])
    if host == "codex":
        table = tomllib.loads((user.home / ".codex" / "config.toml").read_text())["mcp_servers"]["pilotfish"]
        assert server["env_vars"] == table["env_vars"]


def test_codex_passes_on_what_the_mcp_server_and_language_servers_need_to_know(user: User) -> None:
    assert run(["setup", "codex"]) == 0
    table = tomllib.loads((user.home / ".codex" / "config.toml").read_text())["mcp_servers"]["pilotfish"]
    assert {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "JAVA_HOME", "VIRTUAL_ENV"} <= set(table["env_vars"])


def test_codex_gets_no_longer_time_for_the_end_of_a_session_than_it_allows(user: User) -> None:
    assert run(["setup", "codex"]) == 0
    hooks = json.loads((user.home / ".codex" / "hooks.json").read_text())["hooks"]
    (hook,) = hooks["SessionEnd"][0]["hooks"]
    assert hook["timeout"] <= 3
    words = hook["command"].split()
    assert int(words[words.index("--deadline-ms") + 1]) < hook["timeout"] * 1000


@pytest.mark.proves("DIAG-5")
def test_llxprt_gets_the_ten_seconds_of_a_first_touch(user: User) -> None:
    assert run(["setup", "llxprt"]) == 0
    settings = json.loads((user.home / ".config" / "llxprt-code" / "settings.json").read_text())
    (hook,) = settings["hooks"]["AfterTool"][0]["hooks"]
    words = hook["command"].split()
    deadline = int(words[words.index("--deadline-ms") + 1])
    # Beside the first touch: starting the program, and writing the answer.
    assert 10_000 + 2_000 <= deadline < hook["timeout"]


def test_the_hook_of_llxprt_waits_as_long_as_its_settings_say(user: User) -> None:
    file = user.home / ".config" / "llxprt-code" / "settings.json"
    file.parent.mkdir(parents=True)
    before = '{"lsp": {"firstTouchTimeout": 40000}}'
    file.write_text(before)
    assert run(["setup", "llxprt"]) == 0
    (hook,) = json.loads(file.read_text())["hooks"]["AfterTool"][0]["hooks"]
    assert "--deadline-ms 43000" in hook["command"]
    assert hook["timeout"] == 45_000
    file.write_text(file.read_text().replace("40000", "20000"))
    assert run(["setup", "llxprt", "--remove"]) == 0
    assert json.loads(file.read_text()) == {"lsp": {"firstTouchTimeout": 20_000}}


def test_a_host_with_files_in_projects_only_is_wired_there(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", "roo-code", "--global"]) == 3
    assert "Say --project." in capsys.readouterr().err
    assert run(["setup", "roo-code"]) == 0
    servers = json.loads((user.project / ".roo" / "mcp.json").read_text())["mcpServers"]
    assert servers["pilotfish"]["args"][-1] == "mcp"


def test_vs_code_gets_hooks_and_tools_in_a_project_and_hooks_for_all_of_them(user: User) -> None:
    assert run(["setup", "vscode"]) == 0
    servers = json.loads((user.project / ".vscode" / "mcp.json").read_text())["servers"]
    assert (servers["pilotfish"]["type"], servers["pilotfish"]["args"][-1]) == ("stdio", "mcp")
    assert run(["setup", "vscode", "--global"]) == 0
    for folder in (user.project / ".github", user.home / ".copilot"):
        hooks = json.loads((folder / "hooks" / "pilotfish-vscode.json").read_text())["hooks"]
        assert {"PostToolUse", "Stop"} < set(hooks)
        assert all(" vscode" in hook["command"] for (hook,) in hooks.values())


def test_cursor_keeps_its_other_hooks_and_the_version_without_which_it_reads_none(user: User) -> None:
    user.give({".cursor/hooks.json": '{"hooks": {"stop": [{"command": "./mine.sh"}]}}'})
    assert run(["setup", "cursor"]) == 0
    wired = json.loads((user.home / ".cursor" / "hooks.json").read_text())
    assert wired["version"] == 1
    assert [hook["command"].split()[-1] for hook in wired["hooks"]["stop"]] == ["./mine.sh", "cursor"]
    assert run(["setup", "cursor", "--remove"]) == 0
    assert json.loads((user.home / ".cursor" / "hooks.json").read_text()) == {
        "hooks": {"stop": [{"command": "./mine.sh"}]}
    }


def test_crush_keeps_its_own_answer_whether_it_starts_servers_by_itself(user: User) -> None:
    user.give({".config/crush/crush.json": '{"options": {"auto_lsp": true}}'})
    assert run(["setup", "crush"]) == 0
    file = user.home / ".config" / "crush" / "crush.json"
    wired = json.loads(file.read_text())
    assert wired["options"] == {"auto_lsp": False}
    assert wired["lsp"]["pilotfish"]["args"][-3:] == ["lsp", "--host", "crush"]
    assert run(["setup", "crush", "--remove"]) == 0
    assert json.loads(file.read_text()) == {"options": {"auto_lsp": True}}


@pytest.mark.parametrize(("host", "said"), [("codex", "type /hooks"), ("gemini", "with /permissions")])
@pytest.mark.parametrize("scope", ["global", "project"])
def test_the_person_is_told_where_to_trust_it(
    host: str, said: str, scope: str, user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", host, *at(scope), "--dry-run"]) == 0
    assert said not in capsys.readouterr().out
    assert run(["setup", host, *at(scope)]) == 0
    assert said in capsys.readouterr().out


def test_the_person_is_told_that_another_says_the_same(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    (user.home / ".config" / "opencode").mkdir(parents=True)
    (user.home / ".config" / "opencode" / "opencode.json").write_text('{"lsp": {"x": {}}}')
    assert run(["setup", "opencode"]) == 0
    assert "says everything twice" in capsys.readouterr().out


def test_variables_of_the_hosts_move_their_files(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(user.project / "elsewhere"))
    assert run(["setup", "codex"]) == 0
    assert (user.project / "elsewhere" / "hooks.json").exists()
    assert run(["setup", "codex", "--remove"]) == 0
    assert not (user.project / "elsewhere").exists()


# --- What others do -------------------------------------------------------------------------------------------------


def test_what_others_change_in_between_stays(user: User) -> None:
    file = user.home / ".gemini" / "settings.json"
    user.give({".gemini/settings.json": COMMENTED})
    assert run(["setup", "gemini"]) == 0
    text = file.read_text().replace('"model": "x", // why', '"model": "y", // because')
    file.write_text(text)
    assert run(["setup", "gemini"]) == 0
    assert file.read_text() == text
    assert run(["setup", "gemini", "--remove"]) == 0
    assert file.read_text() == COMMENTED.replace('"model": "x", // why', '"model": "y", // because')


def test_our_part_goes_even_when_the_receipts_are_lost(user: User) -> None:
    user.give({".qwen/settings.json": COMMENTED, ".codex/config.toml": 'model = "x"\n'})
    for host in ("qwen", "codex"):
        assert run(["setup", host]) == 0
        for kept in (user.state / "setup").iterdir():
            kept.unlink()
        assert run(["setup", host, "--remove"]) == 0
    assert (user.home / ".qwen" / "settings.json").read_text() == COMMENTED
    assert (user.home / ".codex" / "config.toml").read_text() == 'model = "x"\n'


def test_another_installation_is_replaced_and_not_doubled(user: User) -> None:
    assert run(["setup", "qwen"]) == 0
    file = user.home / ".qwen" / "settings.json"
    written = file.read_text()
    file.write_text(written.replace("/pilotfish/surfaces/hook.py", "/older/pilotfish/surfaces/hook.py"))
    assert run(["setup", "qwen"]) == 0
    assert value_of(file.read_text()) == value_of(written)


def test_a_command_of_that_name_stays_and_a_hook_of_that_name_is_refused(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    user.give({".claude/commands/lsp.md": "mine", ".cline/hooks/PostToolUse.sh": "mine"})
    assert run(["setup", "claude-code"]) == 0
    assert (user.home / ".claude" / "commands" / "lsp.md").read_text() == "mine"
    before = user.files()
    capsys.readouterr()
    assert run(["setup", "cline"]) == 3
    assert "PostToolUse.sh" in capsys.readouterr().err
    assert user.files() == before


@pytest.mark.parametrize(
    "content", [b"{", b"\xff\xfe", b'{"a": 1, "a": 2}', b"[]"], ids=["half", "bytes", "twice", "list"]
)
def test_a_file_that_cannot_be_read_is_refused_and_nothing_is_written(
    content: bytes, user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    user.give({".claude.json": ""})
    (user.home / ".claude.json").write_bytes(content)
    before = user.files()
    for more in ([], ["--remove"]) if content != b"[]" else ([],):
        assert run(["setup", "claude-code", *more]) == 3
        said = capsys.readouterr().err
        assert ".claude.json" in said
        assert len(said.splitlines()) > 1
        assert user.files() == before


# --- Links ----------------------------------------------------------------------------------------------------------


def test_a_link_stays_a_link_and_what_it_leads_to_is_changed(user: User) -> None:
    (user.home / "dotfiles").mkdir()
    (user.home / "dotfiles" / "settings.json").write_text("{}\n")
    (user.home / ".qwen").mkdir()
    link = user.home / ".qwen" / "settings.json"
    link.symlink_to("../dotfiles/settings.json")
    assert run(["setup", "qwen"]) == 0
    assert os.readlink(link) == "../dotfiles/settings.json"
    assert "hook.py" in (user.home / "dotfiles" / "settings.json").read_text()
    assert run(["setup", "qwen", "--remove"]) == 0
    assert os.readlink(link) == "../dotfiles/settings.json"
    assert link.read_text() == "{}\n"


@pytest.mark.proves("T28", "A17.10")
@pytest.mark.parametrize("linked", [".claude/settings.local.json", ".claude"])
def test_no_link_of_a_project_leads_us_out_of_it(linked: str, user: User, capsys: pytest.CaptureFixture[str]) -> None:
    target = user.home / ".bashrc"
    target.write_text("{}")
    link = user.project / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target if link.suffix else user.home)
    before = user.files()
    assert run(["setup", "claude-code", "--project"]) == 3
    assert "leads to" in capsys.readouterr().err
    assert user.files() == before


@pytest.mark.proves("A17.10")
def test_what_is_no_file_is_refused(user: User) -> None:
    (user.home / ".qwen" / "settings.json").mkdir(parents=True)
    assert run(["setup", "qwen"]) == 3
    (user.home / ".gemini").mkdir()
    os.mkfifo(user.home / ".gemini" / "settings.json")
    assert run(["setup", "gemini"]) == 3


def test_when_one_file_cannot_be_written_none_is(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.give({".codex/hooks.json": "{}", ".codex/config.toml": ""})
    before = user.files()
    replace = os.replace

    def failing(source: str, target: str) -> None:
        if target.endswith("config.toml"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    assert run(["setup", "codex"]) == 2
    assert user.files() == before


def test_a_file_that_its_host_writes_at_that_moment_is_left_to_it(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.give({".codex/hooks.json": "{}", ".codex/config.toml": ""})
    shown = changes.diff_of

    def meanwhile(change: changes.HostFileChange) -> str:
        (user.home / ".codex" / "config.toml").write_text("model = 1\n")
        return shown(change)

    monkeypatch.setattr("pilotfish.surfaces.cli.setup.diff_of", meanwhile)
    assert run(["setup", "codex"]) == 2
    assert (user.home / ".codex" / "config.toml").read_text() == "model = 1\n"
    assert (user.home / ".codex" / "hooks.json").read_text() == "{}"


def test_copies_are_for_the_user_alone(user: User) -> None:
    user.give({".claude/settings.json": COMMENTED})
    assert run(["setup", "claude-code"]) == 0
    kept = [user.state / "setup", *(user.state / "setup").iterdir()]
    assert all(not path.stat().st_mode & 0o077 for path in kept)
    assert any(path.read_text() == COMMENTED for path in kept[1:])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("claude", "claude-code"),
        ("claude_code", "claude-code"),
        ("gemini-cli", "gemini"),
        ("open-code", "opencode"),
        ("cursor-agent", "cursor"),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(
    said: str, meant: str, user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", said]) == 3
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_the_help_names_every_host(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"HOST is one of: {', '.join(load_hosts())}." in said


@pytest.mark.parametrize("words", [[], ["nobody"], ["claude-code", "--all"], ["zed", "--project"]], ids=str)
def test_wrong_use_is_said(words: list[str], user: User) -> None:
    assert run(["setup", *words]) == 3
    assert set(user.files()) == {str(user.project / ".git")}
