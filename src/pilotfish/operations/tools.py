"""The operations as tools that a model calls: which sets there are, what each tool is called, and how it says things.

`NAMED` has one tool per operation, `ONE` is the single tool `lsp` that takes the operation as an argument, and `OPTA`
has six of them under other names: its fields are in snake case and its `character` counts from 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
from msgspec import Struct

from pilotfish.api.questions import Operation
from pilotfish.operations.form_fields import QuestionForm
from pilotfish.operations.rows import ROWS, OperationRow

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

    @cached_property
    def fitting(self) -> frozenset[frozenset[str]]:
        """Every choice of fields that makes a question, as they are called here."""
        name_of = self.dialect.name_of
        return frozenset(frozenset(map(name_of, names)) for form in self.forms for names in form.fitting())

    @property
    def required(self) -> tuple[str, ...]:
        """The fields that no form can do without."""
        return tuple(name for name in self.forms[0].required if all(name in form.required for form in self.forms))


def _tool(row: OperationRow, name: str) -> OperationTool:
    forms = tuple(QuestionForm((*form.required, *row.required), (*form.optional, *row.optional)) for form in row.forms)
    return OperationTool(name, row, forms)


def _opta(row: OperationRow, name: str) -> OperationTool:
    optional = tuple(name for name in row.optional if name == "includeDeclaration")
    return OperationTool(name, row, (QuestionForm((*row.forms[0].required, *row.required), optional),), SNAKE)


def operation_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    """By operation: what the one tool takes for each."""
    return {row.operation: _tool(row, ONE_TOOL) for row in rows}


def named_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    return {row.tool: _tool(row, row.tool) for row in rows}


def opta_tools(rows: Iterable[OperationRow]) -> Mapping[str, OperationTool]:
    return {row.opta: _opta(row, row.opta) for row in rows if row.opta is not None}


OPERATIONS = operation_tools(ROWS.values())
NAMED = named_tools(ROWS.values())
OPTA = opta_tools(ROWS.values())
