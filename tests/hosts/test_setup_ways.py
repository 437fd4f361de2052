"""The ways in which a host can be told: `setup --by`, one at a time."""

import json

import pytest

from pilotfish.surfaces.cli.main import run
from support.hosts.users import User

pytestmark = pytest.mark.proves("HOOK-3")


def test_claude_code_may_ask_a_tool_in_place_of_a_program(user: User) -> None:
    assert run(["setup", "claude-code"]) == 0
    assert run(["setup", "claude-code", "--by", "mcp"]) == 0
    hooks = json.loads((user.home / ".claude" / "settings.json").read_text())["hooks"]
    assert list(hooks) == ["PostToolUse"]
    assert hooks["PostToolUse"][0]["hooks"][0]["tool"] == "hook_post_edit"
    assert run(["setup", "claude-code", "--remove"]) == 0
    assert not (user.home / ".claude").exists()


def test_a_host_that_is_told_better_by_hooks_is_not_wired_by_its_lsp_client(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", "claude-code", "--by", "lsp"]) == 3
    assert "Leave out --by lsp." in capsys.readouterr().err
    assert not (user.home / ".claude").exists()
    assert run(["setup", "crush", "--by", "lsp"]) == 0


HOOKS, SERVER = "hook.py", '"--host"'
"""What stands in the files of a host that is told by hooks, and by its LSP client."""

SWITCHED = {
    "qwen in a project": ("qwen", "--project", {".qwen/settings.json"}, {".qwen/settings.json", ".lsp.json"}),
    "copilot": (
        "copilot",
        "--global",
        {".copilot/hooks/pilotfish.json", ".copilot/mcp-config.json"},
        {".copilot/lsp-config.json", ".copilot/mcp-config.json"},
    ),
    "copilot in a project": ("copilot", "--project", {".github/hooks/pilotfish.json"}, {".github/lsp.json"}),
}


@pytest.mark.parametrize(("host", "scope", "by_hooks", "by_lsp"), SWITCHED.values(), ids=SWITCHED)
def test_a_host_is_told_in_one_way_at_a_time(
    host: str, scope: str, by_hooks: set[str], by_lsp: set[str], user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    top = user.home if scope == "--global" else user.project
    own = {".qwen/settings.json": '{"model": "x"}', ".github/lsp.json": '{"lspServers": {"other": {"command": "x"}}}'}
    kept = {name: text for name, text in own.items() if name in by_hooks | by_lsp}
    for name, text in kept.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    before = user.files()

    def wired() -> tuple[set[str], str]:
        texts = {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}
        ours = {name: text for name, text in texts.items() if "pilotfish" in text}
        return set(ours), "".join(ours.values())

    assert run(["setup", host, scope]) == 0
    names, text = wired()
    assert names == by_hooks
    assert HOOKS in text
    assert SERVER not in text
    capsys.readouterr()
    assert run(["setup", host, scope, "--by", "lsp"]) == 0
    assert "It says nothing after an edit" in capsys.readouterr().out
    names, text = wired()
    assert names == by_lsp
    assert HOOKS not in text
    assert SERVER in text
    assert run(["setup", host, scope]) == 0
    assert wired()[0] == by_hooks
    assert run(["setup", host, scope, "--by", "lsp"]) == 0
    assert run(["setup", host, scope, "--remove"]) == 0
    assert user.files() == before


def test_a_host_without_such_a_file_of_the_user_is_wired_by_its_lsp_client_in_a_project(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", "qwen", "--by", "lsp"]) == 3
    assert "Say --project." in capsys.readouterr().err
    assert not (user.home / ".qwen").exists()


def test_a_language_server_is_named_for_every_kind_of_file_that_we_have_one_for(user: User) -> None:
    assert run(["setup", "copilot", "--by", "lsp"]) == 0
    server = json.loads((user.home / ".copilot" / "lsp-config.json").read_text())["lspServers"]["pilotfish"]
    assert server["fileExtensions"].items() >= {".py": "python", ".ts": "typescript", ".go": "go"}.items()
    assert server["args"][-3:] == ["lsp", "--host", "copilot"]
