"""The operations as MCP tools: what is listed, what is asked, what is answered."""

import json
from typing import Any

import pytest

from pilotfish.api.answers import Effort, Hover, Location, answer_from, refused
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused
from pilotfish.operations.rows import FIELDS, ROWS
from pilotfish.operations.tools import Format, ToolSet, tool_schemas
from pilotfish.protocol.wire import JsonObject
from pilotfish.surfaces.mcp import tools as mcp_tools
from pilotfish.surfaces.mcp.server import hook_result, touch_of
from pilotfish.surfaces.mcp.tools import MAX_TEXT, asked, result

LLXPRT = {
    "lsp_goto_definition",
    "lsp_find_references",
    "lsp_hover",
    "lsp_document_symbols",
    "lsp_workspace_symbols",
    "lsp_diagnostics",
}


def listing(tools: ToolSet) -> list[JsonObject]:
    return [dict(schema) for schema in tool_schemas(Format.MCP, tools)]


@pytest.mark.proves("MCP-1")
def test_every_operation_is_a_tool_the_six_of_llxprt_among_them() -> None:
    names = [tool["name"] for tool in listing(ToolSet.NAMED)]
    assert names == [row.tool for row in ROWS.values() if row.is_listed]
    assert set(names) >= LLXPRT


@pytest.mark.proves("MCP-1")
def test_only_tools_that_never_write_say_that_they_only_read() -> None:
    rows = [row for row in ROWS.values() if row.is_listed]
    for tool, row in zip(listing(ToolSet.NAMED), rows, strict=True):
        assert tool["annotations"]["readOnlyHint"] is not row.writes
        assert tool["annotations"].get("destructiveHint", False) is row.writes
    (one,) = listing(ToolSet.ONE)
    assert one["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}


@pytest.mark.proves("TRUST-5", "T11", "T25")
@pytest.mark.parametrize("tools", [ToolSet.NAMED, ToolSet.ONE])
def test_no_tool_can_name_a_program_a_configuration_or_another_workspace(tools: ToolSet) -> None:
    fields = {field for tool in listing(tools) for field in tool["inputSchema"]["properties"]}
    assert fields <= {"operation", *FIELDS}
    assert not fields & {"command", "args", "env", "config", "settings", "root", "cwd", "server", "trust"}


@pytest.mark.parametrize("tools", [ToolSet.NAMED, ToolSet.ONE])
def test_the_hook_is_not_listed(tools: ToolSet) -> None:
    assert mcp_tools.HOOK not in [tool["name"] for tool in listing(tools)]


def test_diagnostics_need_no_file_and_every_other_schema_is_as_the_rows_have_it() -> None:
    required = {tool["name"]: tool["inputSchema"].get("required") for tool in listing(ToolSet.NAMED)}
    assert required["lsp_diagnostics"] is None
    assert required["lsp_document_symbols"] == ["filePath"]


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        pytest.param("lsp_diagnostics", {}, {}, id="named tool without anything"),
        pytest.param("lsp_diagnostics", {"filePath": None}, {}, id="null is absent"),
        pytest.param("lsp_diagnostics", {"severity": "Errors"}, {"severity": "error"}, id="errors alone"),
        pytest.param("lsp_diagnostics", {"filePath": "a.py"}, {"file_path": "a.py"}, id="named tool with a file"),
        pytest.param("lsp", {"operation": "diagnostics"}, {}, id="one tool without anything"),
    ],
)
@pytest.mark.proves("MCP-1")
def test_diagnostics_of_no_file_are_those_of_the_whole_project(
    name: str, arguments: dict[str, object], wanted: dict[str, Any]
) -> None:
    assert asked(name, arguments) == Question(operation=Operation.DIAGNOSTICS, **wanted)


def test_a_severity_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(Refused, match="severity must be one of error, warning, information, hint"):
        asked("lsp_diagnostics", {"severity": "bad"})


def test_both_kinds_of_tool_ask_the_same_question() -> None:
    place = {"filePath": "a.py", "line": 3, "character": 5}
    question = Question(operation=Operation.HOVER, file_path="a.py", line=3, character=5)
    assert asked("lsp_hover", place) == asked("lsp", {"operation": "hover", **place}) == question


@pytest.mark.proves("OPS-5", "T26")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param({"filePath": "a.py", "line": 0, "character": 1}, Code.INVALID_INPUT, id="a wrong number"),
        pytest.param({f"field {n}": n for n in range(65)}, Code.LIMIT_EXCEEDED, id="too many fields"),
        pytest.param({"x" * 101: 1}, Code.LIMIT_EXCEEDED, id="a field with a long name"),
        pytest.param({"symbol": "x" * 70_000}, Code.LIMIT_EXCEEDED, id="a long value"),
    ],
)
def test_a_call_that_is_wrong_is_refused_by_its_fields(arguments: dict[str, object], code: Code) -> None:
    with pytest.raises(Refused) as refused:
        asked("lsp_hover", arguments)
    assert refused.value.code is code


def test_a_proposed_text_may_be_long() -> None:
    assert asked("lsp_diagnostics", {"filePath": "a.py", "text": "x" * 1_000_000}).text == "x" * 1_000_000


@pytest.mark.proves("MCP-1", "OPS-6", "T31")
def test_a_result_has_the_compact_text_and_the_clean_envelope() -> None:
    place = Location(path="a.py", line=1, character=2, end_line=1, end_character=3, text="x\x1b[31m = 1")
    made = result(answer_from(Operation.DEFINITION, (place,), Effort(server_hits=1)), with_envelope=True)
    assert made["content"] == [{"type": "text", "text": "a.py:1:2  x = 1"}]
    assert made["structuredContent"]["data"][0]["text"] == "x = 1"
    assert made["isError"] is False


@pytest.mark.proves("MCP-1")
def test_a_result_is_the_text_alone_unless_somebody_asks_for_more() -> None:
    made = result(answer_from(Operation.HOVER, Hover(("a word",)), Effort(server_hits=1)))
    assert made["content"] == [{"type": "text", "text": "a word"}]
    assert "structuredContent" not in made


@pytest.mark.proves("MCP-1", "OPS-5")
def test_wrong_arguments_are_named_first_and_what_is_right_after_them() -> None:
    with pytest.raises(Refused) as raised:
        asked("lsp_hover", {"filePath": "a.py", "character": 1})
    (content,) = result(refused("hover", raised.value))["content"]
    assert content["text"].startswith("line is missing. It takes filePath, line")


@pytest.mark.proves("MCP-1")
def test_a_long_answer_ends_with_a_whole_item_and_the_number_of_the_others() -> None:
    places = tuple(
        Location(path="src/a.py", line=n, character=1, end_line=n, end_character=2, text="x" * 100)
        for n in range(1, 190)
    )
    text = result(answer_from(Operation.REFERENCES, places, Effort(server_hits=1)))["content"][0]["text"]
    first, file, *lines, last = text.split("\n")
    assert (first, file) == ("189 results:", "src/a.py")
    assert all(line == f"  {n}:1  {'x' * 100}" for n, line in enumerate(lines, 1))
    assert last == f"… {189 - len(lines)} more of 189 results; go on with offset {len(lines)}"
    assert MAX_TEXT - 200 < len(text.encode()) <= MAX_TEXT


@pytest.mark.proves("OPS-6")
def test_a_refusal_is_an_envelope_that_says_so() -> None:
    made = result(
        refused("hover", Refused(Code.OUTSIDE_WORKSPACE, "/etc/passwd is outside the workspace /w")), with_envelope=True
    )
    assert made["isError"] is True
    assert made["structuredContent"]["errors"] == [
        {"serverId": "pilotfish", "message": "/etc/passwd is outside the workspace /w", "code": "outside_workspace"}
    ]
    assert made["structuredContent"]["meta"]["state"] == "unavailable"


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize(
    ("arguments", "paths", "kind"),
    [
        pytest.param({"filePath": "a.py"}, ("a.py",), "edit", id="one file"),
        pytest.param({"file_path": "a.py", "kind": "write"}, ("a.py",), "write", id="in the host's words"),
        pytest.param({"files": ["a.py", "b.py", "a.py"]}, ("a.py", "b.py"), "patch", id="several files"),
        pytest.param({"files": ["a.py", 5, None, ""]}, ("a.py",), "edit", id="not all of them paths"),
        pytest.param({"kind": "delete"}, (), "edit", id="none"),
    ],
)
def test_a_hook_tells_of_files_in_several_ways(arguments: dict[str, object], paths: tuple[str, ...], kind: str) -> None:
    touch = touch_of(arguments)
    assert (touch.paths, touch.kind) == (paths, kind)


@pytest.mark.proves("HOOK-1", "FMT-8")
def test_a_hook_gets_the_text_or_the_json_that_its_host_reads() -> None:
    assert hook_result({}, "fix it")["content"] == [{"type": "text", "text": "fix it"}]
    (wrapped,) = hook_result({"format": "hook"}, "fix it")["content"]
    assert json.loads(wrapped["text"]) == {
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "fix it"}
    }
    assert hook_result({"format": "hook"}, "")["content"] == [{"type": "text", "text": "{}"}]
    assert hook_result({}, "")["isError"] is False
