"""Tool schemas: small, in every form, and the same as what validation takes."""

from typing import Any, cast

import pytest

from pilotfish.api.questions import Operation
from pilotfish.operations.rows import FIELDS, ROWS
from pilotfish.operations.tools import NAMED, OPTA, Format, ToolSet, default_tools, tool_schemas
from pilotfish.protocol.codec import encode

KILOBYTE = 1024
INPUT = {Format.ANTHROPIC: "input_schema", Format.MCP: "inputSchema", Format.JSON: "parameters"}


def named(schema: object) -> dict[str, Any]:
    """The part of a schema that has the name, whatever the form."""
    plain = cast("dict[str, Any]", schema)
    return plain.get("function", plain)


def parameters(format_: Format, schema: object) -> dict[str, Any]:
    return named(schema)[INPUT.get(format_, "parameters")]


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("format_", list(Format))
def test_all_named_tools_together_are_at_most_8_kilobytes(format_: Format) -> None:
    assert len(encode(tool_schemas(format_, ToolSet.NAMED))) <= 8 * KILOBYTE


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("format_", list(Format))
@pytest.mark.parametrize("tools", [ToolSet.ONE, ToolSet.OPTA])
def test_the_small_sets_are_at_most_3_kilobytes(format_: Format, tools: ToolSet) -> None:
    assert len(encode(tool_schemas(format_, tools))) <= 3 * KILOBYTE


@pytest.mark.proves("MCP-1", "OPTA-1")
@pytest.mark.parametrize("format_", list(Format))
@pytest.mark.parametrize("tools", [ToolSet.NAMED, ToolSet.OPTA])
def test_a_schema_takes_what_validation_takes(format_: Format, tools: ToolSet) -> None:
    known = NAMED if tools is ToolSet.NAMED else OPTA
    schemas = tool_schemas(format_, tools)
    assert [named(schema)["name"] for schema in schemas] == [name for name in known if known[name].row.is_listed]
    for schema in schemas:
        tool = known[named(schema)["name"]]
        taken = parameters(format_, schema)
        listed = [name for name in tool.fields if FIELDS[name].is_listed]
        assert set(taken["properties"]) == {tool.dialect.name_of(name) for name in listed}
        # Over MCP, diagnostics of no file are those of all files that have any.
        anything = format_ is Format.MCP and tool.row.operation is Operation.DIAGNOSTICS
        assert taken.get("required", []) == ([] if anything else [tool.dialect.name_of(name) for name in tool.required])
        # Only a set with a specification of its own takes nothing but what it names.
        assert taken.get("additionalProperties", True) is (tools is ToolSet.NAMED)


@pytest.mark.proves("OPTA-1")
def test_the_opta_functions_are_those_of_their_specification() -> None:
    functions = {
        named(schema)["name"]: named(schema)["parameters"] for schema in tool_schemas(Format.OPENAI, ToolSet.OPTA)
    }
    assert {name: (list(taken["properties"]), taken["required"]) for name, taken in functions.items()} == {
        "lsp_definition": (["path", "line", "character"], ["path", "line", "character"]),
        "lsp_references": (["path", "line", "character", "include_declaration"], ["path", "line", "character"]),
        "lsp_hover": (["path", "line", "character"], ["path", "line", "character"]),
        "lsp_symbols": (["query"], ["query"]),
        "lsp_document_symbols": (["path"], ["path"]),
        "lsp_rename": (["path", "line", "character", "new_name"], ["path", "line", "character", "new_name"]),
    }
    assert functions["lsp_references"]["properties"] == {
        "path": {"type": "string", "description": "File path (relative to cwd)"},
        "line": {"type": "number", "description": "Line number (1-based)"},
        "character": {"type": "number", "description": "Column number (0-based)"},
        "include_declaration": {
            "type": "boolean",
            "description": "Include the declaration itself (default: true)",
        },
    }
    told = {one["name"]: one["description"] for one in map(named, tool_schemas(Format.OPENAI, ToolSet.OPTA))}
    assert told == {
        "lsp_definition": "Go to the definition of a symbol. Returns file path and line number.",
        "lsp_references": "Find all references to a symbol across the workspace.",
        "lsp_hover": "Get type information and documentation for a symbol at a position.",
        "lsp_symbols": "Search for symbols (functions, classes, variables) across the workspace by name.",
        "lsp_document_symbols": "List all symbols (functions, classes, interfaces) defined in a file.",
        "lsp_rename": "Rename a symbol across all files in the workspace. Returns a list of edits to apply.",
    }


@pytest.mark.proves("OPTA-1", "OPS-4")
def test_the_default_permissions_are_ask_for_what_writes() -> None:
    schemas = [named(schema) for schema in tool_schemas(Format.JSON, ToolSet.OPTA)]
    assert {schema["name"]: schema["permission"] for schema in schemas} == {
        "lsp_definition": "allow",
        "lsp_references": "allow",
        "lsp_hover": "allow",
        "lsp_symbols": "allow",
        "lsp_document_symbols": "allow",
        "lsp_rename": "ask",
    }


@pytest.mark.proves("MCP-1")
def test_read_only_tools_are_annotated_so_and_no_others() -> None:
    schemas = [named(schema) for schema in tool_schemas(Format.MCP, ToolSet.NAMED)]
    annotated = {schema["name"] for schema in schemas if schema.get("annotations") == {"readOnlyHint": True}}
    assert annotated == {row.tool for row in ROWS.values() if row.is_listed and not row.writes}


def test_the_one_tool_names_every_operation_and_every_field() -> None:
    schema = tool_schemas(Format.MCP, ToolSet.ONE)[0]
    taken = parameters(Format.MCP, schema)
    assert taken["properties"]["operation"]["enum"] == list(Operation)
    assert taken["required"] == ["operation"]
    assert set(taken["properties"]) == {"operation"} | {
        name for tool in NAMED.values() for name in tool.fields if FIELDS[name].is_listed
    }
    assert schema["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}


def test_a_schema_in_our_own_form_names_the_operation() -> None:
    schema = tool_schemas(Format.JSON, ToolSet.NAMED)[0]
    assert (schema["name"], schema["operation"]) == ("lsp_goto_definition", "goToDefinition")
    assert "operation" not in tool_schemas(Format.JSON, ToolSet.ONE)[0]


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("format_", list(Format))
def test_no_schema_has_what_some_models_refuse_at_the_top(format_: Format) -> None:
    for tools in ToolSet:
        for schema in tool_schemas(format_, tools):
            taken = parameters(format_, schema)
            assert taken["type"] == "object"
            assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(taken)


def test_each_format_has_its_own_set_by_default() -> None:
    assert {format_: default_tools(format_) for format_ in Format} == {
        Format.OPENAI: ToolSet.OPTA,
        Format.ANTHROPIC: ToolSet.NAMED,
        Format.MCP: ToolSet.NAMED,
        Format.JSON: ToolSet.NAMED,
    }
