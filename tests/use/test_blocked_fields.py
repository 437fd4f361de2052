"""What somebody is told whose project file names what runs, before they have trusted it."""

import json
from typing import Any

import pytest

from support.daemon.users import ShellUser, named_server

pytestmark = [pytest.mark.slow, pytest.mark.proves("TRUST-4")]

BLOCKED = "lsp.toy.command"


def configure(user: ShellUser) -> None:
    """The user's own server for `.x` files, and a project that would have another program run in its place."""
    user.configure({"lsp": {"toy": named_server("toy", ".x")}})
    entry: dict[str, Any] = {"command": ["/bin/false"], "languageId": {".x": "x"}}
    user.write(".pilotfish/lsp.json", json.dumps({"lsp": {"toy": entry}}))
    user.write("a.x", "bad\n")


def about_it(lines: list[str]) -> list[str]:
    return [line for line in lines if BLOCKED in line]


def test_a_blocked_field_is_ignored_and_an_answer_says_so_once(user: ShellUser) -> None:
    configure(user)
    done = user.run("check", "a.x", "--json")
    answer = json.loads(done.stdout)
    assert [one["message"] for one in answer["data"]["a.x"]] == ["toy found a bad word"]
    (warning,) = about_it(answer["meta"]["warnings"])
    assert f"pilotfish trust {user.root}" in warning


def test_a_question_about_another_language_is_not_bothered(user: ShellUser) -> None:
    configure(user)
    user.install("basedpyright-langserver")
    user.write("a.py", "bad\n")
    assert "warnings" not in json.loads(user.run("check", "a.py", "--json").stdout)["meta"]


def test_an_mcp_tool_says_so(user: ShellUser) -> None:
    configure(user)
    told = user.call("lsp_hover", {"filePath": "a.x", "line": 1, "character": 1})
    assert about_it(told["content"][0]["text"].splitlines())


def test_status_and_the_log_say_so_once(user: ShellUser) -> None:
    configure(user)
    for _ in range(2):
        assert user.run("check", "a.x").returncode == 1
    assert len(about_it(user.run("status").stdout.splitlines())) == 1
    assert len(about_it(user.log.splitlines())) == 1


def test_once_it_is_trusted_the_warning_is_gone(user: ShellUser) -> None:
    configure(user)
    user.configure({"lsp": {"toy": named_server("toy", ".x")}, "security": {"trustedProjectRoots": [str(user.root)]}})
    assert "warnings" not in json.loads(user.run("check", "a.x", "--json").stdout)["meta"]
