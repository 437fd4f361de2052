"""A Roblox project as its `opencode.json` has it, with a server that says its name in the place of luau-lsp."""

import json
from typing import Any

import pytest

from support.daemon.users import ShellUser, named_server

pytestmark = [pytest.mark.slow, pytest.mark.proves("TRUST-4")]

OPTIONS = {
    "platform": {"type": "roblox"},
    "sourcemap": {"autogenerate": True, "rojoProjectFile": "default.project.json"},
}


def make_project(user: ShellUser) -> None:
    entry: dict[str, Any] = {"initialization": {"luau-lsp": OPTIONS}}
    user.configure({"lsp": {"luau": {"command": named_server("luau", ".luau")["command"], "env": {"NAME": "luau"}}}})
    user.write("opencode.json", json.dumps({"lsp": {"luau-lsp": entry}}))
    user.write("default.project.json", "{}")
    user.write("main.luau", "local x = 1\n")


def test_without_trust_it_says_what_was_ignored_and_is_partial_and_harmless_settings_hold(user: ShellUser) -> None:
    make_project(user)
    answer = json.loads(user.run("check", "main.luau", "--json").stdout)
    assert answer["data"]["main.luau"][0]["message"] == "luau found a bad word"
    meta = answer["meta"]
    assert meta["state"] == "partial"
    assert "initialization.luau-lsp.sourcemap.autogenerate" in meta["reason"]
    assert "platform" not in meta["reason"]
    assert any("rojoProjectFile" in warning for warning in meta["warnings"])
    shown = user.run("config", "show", "--changed").stdout
    assert 'lsp.luau.initialization.luau-lsp.platform.type = "roblox"' in shown


def test_with_trust_it_is_fresh(user: ShellUser) -> None:
    make_project(user)
    rules = {"security": {"trustedProjectRoots": [str(user.root)]}}
    server = {"command": named_server("luau", ".luau")["command"], "env": {"NAME": "luau"}}
    user.configure({"lsp": {"luau": server}, **rules})
    answer = json.loads(user.run("check", "main.luau", "--json").stdout)
    assert (answer["meta"]["state"], "warnings" in answer["meta"]) == ("fresh", False)
