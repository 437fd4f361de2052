"""`setup --without feedback`: the tools alone."""

import json

import pytest

from pilotfish.surfaces.cli.main import run
from support.hosts.users import User

pytestmark = pytest.mark.proves("HOOK-3", "FMT-9")


def test_a_host_gets_the_tools_and_no_hooks(user: User) -> None:
    before = user.files()
    assert run(["setup", "claude-code", "--without", "feedback"]) == 0
    assert not (user.home / ".claude" / "settings.json").exists()
    assert "pilotfish" in json.loads((user.home / ".claude.json").read_text())["mcpServers"]
    assert run(["setup", "claude-code", "--remove"]) == 0
    assert user.files() == before


@pytest.mark.parametrize(
    ("host", "file"), [("claude-code", ".claude/settings.json"), ("gemini", ".gemini/settings.json")]
)
def test_hooks_that_were_wired_before_are_taken_out(host: str, file: str, user: User) -> None:
    assert run(["setup", host]) == 0
    assert "hooks" in json.loads((user.home / file).read_text())
    assert run(["setup", host, "--without", "feedback"]) == 0
    left = (user.home / file).read_text() if (user.home / file).exists() else "{}"
    assert list(json.loads(left)) == (["mcpServers"] if host == "gemini" else [])


def test_a_host_whose_plugin_does_both_is_refused_with_another_way(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    before = user.files()
    assert run(["setup", "pi", "--without", "feedback"]) == 3
    assert '"after": "ask"' in capsys.readouterr().err
    assert user.files() == before
