"""The operations as tools that a model calls: which sets there are, what each tool is called, and how it says things.

`NAMED` has one tool per operation, `ONE` is the single tool `lsp` that takes the operation as an argument, and `OPTA`
has six of them under other names: its fields are in snake case and its `character` counts from 0.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import assert_never

import msgspec
from msgspec import Struct

from pilotfish.api.questions import Operation
from pilotfish.operations.rows import FIELDS, ROWS, OperationRow, QuestionForm

ONE_TOOL = "lsp"


class ToolDialect(Struct, frozen=True):
    """How a set of tools says things: its own names for some fields, and where it starts to count characters."""

    names: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    first_character: int = 1
    number: str = "integer"
    """What its schemas call the type of a line."""
    clamps_lines: bool = False
    """Whether a line that is too low means the first one."""
    descriptions: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Its own descriptions of tools and fields, by our names of operations and fields."""

    def name_of(self, field: str) -> str:
        """What a field is called here."""
        return self.names.get(field, field)


PLAIN = ToolDialect()
SNAKE = ToolDialect(
    names={
        "filePath": "path",
        "includeDeclaration": "include_declaration",
        "newName": "new_name",
    },
    first_character=0,
    number="number",
    clamps_lines=True,
    descriptions={
        Operation.DEFINITION: "Go to the definition of a symbol. Returns file path and line number.",
        Operation.REFERENCES: "Find all references to a symbol across the workspace.",
        Operation.HOVER: "Get type information and documentation for a symbol at a position.",
        Operation.WORKSPACE_SYMBOL: (
            "Search for symbols (functions, classes, variables) across the workspace by name."
        ),
        Operation.DOCUMENT_SYMBOL: "List all symbols (functions, classes, interfaces) defined in a file.",
        Operation.RENAME: "Rename a symbol across all files in the workspace. Returns a list of edits to apply.",
        "filePath": "File path (relative to cwd)",
        "line": "Line number (1-based)",
        "character": "Column number (0-based)",
        "query": "Symbol name or partial name to search for",
        "includeDeclaration": "Include the declaration itself (default: true)",
        "newName": "New name for the symbol",
    },
)
"""The tools of Opta's specification, word for word."""


@dataclass(frozen=True)
class OperationTool:
    """One operation under one name. A question must have one of the forms, whole."""

    name: str
    row: OperationRow
    forms: tuple[QuestionForm, ...]
    dialect: ToolDialect = PLAIN

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Every field that it takes, in the order of the forms."""
        return tuple(dict.fromkeys(name for form in self.forms for name in (*form.required, *form.optional)))

    @cached_property
    def own_names(self) -> Mapping[str, str]:
        """Our name of each field, by what it is called here."""
        return {self.dialect.name_of(name): name for name in self.fields}

    @property
    def required(self) -> tuple[str, ...]:
        """The fields that no form can do without."""
        return tuple(name for name in self.forms[0].required if all(name in form.required for form in self.forms))


def _tool(row: OperationRow, name: str) -> OperationTool:
    forms = tuple(QuestionForm((*form.required, *row.required), (*form.optional, *row.optional)) for form in row.forms)
    return OperationTool(name, row, forms)


def operation_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    """By operation: what the one tool takes for each."""
    return {row.operation: _tool(row, ONE_TOOL) for row in rows}


def named_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    return {row.tool: _tool(row, row.tool) for row in rows}


def opta_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    tools = dict[str, OperationTool]()
    for row in rows:
        if row.opta is not None:
            optional = tuple(name for name in row.optional if name == "includeDeclaration")
            form = QuestionForm((*row.forms[0].required, *row.required), optional)
            tools[row.opta] = OperationTool(row.opta, row, (form,), SNAKE)
    return tools


OPERATIONS = operation_tools(ROWS.values())
NAMED = named_tools(ROWS.values())
OPTA = opta_tools(ROWS.values())


# --- Schemas ----------------------------------------------------------------------------------------------------------

# In the forms that models are given them. Every request of a model carries all of its tools, so every byte here is paid
# for again and again: descriptions are as short as they can be, and there is no `anyOf`, which two of the forms do not
# allow at the top anyway. What exactly goes together is checked when a tool is called, and the refusal says it.
# Nothing in here comes from a server or a repository.

Schema = Mapping[str, object]


READS: Schema = {"readOnlyHint": True}
WRITES: Schema = {"destructiveHint": True, "idempotentHint": False, "readOnlyHint": False}
"""What an MCP host may do without asking. The other hints mean something only for a tool that writes."""


class Format(StrEnum):
    """Whose form a schema has."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"
    JSON = "json"
    """Ours, with the operation and the default permission beside it."""


class ToolSet(StrEnum):
    """Which tools."""

    NAMED = "named"
    ONE = "lsp"
    OPTA = "opta"


class McpOptions(Struct, frozen=True):
    """How tools are listed and answered; None leaves it to the configuration. A client sends it with its request."""

    tools: ToolSet | None = None
    structured: bool | None = None
    """Whether results have the envelope as structured content beside the text."""


def tool_schemas(
    format_: Format, tools: ToolSet, rows: Collection[OperationRow] = tuple(ROWS.values())
) -> list[Schema]:
    """The schemas of a set of tools."""
    match tools:
        case ToolSet.NAMED:
            chosen = named_tools(rows)
        case ToolSet.OPTA:
            chosen = opta_tools(rows)
        case ToolSet.ONE:
            operations = operation_tools(rows)
            return [_shaped(format_, ONE_TOOL, _one_description(operations), _one_parameters(operations), None)]
        case _:
            assert_never(tools)
    return [
        _shaped(format_, tool.name, _description(tool), _parameters(tool), tool)
        for tool in chosen.values()
        if tool.row.is_listed
    ]


def default_tools(format_: Format) -> ToolSet:
    """The set that a format is asked for without naming one: the OpenAI form came with Opta."""
    return ToolSet.OPTA if format_ is Format.OPENAI else ToolSet.NAMED


def _shaped(format_: Format, name: str, description: str, parameters: Schema, tool: OperationTool | None) -> Schema:
    """`tool` is None for the one tool, which can write because one of its operations can."""
    read_only = tool is not None and not tool.row.writes
    match format_:
        case Format.OPENAI:
            function = {"name": name, "description": description, "parameters": parameters}
            return {"type": "function", "function": function}
        case Format.ANTHROPIC:
            return {"name": name, "description": description, "input_schema": parameters}
        case Format.MCP:
            hints = READS if read_only else WRITES
            schema = _in_wire_order(parameters)
            return {"annotations": hints, "description": description, "inputSchema": schema, "name": name}
        case Format.JSON:
            operation = {} if tool is None else {"operation": tool.row.operation}
            permission = {"permission": "allow" if read_only else "ask"}
            return {"name": name, **operation, "description": description, **permission, "parameters": parameters}
        case _:
            assert_never(format_)


def _in_wire_order(parameters: Schema) -> Schema:
    """The members as `tools/list` has them in every version with a handshake: the SDK puts its own fields first."""
    order = ("properties", "required", "type", "additionalProperties")
    return {key: parameters[key] for key in order if key in parameters and parameters[key] != ()}


def _description(tool: OperationTool) -> str:
    """A place can be given in several ways, which the list of fields alone does not tell."""
    if tool.row.operation in tool.dialect.descriptions:
        return tool.dialect.descriptions[tool.row.operation]
    how = "By symbol, or filePath and line." if tool.row.takes_place and len(tool.forms) > 1 else ""
    return " ".join(part for part in (tool.row.description, tool.row.advice, how) if part)


def _parameters(tool: OperationTool) -> Schema:
    shown = [name for name in tool.fields if FIELDS[name].is_listed]
    properties = {tool.dialect.name_of(name): _property(tool, name) for name in shown}
    required = [tool.dialect.name_of(name) for name in tool.required]
    # More is taken than is named, unless the set has a specification of its own.
    closed = {"additionalProperties": False} if tool.dialect is SNAKE else {}
    return {**_object(properties, required), **closed}


def _object(properties: Mapping[str, Schema], required: Iterable[str]) -> Schema:
    needed = {"required": names} if (names := list(required)) else {}
    return {"type": "object", "properties": properties, **needed}


def _property(tool: OperationTool, name: str) -> Schema:
    field = FIELDS[name]
    is_number = field.type == "integer"
    said = tool.dialect.descriptions.get(name, "" if is_number else field.description)
    return {"type": tool.dialect.number if is_number else field.type, **({"description": said} if said else {})}


def _one_description(operations: Mapping[str, OperationTool]) -> str:
    lines = [f"{operation}: {_fields(tool)}" for operation, tool in operations.items() if not tool.row.takes_place]
    also = [
        f"{operation} also takes {', '.join(extra)}"
        for operation, tool in operations.items()
        if tool.row.takes_place and (extra := _beyond_place(tool))
    ]
    return (
        "Ask the language servers about code. A place is filePath, line, character (1-based), or symbol "
        f"(with filePath and line if known). {'; '.join(lines)}. The others take a place; {'; '.join(also)}."
    )


def _fields(tool: OperationTool) -> str:
    form = tool.forms[0]
    optional = [f"{name}?" for name in form.optional]
    return ", ".join([*form.required, *optional])


def _beyond_place(tool: OperationTool) -> list[str]:
    place = {"filePath", "line", "character", "symbol"}
    needed = [name for name in tool.required if name not in place]
    optional = [f"{name}?" for name in tool.fields if name not in place and name not in needed]
    return [*needed, *optional]


def _one_parameters(operations: Mapping[str, OperationTool]) -> Schema:
    anyone = next(iter(operations.values()))
    fields = dict.fromkeys(name for tool in operations.values() for name in tool.fields if FIELDS[name].is_listed)
    operation: Schema = {"type": "string", "enum": list(operations)}
    return _object({"operation": operation} | {name: _property(anyone, name) for name in fields}, ["operation"])
