"""Which servers answer about a file, as somebody sees it who wrote a configuration file."""

import json
from typing import Any

import pytest

from support.daemon.users import ShellUser, named_server

pytestmark = [pytest.mark.slow, pytest.mark.proves("REG-2")]


def speakers(printed: str) -> set[str]:
    """The servers that found something, by the names that they said."""
    found: dict[str, list[dict[str, Any]]] = json.loads(printed)["data"]
    return {one["message"].partition(" ")[0] for diagnostics in found.values() for one in diagnostics}


def test_two_custom_servers_of_one_extension_both_answer(user: ShellUser) -> None:
    user.configure({"lsp": {"one": named_server("one", ".x"), "two": named_server("two", ".x")}})
    user.write("a.x", "bad\n")
    assert speakers(user.run("check", "a.x", "--json").stdout) == {"one", "two"}
    told = user.call("lsp_diagnostics", {"filePath": "a.x"})["content"][0]["text"]
    assert "one found a bad word" in told
    assert "two found a bad word" in told


def test_a_custom_server_answers_beside_the_one_of_the_catalogue(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.configure({"lsp": {"house-rules": named_server("house-rules", ".py")}})
    user.write("a.py", "bad\n")
    assert speakers(user.run("check", "a.py", "--json").stdout) == {"basedpyright-langserver", "house-rules"}


def test_a_catalogue_server_whose_command_is_configured_replaces_the_usual_one_and_says_so(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "bad\n")
    assert speakers(user.run("check", "a.py", "--json").stdout) == {"basedpyright-langserver"}
    entry = named_server("pyright", ".py")
    user.configure({"lsp": {"pyright": {"command": entry["command"], "env": entry["env"]}}})
    assert speakers(user.run("check", "a.py", "--json").stdout) == {"pyright"}
    said = user.run("status").stdout
    assert "pyright runs in place of basedpyright" in said


def test_a_configured_server_that_is_not_there_is_missed_and_not_replaced(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.configure({"lsp": {"pyright": {"command": ["no-such-program", "--stdio"]}}})
    user.write("a.py", "bad\n")
    done = user.run("check", "a.py", "--json")
    answer = json.loads(done.stdout)
    assert [error["serverId"] for error in answer["errors"]] == ["pyright"]
    assert answer["data"] in (None, {"a.py": []})


def test_an_entry_that_no_file_would_use_is_warned_of(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.plant("pyright-langserver", "#!/bin/sh\n")
    user.configure({"lsp": {"pyright": {"settings": {"python": {"analysis": {"typeCheckingMode": "strict"}}}}}})
    told = user.run("config", "check").stdout
    assert "lsp.pyright: not used: basedpyright runs for these files" in told
    assert "lsp.pyright.command" in told
    user.configure({"lsp": {"basedpyright": {"settings": {"python": {"analysis": {"typeCheckingMode": "strict"}}}}}})
    assert "not used" not in user.run("config", "check").stdout


@pytest.mark.parametrize(
    ("alias", "server"),
    [
        ("python", "pyright"),
        ("go", "gopls"),
        ("rust", "rust-analyzer"),
        ("typescript", "typescript"),
        ("ts", "typescript"),
    ],
)
def test_the_ids_of_other_tools_name_the_same_servers(user: ShellUser, alias: str, server: str) -> None:
    user.configure({"lsp": {alias: {"env": {"MARK": "mine"}}}})
    shown = user.run("config", "show", "--changed").stdout
    assert f"lsp.{server}.env" in shown
