"""One row per operation: all that tools, command line, validation, documents and tests need to know about it.

A row says what a question needs (`forms`), how a server is asked and its answer read (`request`), what the answer is
(`data`), what the operation is called on each surface, and what it may do. All else follows: verbs, tools and their
hints, schemas, validation, order of results, the tables of the documents. CONTRIBUTING says what a new row needs beside
it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    Diagnostic,
    Edge,
    Exploration,
    HierarchyItem,
    Hover,
    Impact,
    Location,
    Signature,
    Symbol,
    SymbolText,
)
from pilotfish.api.questions import Operation, Question
from pilotfish.operations.actions import read_actions
from pilotfish.operations.hierarchy import protocol_item, read_incoming, read_items, read_outgoing
from pilotfish.operations.results import (
    Reading,
    RequestContext,
    ServerResult,
    read_hover,
    read_locations,
    read_signatures,
)
from pilotfish.operations.symbols import of_kinds, outline, read_document_symbols, read_workspace_symbols
from pilotfish.protocol.wire import Raw, TextDocumentIdentifier

Type = Literal["string", "integer", "boolean", "object"]


class Field(Struct, frozen=True):
    """One field of a question, in the name that it has on the wire."""

    name: str
    type: Type
    description: str = ""
    is_listed: bool = True
    """Whether schemas name it. What few need is taken without: every byte of a schema is paid for in every request."""


FIELDS = {
    field.name: field
    for field in (
        Field("filePath", "string"),
        Field("line", "integer"),
        Field("character", "integer"),
        Field("symbol", "string"),
        Field("query", "string", "Name or part of it"),
        Field("includeDeclaration", "boolean", "Default true"),
        Field("callHierarchyItem", "object", "From an earlier answer", is_listed=False),
        Field("typeHierarchyItem", "object", "From an earlier answer", is_listed=False),
        Field("newName", "string"),
        Field("newPath", "string"),
        Field("action", "string", "Id or title: shows its diff"),
        Field("kind", "string", "Such as quickfix"),
        Field("apply", "boolean", "Default: preview"),
        Field("text", "string", "Text, not on disk"),
        Field("edit", "string", "replace, before, after or delete"),
        Field("digest", "string", "From source: refuses if the text changed"),
        Field("limit", "integer", is_listed=False),
        Field("offset", "integer"),
        Field("depth", "integer", "Levels"),
        Field("severity", "string", "Least: error, warning, information, hint"),
        Field("kinds", "string", "class,method; all: locals too"),
    )
}


class QuestionForm(Struct, frozen=True):
    """Fields that make a question together: all of `required`, any of `optional`."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def fits(self, fields: set[str]) -> bool:
        return set(self.required) <= fields and fields <= {*self.required, *self.optional}


NOTHING = QuestionForm(())
AT = QuestionForm(("filePath", "line", "character"))
ON_LINE = QuestionForm(("filePath", "line"))
NAMED = QuestionForm(("filePath", "symbol"), ("line", "character"))
ANYWHERE = QuestionForm(("symbol",))

PLACE = (AT, ON_LINE, NAMED, ANYWHERE)
"""How a place is given: by numbers, by a line (the name that it is about), by name in a file (and on a line of it), or
by name anywhere in the workspace."""


_INVOKED = 1
"""Code actions are requested by a user, not because a cursor moved."""


def at_position(asked: RequestContext) -> dict[str, object]:
    return {"textDocument": TextDocumentIdentifier(asked.document), "position": asked.place}


def of_references(asked: RequestContext) -> object:
    return {**at_position(asked), "context": {"includeDeclaration": asked.question.include_declaration}}


def of_item(asked: RequestContext) -> object:
    return {"item": protocol_item(asked.hierarchy_item)}


def of_actions(asked: RequestContext) -> object:
    only = {"only": [asked.question.kind]} if asked.question.kind else {}
    return {
        "textDocument": TextDocumentIdentifier(asked.document),
        "range": asked.extent,
        "context": {"diagnostics": asked.diagnostics, **only, "triggerKind": _INVOKED},
    }


MAX_RESULTS = 100
"""More than a model reads; the total is said, so it can ask a narrower question."""

MAX_OUTLINE = 500
"""An outline is read as a whole: this is a file of some 10,000 lines."""

_Read = Callable[[Raw, RequestContext], Reading[ServerResult]]


class Request(Struct, frozen=True):
    """How one server is asked. `read` raises `Malformed` when the answer is of no known shape."""

    method: str
    build: Callable[[RequestContext], object]
    read: _Read | None = None
    """None where the answer is an edit, which `service/changes` reads."""
    prepare: str | None = None
    """Asked first, at the position, when the question brings no item: its first item is the one to ask about."""


PAGED = ("limit", "offset")
"""Every list can be continued."""


class OperationRow(Struct, frozen=True):
    operation: Operation
    request: Request | None
    """None where no single request answers it."""
    data: Any
    """The type of an answer's `data`, which is null where nothing was found or no server answered."""
    forms: tuple[QuestionForm, ...]
    tool: str
    """Its name as an MCP tool."""
    verb: str
    """Its name on the command line."""
    description: str
    advice: str = ""
    """When a model should use its tool, and what for."""
    is_listed: bool = True
    """Whether its tool is among those that a model is shown; it can be called in any case."""
    required: tuple[str, ...] = ()
    """Needed in every form."""
    optional: tuple[str, ...] = ()
    """Allowed in every form."""
    opta: str | None = None
    """Its name in the Opta tool set, if it is there."""
    writes: bool = False
    """Whether it may change files, when asked to."""
    is_wide: bool = False
    """Whether its answer needs the whole project: every use, every implementation, every name."""
    cap: int = MAX_RESULTS
    is_sorted: bool = True
    """By how well the name matches the query if there is one, what is in the workspace first, then by file and place;
    else results stay as the servers gave them."""
    keep: Callable[[Question, Sequence[ServerResult]], Sequence[ServerResult]] = lambda _question, found: found
    """What of one server's results counts."""

    @property
    def permission(self) -> Literal["allow", "ask"]:
        """What a host should do by default when a model calls it."""
        return "ask" if self.writes else "allow"

    @property
    def takes_place(self) -> bool:
        return AT in self.forms


def _locations(method: str, build: Callable[[RequestContext], object] = at_position) -> Request:
    return Request(method, build, read_locations)


_CALLS, _TYPES = "textDocument/prepareCallHierarchy", "textDocument/prepareTypeHierarchy"

_LOCATIONS, _SYMBOLS = tuple[Location, ...], tuple[Symbol, ...]
_ITEMS, _EDGES = tuple[HierarchyItem, ...], tuple[Edge, ...]

# fmt: off
_ROWS = (
    OperationRow(
        Operation.DEFINITION, _locations("textDocument/definition"), _LOCATIONS, PLACE,
        tool="lsp_goto_definition", verb="definition", opta="lsp_definition",
        description="Where a symbol is defined.", advice="Use it instead of grep for a declaration; libraries too.",
    ),
    OperationRow(
        Operation.DECLARATION, _locations("textDocument/declaration"), _LOCATIONS, PLACE,
        tool="lsp_goto_declaration", verb="declaration", is_listed=False,
        description="Where a symbol is declared.", advice="For C headers and stubs; else goto_definition.",
    ),
    OperationRow(
        Operation.TYPE_DEFINITION, _locations("textDocument/typeDefinition"), _LOCATIONS, PLACE,
        tool="lsp_goto_type_definition", verb="type-definition",
        description="Where the type of a symbol is defined.", advice="From a variable to its class.",
    ),
    OperationRow(
        Operation.IMPLEMENTATION, _locations("textDocument/implementation"), _LOCATIONS, PLACE,
        tool="lsp_goto_implementation", verb="implementation",
        description="What implements an interface or method.", advice="Before changing an interface or base method.",
        optional=PAGED, is_wide=True,
    ),
    OperationRow(
        Operation.REFERENCES, _locations("textDocument/references", of_references), _LOCATIONS, PLACE,
        tool="lsp_find_references", verb="references", opta="lsp_references",
        description="Every use of a symbol in the workspace.",
        advice="Use it instead of grep before you change or delete something. By file, with the function around each.",
        optional=("includeDeclaration", *PAGED), is_wide=True,
    ),
    OperationRow(
        Operation.HOVER, Request("textDocument/hover", at_position, read_hover), Hover, PLACE,
        tool="lsp_hover", verb="hover", opta="lsp_hover",
        description="Type and documentation of a symbol.", advice="Use it instead of opening the defining file.",
        is_sorted=False,
    ),
    OperationRow(
        Operation.SIGNATURE, Request("textDocument/signatureHelp", at_position, read_signatures), tuple[Signature, ...],
        PLACE,
        tool="lsp_signature", verb="signature", is_listed=False,
        description="Signatures of the call around a position.", advice="While writing a call.",
        is_sorted=False,
    ),
    OperationRow(
        Operation.DOCUMENT_SYMBOL,
        Request(
            "textDocument/documentSymbol",
            lambda asked: {"textDocument": TextDocumentIdentifier(asked.document)}, read_document_symbols,
        ),
        _SYMBOLS, (QuestionForm(("filePath",)),),
        tool="lsp_document_symbols", verb="symbols", opta="lsp_document_symbols",
        description="Outline of a file: its symbols and where they are.",
        advice="Use it instead of reading a long file.",
        optional=("depth", "kinds", *PAGED), cap=MAX_OUTLINE, keep=outline, is_sorted=False,
    ),
    OperationRow(
        Operation.WORKSPACE_SYMBOL,
        Request("workspace/symbol", lambda asked: {"query": asked.query}, read_workspace_symbols), _SYMBOLS,
        (QuestionForm(("query",), ("filePath",)),),
        tool="lsp_workspace_symbols", verb="workspace-symbols", opta="lsp_symbols",
        description="Find symbols by name in the whole workspace.",
        advice="Use it instead of grep or find when you do not know the file.",
        optional=("kinds", *PAGED), is_wide=True, keep=of_kinds,
    ),
    OperationRow(
        Operation.PREPARE_CALLS, Request(_CALLS, at_position, read_items), _ITEMS, PLACE,
        tool="lsp_prepare_call_hierarchy", verb="calls prepare", is_listed=False,
        description="The call hierarchy item of a function.",
    ),
    OperationRow(
        Operation.INCOMING_CALLS, Request("callHierarchy/incomingCalls", of_item, read_incoming, prepare=_CALLS),
        _EDGES, (*PLACE, QuestionForm(("callHierarchyItem",), ("filePath",))),
        tool="lsp_incoming_calls", verb="calls in",
        description="Who calls a function, and where.", advice="Calls alone, not other uses.",
        optional=PAGED, is_wide=True,
    ),
    OperationRow(
        Operation.OUTGOING_CALLS, Request("callHierarchy/outgoingCalls", of_item, read_outgoing, prepare=_CALLS),
        _EDGES, (*PLACE, QuestionForm(("callHierarchyItem",), ("filePath",))),
        tool="lsp_outgoing_calls", verb="calls out",
        description="What a function calls, and where.", advice="To follow what a function does.",
        optional=PAGED,
    ),
    OperationRow(
        Operation.SUPERTYPES, Request("typeHierarchy/supertypes", of_item, read_items, prepare=_TYPES), _ITEMS,
        (*PLACE, QuestionForm(("typeHierarchyItem",), ("filePath",))),
        tool="lsp_supertypes", verb="types super",
        description="What a type is derived from.",
        optional=PAGED,
    ),
    OperationRow(
        Operation.SUBTYPES, Request("typeHierarchy/subtypes", of_item, read_items, prepare=_TYPES), _ITEMS,
        (*PLACE, QuestionForm(("typeHierarchyItem",), ("filePath",))),
        tool="lsp_subtypes", verb="types sub",
        description="What is derived from a type.", advice="Before changing a base class.",
        optional=PAGED, is_wide=True,
    ),
    OperationRow(
        Operation.DIAGNOSTICS, None, dict[str, tuple[Diagnostic, ...]],
        (QuestionForm(("filePath",), ("text", "severity")), QuestionForm((), ("severity",))),
        tool="lsp_diagnostics", verb="check",
        description="Fresh errors and warnings of a file or folder; without filePath, of the whole project.",
        advice="Use it instead of running the compiler or linter.",
    ),
    OperationRow(
        Operation.RENAME,
        Request("textDocument/rename", lambda asked: {**at_position(asked), "newName": asked.new_name}), Changes, PLACE,
        tool="lsp_rename", verb="rename", opta="lsp_rename",
        description="Rename a symbol everywhere; by default only a diff.", advice="Use it instead of editing each use.",
        required=("newName",), optional=("apply",), writes=True, is_wide=True,
    ),
    OperationRow(
        Operation.RENAME_FILE, None, Changes, (QuestionForm(("filePath", "newPath")),),
        tool="lsp_rename_file", verb="rename-file",
        description="Move a file and update imports; by default only a diff.", advice="Use it instead of mv.",
        optional=("apply",), writes=True,
    ),
    OperationRow(
        Operation.CODE_ACTIONS, Request("textDocument/codeAction", of_actions, read_actions), tuple[Action, ...],
        (QuestionForm(("filePath", "line"), ("character",)),),
        tool="lsp_code_actions", verb="actions",
        description="Quick fixes and refactorings on a line.",
        advice="For imports and mechanical fixes; give action to see its diff.",
        optional=("kind", "action", "apply"), writes=True,
    ),
    OperationRow(
        Operation.SOURCE, None, tuple[SymbolText, ...], PLACE,
        tool="lsp_source", verb="source",
        description="The whole text of a symbol, or of several (a, b).", advice="Use it instead of reading a file.",
    ),
    OperationRow(
        Operation.EXPLORE, None, Exploration, PLACE,
        tool="lsp_explore", verb="explore",
        description="Signature, documentation, text and users of a symbol.",
        advice="Start here in code you do not know.",
    ),
    OperationRow(
        Operation.IMPACT, None, Impact, (NOTHING, *PLACE),
        tool="lsp_impact", verb="impact",
        description="What uncommitted changes, or a symbol, touch: users, errors.",
        advice="Changed symbols, who uses them, what is broken now; use it before you finish.",
    ),
    OperationRow(
        Operation.EDIT_SYMBOL, None, Changes, PLACE,
        tool="lsp_edit_symbol", verb="edit-symbol",
        description="Replace, delete or extend a symbol by name; by default a diff.",
        advice="Use it instead of editing by line.",
        required=("edit",), optional=("text", "digest", "apply"), writes=True,
    ),
)
# fmt: on

ROWS: Mapping[Operation, OperationRow] = {row.operation: row for row in _ROWS}


def request_of(operation: Operation) -> Request:
    """Of an operation that is one request."""
    request = ROWS[operation].request
    assert request is not None
    return request


# --- Answers read back from JSON, by a program that shows what another process answered -------------------------------


def answer_of(plain: Mapping[str, Any]) -> Answer[Any]:
    """Raises `msgspec.ValidationError`: for an answer that lies about its state, too."""
    return msgspec.convert(plain, Answer[_DATA.get(str(plain.get("operation")), Any)])


_DATA: Mapping[str, Any] = {operation: row.data for operation, row in ROWS.items()}
