"""`pilotfish lsp` as a host runs it: a byte proxy, the daemon behind it, and ty."""

import subprocess
from pathlib import Path

import pytest

from support.clients.lsp import lsp_client
from support.daemon.homes import DaemonHome
from support.servers.real import make_user

pytestmark = pytest.mark.server("ty")

GOOD = "def f() -> int:\n    return 1\n"
BAD = 'def g() -> int:\n    return "x"\n'
USING = "from a import f\n\nprint(f())\n"


@pytest.mark.proves("DIAG-11")
def test_a_touch_publishes_the_file_and_those_that_it_broke_and_nothing_once_they_are_mended(home: DaemonHome) -> None:
    for name, text in {"a.py": GOOD, "b.py": USING, "c.py": USING}.items():
        home.write(name, text)
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        client.open("a.py")
        client.published({"a.py": 0})
        home.write("a.py", BAD)
        client.change("a.py", BAD)
        told = client.published({"a.py": 1, "b.py": 1, "c.py": 1})
        assert told["a.py"][0]["code"] == "invalid-return-type"
        assert told["b.py"][0]["message"].startswith("Module `a` has no member `f`")
        home.write("a.py", GOOD)
        client.change("a.py", GOOD, 3)
        assert client.published({"a.py": 0, "b.py": 0, "c.py": 0}) == {"a.py": [], "b.py": [], "c.py": []}


@pytest.mark.proves("DIAG-11")
def test_a_client_that_reports_a_file_only_after_its_edit_hears_of_the_others_too(home: DaemonHome) -> None:
    """As Claude Code does: the first word about a file is `didOpen`, after the edit."""
    for name, text in {"a.py": GOOD, "b.py": USING}.items():
        home.write(name, text)
    git(home, "init", "-q")
    git(home, "add", ".")
    git(home, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        home.write("a.py", BAD)
        client.open("a.py")
        client.say("textDocument/didSave", {"textDocument": {"uri": client.uri("a.py")}})
        client.published({"a.py": 1, "b.py": 1})


@pytest.mark.proves("DIAG-12")
def test_what_is_found_late_is_published_when_it_is_found(tmp_path: Path) -> None:
    """No edit is waited for, so that everything about it comes late; and nobody asks again."""
    user = make_user(
        tmp_path, ["ty"], {"timing": {"firstTouchTimeoutMs": 1, "diagnosticsWaitTimeoutMs": 1}}, trusted=True
    )
    home = DaemonHome(user.workspace, dict(user.environment))
    home.write("a.py", BAD)
    try:
        with lsp_client(home.root, home.environment) as client:
            client.initialize()
            client.open("a.py")
            client.published({"a.py": 1})
            home.write("a.py", GOOD)
            client.change("a.py", GOOD)
            client.published({"a.py": 0})
    finally:
        home.kill_all()


def test_a_deleted_file_has_no_diagnostics(home: DaemonHome) -> None:
    home.write("a.py", BAD)
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        client.open("a.py")
        client.published({"a.py": 1})
        (home.root / "a.py").unlink()
        client.say("workspace/didChangeWatchedFiles", {"changes": [{"uri": client.uri("a.py"), "type": 3}]})
        client.published({"a.py": 0})


def test_questions_are_answered_from_the_disk_in_utf_16_units(home: DaemonHome) -> None:
    home.write("a.py", GOOD)
    home.write("b.py", 'from a import f\n\nname = "🐟🐟", f()\n')
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        # The call starts at code point 13; each fish is two units.
        place = client.at("b.py", 2, 15)
        (found,) = client.ask("textDocument/definition", place)
        assert found == {"uri": client.uri("a.py"), "range": extent(0, 4, 0, 5)}
        assert "-> int" in client.ask("textDocument/hover", place)["contents"]["value"]
        uses = client.ask("textDocument/references", {**place, "context": {"includeDeclaration": False}})
        assert {"uri": client.uri("b.py"), "range": extent(2, 15, 2, 16)} in uses
        assert {"uri": client.uri("a.py"), "range": extent(0, 4, 0, 5)} not in uses
        (symbol,) = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": client.uri("a.py")}})
        assert (symbol["name"], symbol["kind"], symbol["selectionRange"]) == ("f", 12, extent(0, 4, 0, 5))
        assert symbol["range"] == extent(0, 0, 1, 12)
        assert {one["name"] for one in client.ask("workspace/symbol", {"query": "f"})} >= {"f"}


def test_a_rename_comes_as_edits_of_whole_lines(home: DaemonHome) -> None:
    home.write("a.py", GOOD)
    home.write("b.py", 'from a import f\n\nname = "🐟", f()')
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        assert client.ask("textDocument/prepareRename", client.at("a.py", 0, 4)) == {
            "range": extent(0, 4, 0, 5),
            "placeholder": "f",
        }
        edit = client.ask("textDocument/rename", client.at("a.py", 0, 4, newName="h"))
        assert edit["changes"][client.uri("a.py")] == [
            {"range": extent(0, 0, 2, 0), "newText": "def h() -> int:\n    return 1\n"}
        ]
        assert edit["changes"][client.uri("b.py")] == [
            {"range": extent(0, 0, 3, 0), "newText": 'from a import h\n\nname = "🐟", h()'}
        ]
        assert (home.root / "a.py").read_text() == GOOD


def test_diagnostics_can_be_asked_for_one_file_and_for_the_project(home: DaemonHome) -> None:
    home.write("a.py", BAD)
    home.write("b.py", USING)
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        one = client.ask("textDocument/diagnostic", {"textDocument": {"uri": client.uri("a.py")}})
        assert (one["kind"], [item["code"] for item in one["items"]]) == ("full", ["invalid-return-type"])
        everything = client.ask("workspace/diagnostic", {"previousResultIds": []})
        assert {item["uri"]: len(item["items"]) for item in everything["items"]} == {
            client.uri("a.py"): 1,
            client.uri("b.py"): 1,
        }


def test_unsaved_text_is_refused_and_served_again_once_it_is_saved(home: DaemonHome) -> None:
    home.write("a.py", GOOD)
    with lsp_client(home.root, home.environment) as client:
        client.initialize()
        client.open("a.py")
        client.published({"a.py": 0})
        client.change("a.py", BAD + "#")
        refused = client.answer("textDocument/hover", client.at("a.py", 0, 4))["error"]
        assert refused["code"] == -32803
        assert refused["message"].startswith("a.py has text that is not on disk.")
        client.change("a.py", BAD + "##", 3)
        (shown,) = client.heard("window/showMessage")
        assert shown == {"type": 2, "message": refused["message"]}
        home.write("a.py", BAD + "##")
        client.say("textDocument/didSave", {"textDocument": {"uri": client.uri("a.py")}})
        client.published({"a.py": 1})
        assert client.ask("textDocument/hover", client.at("a.py", 0, 4)) is not None


def test_what_is_out_of_turn_or_unknown_is_refused_and_nothing_else_ends(home: DaemonHome) -> None:
    with lsp_client(home.root, home.environment, "--stdio") as client:
        assert client.answer("textDocument/hover", client.at("a.py", 0, 0))["error"]["code"] == -32002
        client.open("a.py", "")
        result = client.initialize()
        assert result["capabilities"]["positionEncoding"] == "utf-16"
        assert client.answer("initialize", {})["error"]["code"] == -32600
        assert client.answer("textDocument/completion", {})["error"]["code"] == -32601
        assert client.answer("textDocument/hover", {"textDocument": {}})["error"]["code"] == -32602
        assert client.answer("textDocument/hover", client.at("../a.py", 0, 0))["error"]["code"] == -32602
        bad = {"item": {"name": "f", "data": {"name": "f"}}}
        assert client.answer("callHierarchy/incomingCalls", bad)["error"]["code"] == -32602
        client.say("textDocument/didOpen", {"textDocument": {"uri": "untitled:1"}})
        assert client.ask("shutdown") is None
        assert client.answer("workspace/symbol", {"query": "f"})["error"]["code"] == -32600
        client.say("exit")
        assert client.process.wait(50) == 0


@pytest.mark.server("basedpyright")
def test_calls_are_followed_with_the_items_that_were_given(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=True)
    home = DaemonHome(user.workspace, {**user.environment})
    home.write("a.py", "def f() -> int:\n    return 1\n\n\ndef g() -> int:\n    return f()\n")
    try:
        with lsp_client(home.root, home.environment) as client:
            client.initialize()
            (item,) = client.ask("textDocument/prepareCallHierarchy", client.at("a.py", 0, 4))
            assert (item["name"], item["uri"]) == ("f", client.uri("a.py"))
            (call,) = client.ask("callHierarchy/incomingCalls", {"item": item})
            assert (call["from"]["name"], call["fromRanges"]) == ("g", [extent(5, 11, 5, 12)])
            (call,) = client.ask("callHierarchy/outgoingCalls", {"item": call["from"]})
            assert (call["to"]["name"], call["fromRanges"]) == ("f", [extent(5, 11, 5, 12)])
    finally:
        home.kill_all()


def test_without_a_daemon_it_serves_by_itself(home: DaemonHome) -> None:
    home.write("a.py", BAD)
    with lsp_client(home.root, home.environment, "--in-process") as client:
        client.initialize()
        client.open("a.py")
        client.published({"a.py": 1})
        assert home.daemons() == []
        client.ask("shutdown")
        client.say("exit")
        assert client.process.wait(50) == 0


def extent(line: int, character: int, end_line: int, end_character: int) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": line, "character": character},
        "end": {"line": end_line, "character": end_character},
    }


def git(home: DaemonHome, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=home.root, check=True, env=home.environment)
