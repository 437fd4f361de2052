"""A row is enough: an operation that only this file knows appears on every surface that is made from the rows."""

import json
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner

from pilotfish.api.answers import Location
from pilotfish.api.questions import Operation
from pilotfish.errors import Refused
from pilotfish.operations.results import read_locations
from pilotfish.operations.rows import PLACE, ROWS, OperationRow, Request, at_position
from pilotfish.operations.tools import Format, ToolSet, named_tools, operation_tools, tool_schemas
from pilotfish.operations.validate import question, usage
from pilotfish.surfaces.cli.questions import commands

NEW = OperationRow(
    cast("Operation", "findTwins"),
    Request("textDocument/twins", at_position, read_locations),
    tuple[Location, ...],
    PLACE,
    tool="lsp_twins",
    verb="twins",
    description="What looks like a symbol.",
    required=("newName",),
    optional=("apply",),
    writes=True,
)
ALL = (*ROWS.values(), NEW)


def schema(format_: Format, tools: ToolSet, name: str) -> dict[str, Any]:
    (found,) = [dict(one) for one in tool_schemas(format_, tools, ALL) if name in json.dumps(one)]
    return found


@pytest.mark.proves("MCP-1")
def test_it_is_a_tool_with_a_schema_and_hints() -> None:
    said = schema(Format.MCP, ToolSet.NAMED, "lsp_twins")
    assert said["description"].startswith("What looks like a symbol.")
    assert said["annotations"]["destructiveHint"]
    assert set(said["inputSchema"]["properties"]) == {"filePath", "line", "character", "symbol", "newName", "apply"}
    assert said["inputSchema"]["required"] == ["newName"]
    assert schema(Format.JSON, ToolSet.NAMED, "lsp_twins")["permission"] == "ask"


def test_it_is_an_operation_of_the_one_tool() -> None:
    said = schema(Format.ANTHROPIC, ToolSet.ONE, "lsp")
    assert said["input_schema"]["properties"]["operation"]["enum"][-1] == "findTwins"
    assert "findTwins also takes newName, apply?" in said["description"]
    assert operation_tools(ALL)["findTwins"].row is NEW


def test_its_arguments_are_checked() -> None:
    tool = named_tools(ALL)["lsp_twins"]
    asked = question(tool, {"filePath": "a.py", "line": 1, "character": 2, "newName": "b"})
    assert (asked.operation, asked.new_name) == ("findTwins", "b")
    with pytest.raises(Refused, match="newName"):
        question(tool, {"symbol": "a"})
    assert "newName" in usage(tool)


@pytest.mark.proves("CLI-1")
def test_it_is_a_verb() -> None:
    root = click.Group("pilotfish", commands=commands(ALL))
    said = CliRunner().invoke(root, ["twins", "--help"]).output
    assert "What looks like a symbol." in said
    assert "NEW_NAME" in said
    assert "--apply" in said
    assert set(commands(ALL)) - set(commands(ROWS.values())) == {"twins"}
