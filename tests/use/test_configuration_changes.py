"""What runs after somebody has changed a configuration file, and what is told about a server that cannot answer."""

import json
from typing import Any

import pytest

from support.daemon.users import ShellUser, named_server
from support.process_tree import ends

pytestmark = [pytest.mark.slow, pytest.mark.proves("CFG-10")]


def row_of(user: ShellUser, server: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads(user.run("status", "--json").stdout)["rows"]
    (row,) = [row for row in rows if row["serverId"] == server]
    return row


def start(user: ShellUser) -> int:
    user.configure({"lsp": {"toy": named_server("toy", ".x")}})
    user.write("inner/marker", "")
    user.write("inner/a.x", "bad\n")
    assert "toy found a bad word" in user.run("check", "inner/a.x").stdout
    (instance,) = row_of(user, "toy")["instances"]
    return instance["pid"]


@pytest.mark.parametrize("change", [{"env": {"NAME": "other"}}, {"roots": ["marker"]}], ids=["env", "roots"])
def test_the_old_process_ends_at_once_and_the_row_is_that_of_the_new_one(
    user: ShellUser, change: dict[str, Any]
) -> None:
    before = start(user)
    user.configure({"lsp": {"toy": {**named_server("toy", ".x"), **change}}})
    assert "found a bad word" in user.run("check", "inner/a.x").stdout
    assert ends(before)
    (instance,) = row_of(user, "toy")["instances"]
    assert (instance["state"], instance["pid"] == before) == ("active", False)


def test_a_server_that_is_turned_off_ends_before_anything_else_is_asked_of_it(user: ShellUser) -> None:
    before = start(user)
    user.configure({"lsp": {"toy": {**named_server("toy", ".x"), "disabled": True}}})
    row = row_of(user, "toy")
    assert row["disabled"]
    assert ends(before)


def test_a_broken_server_is_not_broken_any_more_once_its_entry_is_mended(user: ShellUser) -> None:
    entry = named_server("toy", ".x")
    user.configure({"lsp": {"toy": {**entry, "command": ["/bin/false"]}}})
    user.write("a.x", "bad\n")
    user.run("check", "a.x")
    assert "broken" in row_of(user, "toy")
    user.configure({"lsp": {"toy": entry}})
    assert "toy found a bad word" in user.run("check", "a.x").stdout
    row = row_of(user, "toy")
    assert "broken" not in row
    assert [instance["state"] for instance in row["instances"]] == ["active"]


def test_a_time_out_of_initialize_is_a_time_out_and_took_as_long_as_it_took(user: ShellUser) -> None:
    slow = {"command": ["/bin/sleep", "1000"], "extensions": [".x"], "timeouts": {"initializeTimeoutMs": 1500}}
    user.configure({"lsp": {"slow": slow}})
    user.write("a.x", "bad\n")
    answer = json.loads(user.run("hover", "a.x:1:1", "--json").stdout)
    assert answer["errors"][0]["code"] == "init_timeout"
    assert answer["meta"]["timedOut"]
    assert answer["meta"]["durationMs"] >= 1500


@pytest.mark.parametrize("verb", [["hover", "a.xyz:1:1"], ["check", "a.xyz"], ["touched", "a.xyz", "--json"]])
def test_a_file_that_no_server_is_for_is_said_to_be_one_in_the_same_words(user: ShellUser, verb: list[str]) -> None:
    user.write("a.xyz", "text\n")
    assert "No LSP server configured for .xyz files" in user.run(*verb).stdout


@pytest.mark.parametrize("place", ["a.x:0:1", "missing.x:1:1"])
def test_a_wrong_question_does_not_read_as_if_a_server_were_unavailable(user: ShellUser, place: str) -> None:
    user.write("a.x", "text\n")
    done = user.run("hover", place)
    assert done.returncode == 3
    assert "unavailable" not in done.stdout + done.stderr
