"""Validation: strict, all at once, and helpful."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused
from pilotfish.operations.rows import FIELDS
from pilotfish.operations.tools import NAMED, OPERATIONS, OPTA, OperationTool
from pilotfish.operations.validate import ALSO, question, question_of, usage

ITEM = {
    "name": "greet",
    "uri": "file:///w/a.py",
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
    "selectionRange": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
    "data": {"id": [1, None]},
}
SAMPLES: dict[str, Any] = {"string": "x", "integer": 3, "boolean": True, "object": ITEM, "severity": "hint"}
EVERY_FORM = [
    pytest.param(tool, form.required, form.optional, id=f"{name}:{','.join(form.required)}")
    for tools in (NAMED, OPTA)
    for name, tool in tools.items()
    for form in tool.forms
]


def arguments(tool: OperationTool, names: tuple[str, ...]) -> dict[str, Any]:
    return {tool.dialect.name_of(name): SAMPLES.get(name, SAMPLES[FIELDS[name].type]) for name in names}


def refused(tool: OperationTool, given_: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        question(tool, given_)
    assert caught.value.code is Code.INVALID_INPUT
    return caught.value


@pytest.mark.proves("OPS-5", "OPS-1")
@pytest.mark.parametrize(("tool", "required", "optional"), EVERY_FORM)
def test_every_form_of_every_tool_is_a_question(
    tool: OperationTool, required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    assert question(tool, arguments(tool, required)).operation is tool.row.operation
    assert question(tool, arguments(tool, (*required, *optional))).operation is tool.row.operation


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize(
    "tool", [tool for tool in NAMED.values() if all(form.required for form in tool.forms)], ids=lambda tool: tool.name
)
def test_all_that_is_missing_is_named_at_once(tool: OperationTool) -> None:
    message = refused(tool, {}).message
    least = min(tool.forms, key=lambda form: len(form.required))
    assert message == "; ".join(f"{tool.dialect.name_of(name)} is missing" for name in least.required) + "."


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize("tool", NAMED.values(), ids=list(NAMED))
def test_what_does_not_belong_is_named(tool: OperationTool) -> None:
    given_ = {**arguments(tool, tool.forms[0].required), "colour": 1, "shape": 2}
    message = refused(tool, given_).message
    assert '"colour" is not a field here' in message
    assert '"shape" is not a field here' in message


DEFINITION = NAMED["lsp_goto_definition"]
AT = {"filePath": "a.py", "line": 1, "character": 1}
WRONG = [
    pytest.param({**AT, "line": 0}, "line must be a whole number from 1, not 0", id="zero"),
    pytest.param({**AT, "line": -1}, "line must be a whole number from 1, not -1", id="negative"),
    pytest.param({**AT, "line": 1.5}, "line must be a whole number from 1, not 1.5", id="fraction"),
    pytest.param({**AT, "line": float("inf")}, "line must be a whole number from 1, not null", id="infinite"),
    pytest.param({**AT, "line": "0"}, "line must be a whole number from 1, not 0", id="zero as a string"),
    pytest.param({**AT, "line": "1x"}, 'line must be a whole number from 1, not "1x"', id="string for number"),
    pytest.param({**AT, "character": True}, "character must be a whole number from 1, not true", id="boolean"),
    pytest.param({**AT, "filePath": 3}, "filePath must be a string, not 3", id="number for string"),
    pytest.param({**AT, "filePath": " "}, "filePath must not be empty", id="blank path"),
    pytest.param({**AT, "colum": 1}, '"colum" is not a field here (did you mean character?)', id="misspelt"),
    pytest.param({**AT, "file_path": "a"}, '"file_path" is not a field here (did you mean filePath?)', id="snake"),
    pytest.param({**AT, "path": "a"}, '"path" is not a field here (did you mean filePath?)', id="other word"),
    pytest.param({"filePath": "a.py", "character": 1}, "line is missing", id="half a position"),
    pytest.param({"symbol": "f", "line": 1}, "filePath is missing", id="line of which file"),
    pytest.param({"filePath": "a.py"}, "line is missing.", id="file alone"),
    pytest.param({}, "symbol is missing.", id="nothing"),
    pytest.param({**AT, "x" * 99: 1}, f'"{"x" * 59}… is not a field here', id="long name"),
]


@pytest.mark.proves("OPS-5", "OPS-2")
@pytest.mark.parametrize(("given_", "said"), WRONG)
def test_what_is_wrong_is_said_in_words(given_: dict[str, Any], said: str) -> None:
    refusal = refused(DEFINITION, given_)
    assert said in refusal.message
    assert refusal.hint == (
        "It takes filePath, line, character; or filePath, line; or filePath, symbol (optional: line, character); "
        "or symbol."
    )


@pytest.mark.proves("OPS-5")
def test_everything_wrong_is_said_in_one_message() -> None:
    message = refused(DEFINITION, {"line": 0, "character": "x", "colour": 1}).message
    assert message == (
        'filePath is missing; "colour" is not a field here; '
        'line must be a whole number from 1, not 0; character must be a whole number from 1, not "x".'
    )


def test_a_field_that_is_null_is_absent_and_a_whole_float_is_whole() -> None:
    asked = question(DEFINITION, {**AT, "line": 3.0, "symbol": None})
    assert (asked.line, asked.symbol) == (3, None)


def test_a_string_of_digits_is_a_number_and_a_spelling_is_no_other_field() -> None:
    assert question(DEFINITION, {"file_path": "a.py", "line": " 3", "character": "12"}) == Question(
        operation=Operation.DEFINITION, file_path="a.py", line=3, character=12
    )
    renamed = question(NAMED["lsp_rename"], {"FilePath": "a.py", "line": 1, "character": 1, "new_name": "b"})
    assert (renamed.file_path, renamed.new_name) == ("a.py", "b")


def test_a_field_goes_by_other_words_and_what_was_only_filled_in_is_left_out() -> None:
    asked = question(DEFINITION, {"relative_path": "a.py", "name": "Class.method", "line": 0, "character": 0})
    assert asked == Question(operation=Operation.DEFINITION, file_path="a.py", symbol="Class.method")
    assert question(DEFINITION, {"filePath": "", "symbol": "f", "line": None}).file_path is None
    everything = question(DEFINITION, {**AT, "symbol": "f"})
    assert (everything.line, everything.character, everything.symbol) == (1, 1, "f")
    assert question(NAMED["lsp_rename"], {"symbol": "f", "to": "g"}).new_name == "g"


def test_a_line_alone_is_a_place() -> None:
    assert question(DEFINITION, {"filePath": "a.py", "line": 3}).character is None


def test_an_empty_query_or_text_is_something_and_a_number_names_an_action() -> None:
    assert question(NAMED["lsp_workspace_symbols"], {"query": ""}).query == ""
    assert question(NAMED["lsp_diagnostics"], {"filePath": "a", "text": ""}).text == ""
    assert question(NAMED["lsp_code_actions"], {"filePath": "a", "line": 1, "action": 2}).action == "2"
    assert (
        "must be a string" in refused(NAMED["lsp_code_actions"], {"filePath": "a", "line": 1, "action": True}).message
    )


def test_a_flag_is_true_or_false_and_nothing_else() -> None:
    given_ = {**AT, "includeDeclaration": "yes"}
    assert 'must be true or false, not "yes"' in refused(NAMED["lsp_find_references"], given_).message


@pytest.mark.proves("OPS-1", "OPS-7")
def test_an_item_of_an_earlier_answer_is_taken_with_all_that_we_added_to_it() -> None:
    given_ = {"callHierarchyItem": {**ITEM, "kind": 12, "server": "fakels", "location": {"path": "a.py"}}}
    item = question(NAMED["lsp_incoming_calls"], given_).call_hierarchy_item
    assert item is not None
    assert (item.name, item.server, item.data) == ("greet", "fakels", {"id": [1, None]})


def test_an_item_that_is_none_is_refused() -> None:
    message = refused(NAMED["lsp_outgoing_calls"], {"callHierarchyItem": {"name": "f"}}).message
    assert "callHierarchyItem must be an item of an earlier answer" in message


@pytest.mark.proves("OPTA-1", "OPS-2")
def test_the_opta_tools_count_characters_from_zero_and_speak_snake_case() -> None:
    given_ = {"path": "a.ts", "line": 10, "character": 0, "include_declaration": False}
    asked = question(OPTA["lsp_references"], given_)
    assert (asked.file_path, asked.line, asked.character, asked.include_declaration) == ("a.ts", 10, 1, False)
    message = refused(OPTA["lsp_rename"], {"filePath": "a", "line": 1, "character": -1, "new_name": "b"}).message
    assert '"filePath" is not a field here (did you mean path?)' in message
    assert "character must be a whole number from 0, not -1" in message


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("gotoDefinition", 'There is no operation "gotoDefinition". Did you mean goToDefinition?'),
        ("zzz", 'There is no operation "zzz".'),
        (None, "operation is missing."),
        (3, "There is no operation 3."),
    ],
)
def test_the_one_tool_names_the_operations_it_has(operation: object, said: str) -> None:
    with pytest.raises(Refused) as caught:
        question_of({"operation": operation, **AT})
    assert caught.value.message == said
    assert caught.value.hint is not None
    assert all(name in caught.value.hint for name in OPERATIONS)


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize("operation", list(Operation))
def test_the_one_tool_takes_what_the_named_tool_takes(operation: Operation) -> None:
    tool = OPERATIONS[operation]
    given_ = arguments(tool, tool.forms[0].required)
    assert question_of({"operation": operation, **given_}) == question(NAMED[tool.row.tool], given_)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from([*FIELDS, "path", "operation", "zzz"]) | st.text(max_size=8)


@pytest.mark.proves("OPS-5")
@given(st.sampled_from(list(NAMED.values())), st.dictionaries(NAMES, JSON, max_size=6))
def test_whatever_a_model_sends_it_is_a_question_or_refused(tool: OperationTool, given_: dict[str, Any]) -> None:
    refusal = None
    try:
        asked = question(tool, given_)
    except Refused as refused_:
        refusal = refused_
    else:
        assert asked.line is None or asked.line >= 1
        assert asked.character is None or asked.character >= 1
        also = {plain(word) for name in tool.fields for word in ALSO.get(name, ())}
        given_names = {plain(name) for name, value in given_.items() if value is not None}
        assert given_names <= {*map(plain, tool.fields), *also}
    assert refusal is None or (refusal.message.encode() and refusal.hint == usage(tool))


def plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
