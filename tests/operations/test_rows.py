"""The table of operations: nothing missing, nothing twice, and the bytes that each row sends."""

import pytest
from msgspec.structs import fields

from pilotfish.api.answers import HierarchyItem, ItemReference, Location, Point, Span
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Bug
from pilotfish.operations.results import RequestContext
from pilotfish.operations.rows import FIELDS, ROWS
from pilotfish.protocol.capabilities import METHODS
from pilotfish.protocol.codec import encode
from pilotfish.protocol.wire import Raw, WireDiagnostic, WirePosition
from support.values.questions import uri, wire

DOCUMENT = '"textDocument":{"uri":"file:///w/a.py"}'
POSITION = '"position":{"line":0,"character":0}'
RANGE = '{"start":{"line":0,"character":0},"end":{"line":0,"character":4}}'


@pytest.mark.proves("OPS-1", "OPS-3")
def test_every_operation_has_a_row() -> None:
    assert set(ROWS) == set(Operation)


@pytest.mark.proves("MCP-1", "CLI-1")
@pytest.mark.parametrize("name", ["tool", "verb"])
def test_no_two_operations_share_a_name(name: str) -> None:
    names = [getattr(row, name) for row in ROWS.values()]
    assert len(set(names)) == len(names)


@pytest.mark.proves("MCP-1")
def test_the_tools_that_others_script_against_have_their_names() -> None:
    assert {
        "lsp_goto_definition",
        "lsp_find_references",
        "lsp_hover",
        "lsp_document_symbols",
        "lsp_workspace_symbols",
        "lsp_diagnostics",
    } <= {row.tool for row in ROWS.values()}


@pytest.mark.proves("CLI-1")
def test_the_verbs_are_those_of_the_command_line() -> None:
    assert [row.verb for row in ROWS.values()] == [
        "definition",
        "declaration",
        "type-definition",
        "implementation",
        "references",
        "hover",
        "signature",
        "symbols",
        "workspace-symbols",
        "calls prepare",
        "calls in",
        "calls out",
        "types super",
        "types sub",
        "check",
        "rename",
        "rename-file",
        "actions",
        "source",
        "explore",
        "impact",
        "edit-symbol",
    ]


def test_every_field_belongs_to_a_question_and_is_used() -> None:
    used = {
        name
        for row in ROWS.values()
        for form in row.forms
        for name in (*form.required, *form.optional, *row.required, *row.optional)
    }
    assert used == set(FIELDS) == {field.encode_name for field in fields(Question)} - {"operation"}


@pytest.mark.proves("OPS-4", "OPTA-1")
def test_only_what_may_write_asks_first() -> None:
    asking = [operation for operation, row in ROWS.items() if row.permission == "ask"]
    assert asking == [Operation.RENAME, Operation.RENAME_FILE, Operation.CODE_ACTIONS, Operation.EDIT_SYMBOL]


REQUESTS = [
    (Operation.DEFINITION, "textDocument/definition", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.DECLARATION, "textDocument/declaration", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.TYPE_DEFINITION, "textDocument/typeDefinition", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.IMPLEMENTATION, "textDocument/implementation", f"{{{DOCUMENT},{POSITION}}}"),
    (
        Operation.REFERENCES,
        "textDocument/references",
        f'{{{DOCUMENT},{POSITION},"context":{{"includeDeclaration":true}}}}',
    ),
    (Operation.HOVER, "textDocument/hover", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.SIGNATURE, "textDocument/signatureHelp", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.DOCUMENT_SYMBOL, "textDocument/documentSymbol", f"{{{DOCUMENT}}}"),
    (Operation.WORKSPACE_SYMBOL, "workspace/symbol", '{"query":"gre"}'),
    (Operation.PREPARE_CALLS, "textDocument/prepareCallHierarchy", f"{{{DOCUMENT},{POSITION}}}"),
    (Operation.INCOMING_CALLS, "callHierarchy/incomingCalls", '{"item":{"any":1}}'),
    (Operation.OUTGOING_CALLS, "callHierarchy/outgoingCalls", '{"item":{"any":1}}'),
    (Operation.SUPERTYPES, "typeHierarchy/supertypes", '{"item":{"any":1}}'),
    (Operation.SUBTYPES, "typeHierarchy/subtypes", '{"item":{"any":1}}'),
    (Operation.RENAME, "textDocument/rename", f'{{{DOCUMENT},{POSITION},"newName":"hello"}}'),
    (
        Operation.CODE_ACTIONS,
        "textDocument/codeAction",
        f'{{{DOCUMENT},"range":{RANGE},"context":{{"diagnostics":[{{"range":{RANGE},"message":"m"}}],"triggerKind":1}}}}',
    ),
]


@pytest.mark.proves("RPC-7")
def test_whether_a_server_offers_a_request_is_known_for_every_row() -> None:
    requests = [row.request for row in ROWS.values() if row.request is not None]
    assert {request.method for request in requests} | {r.prepare for r in requests if r.prepare} <= set(METHODS)


def test_every_request_is_pinned() -> None:
    assert {operation for operation, _, _ in REQUESTS} == {o for o, row in ROWS.items() if row.request is not None}


@pytest.mark.parametrize(("operation", "method", "sent"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_a_request_sends_exactly_this(operation: Operation, method: str, sent: str) -> None:
    question = Question(operation=operation, query="gre", new_name="hello")
    place = wire(0, 0, 4)
    asked = RequestContext(
        question,
        uri=uri("a.py"),
        position=WirePosition(0, 0),
        range=place,
        diagnostics=(WireDiagnostic(place, "m"),),
        item=Raw(b'{"any":1}'),
    )
    request = ROWS[operation].request
    assert request is not None
    assert request.method == method
    assert encode(request.build(asked)).decode() == sent


def test_references_can_leave_the_declaration_out() -> None:
    request = ROWS[Operation.REFERENCES].request
    assert request is not None
    question = Question(operation=Operation.REFERENCES, include_declaration=False)
    built = request.build(RequestContext(question, uri=uri("a.py"), position=WirePosition(0, 0)))
    assert b'"includeDeclaration":false' in encode(built)


def test_actions_can_be_asked_for_by_kind() -> None:
    request = ROWS[Operation.CODE_ACTIONS].request
    assert request is not None
    question = Question(operation=Operation.CODE_ACTIONS, kind="source.organizeImports")
    built = request.build(RequestContext(question, uri=uri("a.py"), range=wire(0, 0, 0)))
    assert b'"context":{"diagnostics":[],"only":["source.organizeImports"],"triggerKind":1}' in encode(built)


@pytest.mark.proves("OPS-7")
def test_an_item_that_is_handed_back_is_the_servers_own_without_our_members() -> None:
    start, end = Point(1, 4), Point(1, 9)
    item = HierarchyItem(
        name="greet",
        uri="file:///w/%61.py",
        range=Span(start, end),
        selection_range=Span(start, end),
        kind=12,
        tags=(1,),
        data=None,
        server="fakels",
        location=Location(path="a.py", line=2, character=5, end_line=2, end_character=10),
    )
    place = '{"start":{"line":1,"character":4},"end":{"line":1,"character":9}}'
    request = ROWS[Operation.INCOMING_CALLS].request
    assert request is not None
    assert encode(request.build(RequestContext(Question(operation=Operation.INCOMING_CALLS), item=item))).decode() == (
        f'{{"item":{{"name":"greet","uri":"file:///w/%61.py","range":{place},"selectionRange":{place},'
        '"kind":12,"tags":[1],"data":null}}'
    )


def test_an_item_without_data_goes_back_without_data() -> None:
    span = Span(Point(0, 0), Point(0, 1))
    item = ItemReference(name="f", uri="file:///w/a.py", range=span, selection_range=span, kind=12)
    request = ROWS[Operation.SUPERTYPES].request
    assert request is not None
    assert b"data" not in encode(request.build(RequestContext(Question(operation=Operation.SUPERTYPES), item=item)))


@pytest.mark.parametrize(("operation", "method", "sent"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_a_question_without_what_it_needs_is_our_fault(operation: Operation, method: str, sent: str) -> None:
    request = ROWS[operation].request
    assert request is not None
    with pytest.raises(Bug, match=operation):
        request.build(RequestContext(Question(operation=operation)))
