"""The Pi extension in a plain node, against a real daemon: what it appends, what it leaves alone, the tool."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilotfish.operations.tools import Format, ToolSet, tool_schemas
from support.daemon.homes import DaemonHome
from support.hosts.daemon_trouble import a_hung_daemon
from support.hosts.pi_events import WROTE, asked, edited, result, status_after
from support.hosts.plugins import Driven, driven

pytestmark = pytest.mark.host("node")


@pytest.fixture(scope="module")
def pi(shared: DaemonHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A session that has begun; whatever happens to one file, the next test has another or writes it anew."""
    with driven("pi", shared, tmp_path_factory.mktemp("pi")) as driver:
        driver("fire", event="session_start", data={"reason": "startup"})
        yield driver


@pytest.mark.proves("HOOK-1", "FMT-1", "FMT-8", "FMT-9")
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_an_edit_gets_its_errors_appended_and_a_fixed_file_gets_nothing(
    shared: DaemonHome, pi: Driven, tool: str
) -> None:
    shared.write("a.x", "bad\n")
    told = pi("fire", **result(tool, {"path": "a.x"}))
    assert list(told) == ["content"]
    assert told["content"][0] == WROTE
    assert told["content"][1]["text"].startswith("\nLSP diagnostics detected in this file")
    assert "ERROR [1:1] bad word" in told["content"][1]["text"]
    assert status_after(pi) == "lsp: 1 error after the edit of a.x"
    shared.write("a.x", "good\n")
    assert pi("fire", **result(tool, {"path": "a.x"})) is None
    assert status_after(pi) == "lsp: no errors in a.x"


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize(
    "path", ["a.x", "@a.x", "./a.x", "sub/../a.x", "@{root}/a.x", "~/../workspace/a.x", "with\u00a0space.x"]
)
def test_a_path_means_what_it_means_to_the_tools_of_pi(shared: DaemonHome, pi: Driven, path: str) -> None:
    for name in ("a.x", "with space.x"):
        shared.write(name, "bad\n")
    assert "bad word" in edited(pi, path.format(root=shared.root))["content"][1]["text"]


@pytest.mark.proves("HOOK-1", "FMT-7")
@pytest.mark.parametrize(
    "patch",
    [
        pytest.param("*** Begin Patch\n*** Update File: b.x\n@@\n-good\n+bad\n*** End Patch", id="an update"),
        pytest.param("*** Begin Patch\n*** Add File: b.x\n+bad\n*** End Patch", id="a new file"),
        pytest.param("*** Begin Patch\n*** Update File: old.x\n*** Move to: b.x\n@@\n*** End Patch", id="a move"),
        pytest.param("--- a/b.x\n+++ b/b.x\n@@ -1 +1 @@\n-good\n+bad\n", id="a unified diff"),
        pytest.param("*** Update File: b.x\n+++ /etc/passwd\n", id="a line that only looks like a header"),
    ],
)
def test_a_patch_names_its_files_in_its_headers(shared: DaemonHome, pi: Driven, patch: str) -> None:
    for name in ("b.x", "old.x"):
        shared.write(name, "bad\n")
    text = pi("fire", **result("apply_patch", {"input": patch}))["content"][1]["text"]
    assert 'in this file, please fix:\n<diagnostics file="b.x">' in text
    assert text.count("in this file") == 1


@pytest.mark.proves("HOOK-1", "FMT-7")
@pytest.mark.parametrize(
    "details",
    [
        pytest.param({"files": ["b.x"]}, id="a list of names"),
        pytest.param({"changes": [{"path": "@b.x", "kind": "update"}]}, id="a list of objects"),
        pytest.param({"diff": "--- a/b.x\n+++ b/b.x\n@@ -1 +1 @@\n-good\n+bad\n"}, id="a diff"),
    ],
)
def test_a_patch_tool_may_name_its_files_in_its_details(
    shared: DaemonHome, pi: Driven, details: dict[str, Any]
) -> None:
    shared.write("b.x", "bad\n")
    told = pi("fire", **result("apply_patch", {"input": "s/good/bad/"}, details=details))
    assert 'in this file, please fix:\n<diagnostics file="b.x">' in told["content"][1]["text"]


@pytest.mark.proves("HOOK-1", "FMT-7")
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(result("bash", {"command": "echo bad > a.x"}), id="another tool"),
        pytest.param(result("edit", {"path": "a.x"}, isError=True), id="an edit that failed"),
        pytest.param(result("edit", {}), id="an edit of nothing"),
        pytest.param(result("apply_patch", {"input": "*** Delete File: a.x"}), id="a deletion"),
        pytest.param(result("read", {"path": "a.x"}), id="a read"),
        pytest.param(result("write", {"path": "/etc/hostname"}), id="a file elsewhere"),
        pytest.param(result("write", {"path": "gone.x"}), id="a file that is gone"),
        pytest.param(result("write", {"path": "notes.unknown"}), id="a file that nobody serves"),
        pytest.param({"event": "tool_execution_end", "data": {"toolCallId": "1"}}, id="the end of a tool"),
    ],
)
def test_what_is_none_of_our_business_stays_as_it_is(shared: DaemonHome, pi: Driven, event: dict[str, Any]) -> None:
    shared.write("a.x", "bad\n")
    shared.write("notes.unknown", "bad\n")
    assert pi("fire", **event) is None


@pytest.mark.proves("HOOK-1")
def test_a_file_that_was_read_has_its_server_ready(own: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", own, tmp_path) as pi, own.control(start=True) as control:
        assert pi("fire", **result("read", {"path": "a.x"})) is None
        while "toy" not in control.request("about")["servers"]:
            pass


@pytest.mark.proves("HOOK-1")
def test_nobody_waits_for_a_file_that_was_read(shared: DaemonHome, tmp_path: Path) -> None:
    with a_hung_daemon(shared), driven("pi", shared, tmp_path, waitMs=1_000_000) as pi:
        assert pi("fire", **result("read", {"path": "a.x"})) is None


@pytest.mark.proves("FMT-8")
def test_only_a_verdict_is_shown_as_one(shared: DaemonHome, pi: Driven) -> None:
    shared.write("notes.unknown", "bad\n")
    assert edited(pi, "notes.unknown") is None
    assert status_after(pi).startswith("lsp: no verdict on notes.unknown: ")


@pytest.mark.proves("HOOK-1")
def test_parallel_edits_get_each_its_own_text(shared: DaemonHome, pi: Driven) -> None:
    names = [f"{number}.x" for number in range(8)]
    for number, name in enumerate(names):
        shared.write(name, "bad\n" if number % 2 else "good\n")
    begun = [pi.begin("fire", **result("write", {"path": name}, call=name)) for name in names]
    for number, told in enumerate(map(pi.result, begun)):
        text = told["content"][1]["text"] if told else ""
        own = f'in this file, please fix:\n<diagnostics file="{names[number]}">'
        assert (own in text) is (number % 2 == 1)
        assert text.count("in this file") == number % 2


def attached(home: DaemonHome) -> list[str]:
    with home.control() as control:
        return [each["conversation"] for each in control.request("about")["sessions"] if each["host"] == "pi"]


@pytest.mark.proves("HOOK-1", "F65")
@pytest.mark.parametrize("ending", ["shutdown", "kill"])
def test_a_session_ends_when_pi_says_so_and_when_pi_is_gone(shared: DaemonHome, tmp_path: Path, ending: str) -> None:
    shared.write("a.x", "bad\n")
    with driven("pi", shared, tmp_path) as pi:
        others = attached(shared)
        edited(pi)
        assert attached(shared) == [*others, "conversation"]
        if ending == "kill":
            pi.process.kill()
        else:
            pi("fire", event="session_shutdown", data={"reason": "quit"})
        while attached(shared) != others:
            pass


@pytest.mark.proves("HOOK-1")
def test_a_session_that_is_over_can_be_followed_by_another(shared: DaemonHome, pi: Driven) -> None:
    shared.write("a.x", "bad\n")
    for _ in range(2):
        pi("fire", event="session_start", data={"reason": "new"})
        assert "bad word" in edited(pi)["content"][1]["text"]
        pi("fire", event="session_shutdown", data={"reason": "new"})


@pytest.mark.proves("HOOK-1")
def test_an_open_session_does_not_keep_pi_from_ending(shared: DaemonHome, tmp_path: Path) -> None:
    shared.write("a.x", "bad\n")
    with driven("pi", shared, tmp_path) as pi:
        assert edited(pi) is not None
        assert pi.leave() == ""


# --- The tool -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("OPS-5")
def test_the_tool_has_the_schema_of_the_operations(pi: Driven) -> None:
    (tool,) = pi("registered")
    (schema,) = tool_schemas(Format.JSON, ToolSet.ONE)
    assert {name: tool[name] for name in ("name", "description", "parameters")} == {
        name: schema[name] for name in ("name", "description", "parameters")
    }


@pytest.mark.proves("OPS-6", "PATH-1", "PATH-2")
def test_the_tool_answers_with_the_envelope(shared: DaemonHome, pi: Driven) -> None:
    shared.write("a.x", "bad\n")
    hover = asked(pi, operation="hover", filePath="@a.x", line=1, character=1)
    assert (hover.ok, hover.data) == (True, {"contents": ["a word"]})
    found: Any = asked(pi, operation="diagnostics", filePath="a.x").data
    assert found["a.x"][0]["message"] == "bad word"
    refused = asked(pi, operation="hover", filePath="a.x")
    assert (refused.ok, refused.errors[0].code) == (False, "invalid_input")
    outside = asked(pi, operation="diagnostics", filePath="/etc/hostname")
    assert (outside.ok, outside.errors[0].code) == (False, "outside_workspace")


@pytest.mark.proves("OPS-6")
def test_a_hover_that_finds_nothing_has_contents_that_are_empty(own: DaemonHome, tmp_path: Path) -> None:
    own.configure("wordless")
    own.write("a.x", "fine\n")
    with driven("pi", own, tmp_path / "wordless") as pi:
        pi("fire", event="session_start", data={"reason": "startup"})
        told = pi("tool", name="lsp", parameters={"operation": "hover", "filePath": "a.x", "line": 1, "character": 1})
    answer = json.loads(told["content"][0]["text"])
    assert (answer["ok"], answer["data"], answer["meta"]["empty"]) == (True, {"contents": []}, True)


@pytest.mark.proves("CFG-3", "CFG-7")
def test_the_tool_is_hidden_where_the_configuration_says_so(own: DaemonHome, tmp_path: Path) -> None:
    configurations: list[dict[str, Any]] = [{"navigationTools": False}, {"lsp": False}]
    for number, config in enumerate(configurations):
        own.configure(**config)
        with driven("pi", own, tmp_path / str(number)) as pi:
            pi("fire", event="session_start", data={"reason": "startup"})
            while "lsp" in pi("seen")["active"]:
                pass
            assert pi("seen")["active"] == ["read"]
