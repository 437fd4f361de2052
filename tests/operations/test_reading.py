"""Every shape that servers have ever sent, for every operation: read, refused as a whole, or skipped item by item."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Raw

from pilotfish.api.answers import Edge, HierarchyItem, Hover, Location, Signature, Symbol
from pilotfish.api.questions import Operation, Question
from pilotfish.client.session import Session
from pilotfish.errors import ServerFailed
from pilotfish.operations.results import Reading, RequestContext, ServerResult, Spot
from pilotfish.operations.rows import ROWS
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import TextChange
from pilotfish.protocol.wire import WireCommand
from pilotfish.service.changes.edit_proposals import plan_of
from support.values.questions import asked, path, raw, uri, view, wire, wire_range

Json = Any

LOCATIONS = [
    Operation.DEFINITION,
    Operation.DECLARATION,
    Operation.TYPE_DEFINITION,
    Operation.IMPLEMENTATION,
    Operation.REFERENCES,
]
SYMBOLS = [Operation.DOCUMENT_SYMBOL, Operation.WORKSPACE_SYMBOL]
ITEMS = [Operation.PREPARE_CALLS, Operation.SUPERTYPES, Operation.SUBTYPES]
EDGES = [Operation.INCOMING_CALLS, Operation.OUTGOING_CALLS]
REQUESTS = [operation for operation, row in ROWS.items() if row.request is not None and row.request.read is not None]

SESSION = cast("Session", SimpleNamespace(server="s", root=path("")))
HERE = wire_range(1, 4, 9)
BODY = wire_range(1, 0, 1, end_line=8)
LOCATION = {"uri": uri("a.py"), "range": HERE}
LINK = {"targetUri": uri("a.py"), "targetRange": BODY, "targetSelectionRange": HERE}
ITEM: Json = {"name": "greet", "kind": 12, "uri": uri("a.py"), "range": BODY, "selectionRange": HERE}
EDIT = {"changes": {uri("a.py"): [{"range": HERE, "newText": "x"}]}}


def read(operation: Operation, answer: Json) -> Reading[ServerResult]:
    request = ROWS[operation].request
    assert request is not None
    assert request.read is not None
    return request.read(raw(answer), RequestContext(Question(operation=operation), uri=uri("a.py"), item=raw(ITEM)))


def spots(reading: Reading[ServerResult]) -> list[Spot]:
    return [found.spots[0] for found in reading.found]


# --- What holds for every operation -------------------------------------------------------------------------------


@pytest.mark.proves("C116")
@pytest.mark.parametrize("operation", REQUESTS)
def test_null_is_an_answer_with_nothing_in_it(operation: Operation) -> None:
    assert read(operation, None) == Reading()


@pytest.mark.proves("F40")
@pytest.mark.parametrize("answer", ["no", 1, True], ids=["string", "number", "boolean"])
@pytest.mark.parametrize("operation", REQUESTS)
def test_an_answer_of_no_known_shape_is_malformed_and_never_empty(operation: Operation, answer: Json) -> None:
    with pytest.raises(Malformed):
        read(operation, answer)


GOOD: dict[Operation, Json] = {
    **dict.fromkeys(LOCATIONS, LOCATION),
    **dict.fromkeys(ITEMS, ITEM),
    Operation.DOCUMENT_SYMBOL: {"name": "greet", "kind": 12, "range": BODY, "selectionRange": HERE},
    Operation.WORKSPACE_SYMBOL: {"name": "greet", "kind": 12, "location": LOCATION},
    Operation.INCOMING_CALLS: {"from": ITEM, "fromRanges": [HERE]},
    Operation.OUTGOING_CALLS: {"to": ITEM, "fromRanges": [HERE]},
    Operation.CODE_ACTIONS: {"title": "Fix"},
}
"""One good item for each operation whose answer is a list."""


@pytest.mark.proves("F40")
@pytest.mark.parametrize("bad", [None, "x", {}, [], {"range": "x"}], ids=["null", "string", "empty", "list", "range"])
@pytest.mark.parametrize("operation", list(GOOD))
def test_bad_items_are_skipped_and_counted(operation: Operation, bad: Json) -> None:
    reading = read(operation, [bad, GOOD[operation], bad])
    assert (len(reading.found), reading.skipped) == (1, 2)


# --- Locations ----------------------------------------------------------------------------------------------------

LOCATION_SHAPES = [
    pytest.param(LOCATION, id="one location"),
    pytest.param([LOCATION], id="a list of locations"),
    pytest.param([LINK], id="a list of links"),
    pytest.param(LINK, id="one link"),
    pytest.param([{**LINK, "originSelectionRange": wire_range(9, 9, 9)}], id="a link with its origin"),
    pytest.param([{"targetUri": uri("a.py"), "targetRange": HERE}], id="a link without a selection"),
]


@pytest.mark.proves("C116")
@pytest.mark.parametrize("answer", LOCATION_SHAPES)
@pytest.mark.parametrize("operation", LOCATIONS)
def test_every_shape_of_a_location_is_the_same_place(operation: Operation, answer: Json) -> None:
    reading = read(operation, answer)
    assert (spots(reading), reading.skipped) == ([Spot(uri("a.py"), wire(1, 4, 9))], 0)


@pytest.mark.proves("C116")
def test_a_list_may_mix_locations_and_links() -> None:
    assert len(read(Operation.DEFINITION, [LINK, LOCATION]).found) == 2


@pytest.mark.proves("C115", "PATH-5")
@pytest.mark.parametrize("foreign", ["jdt://contents/java.base/String.class?=x", "deno:/https/deno.land/x.ts"])
def test_a_uri_that_names_no_file_passes_through(foreign: str) -> None:
    found = read(Operation.DEFINITION, {"uri": foreign, "range": HERE}).found[0]
    assert found.resolved(view()) == Location(
        path=foreign, line=2, character=5, end_line=2, end_character=10, external=True
    )


# --- Hover --------------------------------------------------------------------------------------------------------

HOVERS = [
    pytest.param("plain", ("plain",), id="marked string"),
    pytest.param({"language": "python", "value": "def f()"}, ("```python\ndef f()\n```",), id="marked code"),
    pytest.param({"kind": "markdown", "value": "\n**f**\n"}, ("**f**",), id="markup"),
    pytest.param({"kind": "plaintext", "value": "f"}, ("f",), id="plain markup"),
    pytest.param(["a", {"language": "go", "value": "x"}, ""], ("a", "```go\nx\n```"), id="list of marked strings"),
    pytest.param([{"kind": "markdown", "value": "a"}], ("a",), id="list of markup"),
    pytest.param(
        {"kind": "markdown", "value": "param\\_name &lt;user&gt;\n```py\na\\_b &lt;\n```\n`c\\_d`"},
        ("param_name <user>\n```py\na\\_b &lt;\n```\n`c\\_d`",),
        id="escapes outside of code",
    ),
    pytest.param("", (), id="empty"),
    pytest.param([], (), id="empty list"),
    pytest.param({"language": "go", "value": " "}, (), id="blank code"),
    pytest.param(["", {"kind": "markdown", "value": ""}, None, 3, {}, {"value": 1}], (), id="nothing readable"),
]


@pytest.mark.proves("C116")
@pytest.mark.parametrize(("contents", "texts"), HOVERS)
def test_every_shape_of_hover_contents_becomes_texts(contents: Json, texts: tuple[str, ...]) -> None:
    found = read(Operation.HOVER, {"contents": contents}).found
    assert tuple(text for one in found for text in cast("Hover", one.resolved(view())).contents) == texts


@pytest.mark.proves("C116")
def test_the_range_of_a_hover_is_in_the_document_asked_about() -> None:
    found = read(Operation.HOVER, {"contents": "x", "range": wire_range(0, 3, 4)}).found[0]
    hover = cast("Hover", found.resolved(view(a="🐟é x")))
    assert hover.range is not None
    assert (hover.range.line, hover.range.character, hover.range.end_character) == (1, 3, 4)


# --- Signatures ---------------------------------------------------------------------------------------------------


def signatures(answer: Json) -> list[Signature]:
    return [cast("Signature", found.resolved(view())) for found in read(Operation.SIGNATURE, answer).found]


@pytest.mark.proves("C116")
def test_signatures_are_read_with_their_active_parameter() -> None:
    parameters = [{"label": "a: int"}, {"label": [10, 13]}]
    answer = {
        "signatures": [
            {
                "label": "f(a: int, b🐟)",
                "parameters": parameters,
                "documentation": {"kind": "markdown", "value": "doc\\_x:\n&nbsp;&nbsp;&lt;b&gt; of `&lt;`"},
            },
            {"label": "f()"},
        ],
        "activeSignature": 0,
        "activeParameter": 1,
    }
    assert signatures(answer) == [
        Signature("f(a: int, b🐟)", "doc_x:\n  <b> of `&lt;`", ("a: int", "b🐟"), active_parameter=1, active=True),
        Signature("f()"),
    ]


@pytest.mark.proves("C116")
def test_a_signature_may_name_its_own_parameter() -> None:
    one = {"label": "f(a, b)", "parameters": [{"label": "a"}, {"label": "b"}], "activeParameter": 1}
    assert signatures({"signatures": [one], "activeParameter": 0})[0].active_parameter == 1


@pytest.mark.parametrize("index", [None, 7, -1])
def test_a_parameter_that_is_not_there_is_none(index: int | None) -> None:
    answer = {"signatures": [{"label": "f(a)", "parameters": [{"label": "a"}]}], "activeParameter": index}
    assert signatures(answer)[0].active_parameter is None


@pytest.mark.proves("F40")
@pytest.mark.parametrize("label", [None, 3, [1], [3, 1], {}])
def test_a_parameter_without_a_readable_label_keeps_its_place(label: Json) -> None:
    answer = {"signatures": [{"label": "f(a)", "parameters": [{"label": label}, {"label": "a"}]}]}
    assert signatures(answer)[0].parameters == ("", "a")


@pytest.mark.proves("F40")
def test_bad_signatures_are_skipped_and_a_help_without_any_is_nothing() -> None:
    reading = read(Operation.SIGNATURE, {"signatures": [{"label": "f()"}, None]})
    assert (len(reading.found), reading.skipped) == (1, 1)
    assert read(Operation.SIGNATURE, {}) == Reading()


# --- Symbols ------------------------------------------------------------------------------------------------------


def symbols(operation: Operation, answer: Json, text: str | None = None) -> list[Symbol]:
    seen = view() if text is None else view(a=text)
    return [cast("Symbol", found.resolved(seen)) for found in read(operation, answer).found]


SOURCE = "# greet\nclass Greeter:\n    def greet(self): ...\n\n\nlater = 1\n"
TREE: list[Json] = [
    {"name": "later", "kind": 13, "range": wire_range(5, 0, 9), "selectionRange": wire_range(5, 0, 5)},
    {
        "name": "Greeter",
        "kind": 5,
        "range": wire_range(1, 0, 24, end_line=2),
        "selectionRange": wire_range(1, 6, 13),
        "children": [
            {
                "name": "greet",
                "kind": 6,
                "detail": "(self)",
                "tags": [1],
                "range": wire_range(2, 4, 24),
                "selectionRange": wire_range(2, 8, 13),
            }
        ],
    },
]


@pytest.mark.proves("C116", "OPS-7")
def test_a_tree_of_symbols_becomes_an_outline_in_the_order_of_the_file() -> None:
    outline = symbols(Operation.DOCUMENT_SYMBOL, TREE, SOURCE)
    assert [(one.name, one.kind, one.depth, one.container) for one in outline] == [
        ("Greeter", "class", 0, None),
        ("greet", "method", 1, "Greeter"),
        ("later", "variable", 0, None),
    ]
    assert outline[1] == Symbol(
        path="a.py",
        line=3,
        character=9,
        end_line=3,
        end_character=14,
        text="    def greet(self): ...",
        name="greet",
        kind="method",
        detail="(self)",
        container="Greeter",
        depth=1,
        first_line=3,
        last_line=3,
        deprecated=True,
    )


@pytest.mark.proves("C116")
@pytest.mark.parametrize("operation", SYMBOLS)
def test_a_flat_symbol_is_found_by_its_name_inside_its_declaration(operation: Operation) -> None:
    place = {"uri": uri("a.py"), "range": wire_range(2, 4, 24)}
    flat = [{"name": "greet", "kind": 6, "location": place, "containerName": "Greeter", "deprecated": True}]
    one = symbols(operation, flat, SOURCE)[0]
    assert (one.line, one.character, one.container, one.deprecated) == (3, 9, "Greeter", True)
    assert (one.first_line, one.last_line) == (3, 3)


@pytest.mark.proves("C116")
@pytest.mark.parametrize("operation", SYMBOLS)
def test_without_the_text_a_flat_symbol_is_where_its_declaration_starts(operation: Operation) -> None:
    place = {"uri": uri("a.py"), "range": wire_range(2, 4, 24)}
    one = symbols(operation, [{"name": "greet", "kind": 6, "location": place}])[0]
    assert (one.line, one.character, one.text) == (3, 5, None)


@pytest.mark.proves("C116")
def test_a_workspace_symbol_without_a_range_is_looked_for_in_its_file() -> None:
    answer = [{"name": "Greeter", "kind": 5, "location": {"uri": uri("a.py")}}]
    found = symbols(Operation.WORKSPACE_SYMBOL, answer, SOURCE)[0]
    assert (found.line, found.character, found.first_line) == (2, 7, None)
    unread = symbols(Operation.WORKSPACE_SYMBOL, answer)[0]
    assert (unread.path, unread.line, unread.character) == ("a.py", 1, 1)


@pytest.mark.proves("C116")
def test_a_symbol_without_a_selection_is_looked_for_in_its_range() -> None:
    answer = [{"name": "greet", "kind": 6, "range": wire_range(2, 4, 24)}]
    assert symbols(Operation.DOCUMENT_SYMBOL, answer, SOURCE)[0].character == 9


@pytest.mark.proves("F40")
def test_a_bad_child_costs_only_itself() -> None:
    children: Json = [None, *TREE[1]["children"], {"name": "no range"}]
    reading = read(Operation.DOCUMENT_SYMBOL, [{**TREE[1], "children": children}])
    assert ([found.name for found in reading.found], reading.skipped) == (["Greeter", "greet"], 2)
    reading = read(Operation.DOCUMENT_SYMBOL, [{**TREE[1], "children": "x"}])
    assert ([found.name for found in reading.found], reading.skipped) == (["Greeter"], 1)


@pytest.mark.proves("F40")
def test_symbols_nested_without_end_are_cut_off() -> None:
    nested: Json = []
    for _ in range(100):
        nested = [{"name": "x", "kind": 1, "range": HERE, "selectionRange": HERE, "children": nested}]
    reading = read(Operation.DOCUMENT_SYMBOL, nested)
    assert (len(reading.found), reading.skipped) == (65, 1)


@pytest.mark.parametrize(("kind", "word"), [(1, "file"), (26, "type-parameter"), (0, "symbol"), (99, "symbol")])
def test_a_kind_is_a_word_whatever_the_number(kind: int, word: str) -> None:
    answer = [{"name": "", "kind": kind, "location": LOCATION}]
    one = symbols(Operation.WORKSPACE_SYMBOL, answer)[0]
    assert (one.kind, one.name) == (word, "(anonymous)")


# --- Hierarchies --------------------------------------------------------------------------------------------------


@pytest.mark.proves("C116", "OPS-7")
@pytest.mark.parametrize("operation", ITEMS)
@pytest.mark.parametrize("answer", [[ITEM], ITEM], ids=["a list", "one"])
def test_items_keep_what_goes_back_to_the_server(operation: Operation, answer: Json) -> None:
    data: Json = {"id": [1, 2.5, None, "x"], "é": {}}
    full: Json = {**ITEM, "data": data, "tags": [1], "detail": "d"}
    item = cast("HierarchyItem", read(operation, [full]).found[0].resolved(view()))
    assert (item.data, item.tags, item.detail, item.kind, item.server) == (data, (1,), "d", 12, "fakels")
    assert (item.location.path, item.location.line, item.location.character) == ("a.py", 2, 5)
    assert read(operation, answer).found[0].name == "greet"


@pytest.mark.proves("C116", "OPS-7")
@pytest.mark.parametrize(
    ("operation", "call", "written_in"),
    [
        pytest.param(Operation.INCOMING_CALLS, "from", "b.py", id="incoming: in the caller"),
        pytest.param(Operation.OUTGOING_CALLS, "to", "a.py", id="outgoing: in the item asked about"),
    ],
)
def test_calls_lie_in_the_document_of_the_caller(operation: Operation, call: str, written_in: str) -> None:
    other = {**ITEM, "name": "main", "uri": uri("b.py")}
    reading = read(operation, [{call: other, "fromRanges": [HERE, wire_range(3, 0, 1), HERE]}])
    edge = cast("Edge", reading.found[0].resolved(view()))
    item = edge.caller or edge.callee
    assert item is not None
    assert (item.name, item.location.path) == ("main", "b.py")
    assert [(one.path, one.line) for one in edge.calls] == [(written_in, 2), (written_in, 4)]


@pytest.mark.proves("F40")
def test_bad_ranges_of_a_call_cost_only_themselves() -> None:
    reading = read(Operation.INCOMING_CALLS, [{"from": ITEM, "fromRanges": [HERE, None]}, {"from": ITEM}])
    assert ([len(found.spots) for found in reading.found], reading.skipped) == ([2, 1], 1)
    reading = read(Operation.INCOMING_CALLS, [{"from": ITEM, "fromRanges": "x"}, {"from": None}])
    assert (len(reading.found), reading.skipped) == (1, 2)


def test_outgoing_calls_of_an_item_that_the_caller_handed_back() -> None:
    reference = cast("HierarchyItem", read(Operation.PREPARE_CALLS, [ITEM]).found[0].resolved(view()))
    request = ROWS[Operation.OUTGOING_CALLS].request
    assert request is not None
    assert request.read is not None
    reading = request.read(raw([{"to": ITEM, "fromRanges": [HERE]}]), asked(Operation.OUTGOING_CALLS, item=reference))
    assert reading.found[0].spots[1].uri == uri("a.py")


# --- Edits and actions --------------------------------------------------------------------------------------------


@pytest.mark.proves("C116", "C103")
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(EDIT, id="changes"),
        pytest.param(
            {
                "documentChanges": [
                    {
                        "textDocument": {"uri": uri("a.py"), "version": None},
                        "edits": [{"range": HERE, "newText": "x"}],
                    }
                ],
                "changes": {},
            },
            id="document changes",
        ),
    ],
)
def test_every_shape_of_a_workspace_edit_is_one_plan(answer: Json) -> None:
    (change,) = plan_of(SESSION, raw(answer)).operations
    assert isinstance(change, TextChange)
    assert change.resource.path == path("a.py")


@pytest.mark.proves("C116")
@pytest.mark.parametrize("answer", [{}, {"changes": {}}, {"documentChanges": []}])
def test_an_edit_that_changes_nothing_is_an_empty_plan(answer: Json) -> None:
    assert plan_of(SESSION, raw(answer)).operations == ()


@pytest.mark.proves("F40")
def test_half_an_edit_is_malformed_as_a_whole() -> None:
    with pytest.raises(ServerFailed, match="s sent a malformed edit"):
        plan_of(SESSION, raw({"changes": {uri("a.py"): [{"range": HERE, "newText": "x"}, None]}}))


ACTIONS = [
    pytest.param({"title": "Fix", "command": "fix", "arguments": [1]}, "is_command", True, id="bare command"),
    pytest.param({"title": "Fix", "command": {"command": "fix"}}, "is_command", False, id="action with a command"),
    pytest.param({"title": "Fix", "command": {"command": "fix"}}, "command", WireCommand("fix"), id="its command"),
    pytest.param({"title": "Fix", "edit": {}}, "edit", Raw(b"{}"), id="action with an edit"),
    pytest.param({"title": "Fix", "edit": None}, "edit", None, id="null edit"),
    pytest.param({"title": "Fix", "command": None}, "command", None, id="null command"),
    pytest.param({"title": "Fix", "disabled": None}, "disabled", None, id="null disabled"),
    pytest.param({"title": "Fix", "disabled": {"reason": "no"}}, "disabled", "no", id="disabled"),
    pytest.param({"title": "Fix", "isPreferred": True}, "preferred", True, id="preferred"),
    pytest.param({"title": "Fix", "kind": "quickfix", "data": {}}, "kind", "quickfix", id="kind"),
]


@pytest.mark.proves("C116", "C109")
@pytest.mark.parametrize(("answer", "field", "value"), ACTIONS)
def test_every_shape_of_an_action_is_read(answer: Json, field: str, value: object) -> None:
    found = read(Operation.CODE_ACTIONS, [answer]).found[0]
    assert (found.name, getattr(found, field)) == ("Fix", value)


@pytest.mark.proves("F40")
@pytest.mark.parametrize("command", [{}, 3, {"command": 3}])
def test_an_action_whose_command_has_no_name_is_skipped(command: Json) -> None:
    assert read(Operation.CODE_ACTIONS, [{"title": "Fix", "command": command}]) == Reading(skipped=1)


def test_found_values_say_what_they_are_called() -> None:
    assert read(Operation.DOCUMENT_SYMBOL, TREE).found[0].name == "Greeter"
    assert read(Operation.DEFINITION, LOCATION).found[0].name == ""
