"""JSON with comments, changed in single places: everything else stays, and the change can be taken back."""

import json
from collections import Counter
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.config.jsonc import TOKEN
from pilotfish.errors import Refused
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit, Member, append, drop, put, value_of
from pilotfish.protocol.wire import Json

pytestmark = pytest.mark.proves("HOOK-3")

OURS: Json = {"type": "command", "command": "/opt/python -I -S /opt/pilotfish/surfaces/hook.py claude-code"}
GROUP: Json = {"matcher": "Write", "hooks": [OURS]}
EDIT = JsonEdit(
    (
        Hooks(("hooks", "PostToolUse"), GROUP),
        Hooks(("hooks", "SessionStart"), {"hooks": [OURS]}),
        Member(("mcpServers", "pilotfish"), {"command": "/opt/python", "args": ["mcp"]}),
        Member(("hooks", "enabled"), value=True, shared=True),
    )
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("{}", '{\n  "a": 1\n}', id="empty"),
        pytest.param("{\n}\n", '{\n  "a": 1\n}\n', id="empty on two lines"),
        pytest.param('{"b": 2}', '{"b": 2, "a": 1}', id="one line"),
        pytest.param('{"b": 2,}', '{"b": 2, "a": 1,}', id="one line, trailing comma"),
        pytest.param('{\n    "b": 2\n}', '{\n    "b": 2,\n    "a": 1\n}', id="four spaces"),
        pytest.param('{\n\t"b": 2,\n}', '{\n\t"b": 2,\n\t"a": 1,\n}', id="tabs and a trailing comma"),
        pytest.param('{\r\n  "b": 2\r\n}\r\n', '{\r\n  "b": 2,\r\n  "a": 1\r\n}\r\n', id="CRLF"),
        pytest.param('{\n  "b": 2 // why\n}', '{\n  "b": 2, // why\n  "a": 1\n}', id="remark"),
        pytest.param('{\n  "b": 2 /* why */ // and\n}', '{\n  "b": 2, /* why */ // and\n  "a": 1\n}', id="two remarks"),
        pytest.param("{ // all mine\n}", '{\n  "a": 1 // all mine\n}', id="only a remark"),
        pytest.param('{"a": [1, 2], "b": 2}', '{"a": 1, "b": 2}', id="there already"),
    ],
)
def test_a_member_comes_last_and_looks_like_the_others(before: str, after: str) -> None:
    assert put(before, ["a"], 1) == after


def test_what_is_missing_on_the_way_is_made() -> None:
    assert value_of(put('{"b": 2}', ["a", "c"], 1)) == {"b": 2, "a": {"c": 1}}
    assert value_of(append('{"b": [2]}', ["b"], 1)) == {"b": [2, 1]}
    assert value_of(append("{}", ["a", "c"], 1)) == {"a": {"c": [1]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('{"a": 1}', "{}", id="alone"),
        pytest.param('{"a": 1, "b": 2}', '{ "b": 2}', id="first"),
        pytest.param('{"b": 2, "a": 1}', '{"b": 2}', id="last"),
        pytest.param('{"b": 2, "a": 1,}', '{"b": 2,}', id="last, trailing comma"),
        pytest.param('{\n  "b": 2, // why\n  "a": 1\n}', '{\n  "b": 2 // why\n}', id="after a remark"),
        pytest.param('{ // why\n  "a": 1, "b": 2\n}', '{ // why\n   "b": 2\n}', id="what follows is no remark"),
        pytest.param('{\n  "a": 1, // one\n  "b": 2\n}', '{ // one\n  "b": 2\n}', id="its own remark stays"),
    ],
)
def test_a_member_goes_with_its_comma(before: str, after: str) -> None:
    assert drop(before, ("a",)) == after


# --- Any file -------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["hooks", "PostToolUse", "SessionStart", "mcpServers", "other", "model", "enabled", 'é"\\', ""])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "// no", "/* no */", "{,}", "é\n"])
VALUES = cast(
    "st.SearchStrategy[Json]",
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=8,
    ),
)
GROUPS = st.lists(
    st.just(cast("Json", {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]})), max_size=2
)
SETTINGS = cast(
    "st.SearchStrategy[Json]",
    st.fixed_dictionaries(
        {},
        optional={
            "model": VALUES,
            "hooks": st.dictionaries(st.sampled_from(["PostToolUse", "Stop"]), GROUPS, max_size=2) | VALUES,
            "mcpServers": st.dictionaries(st.sampled_from(["mine", "yours"]), VALUES, max_size=2) | VALUES,
            "z": VALUES,
        },
    ),
)
"""Mostly what the settings of a host look like, and sometimes not at all."""

BLANKS = st.sampled_from(["", "", "", " ", "\n", "\n  ", "\t", " // word, {\n", "/* word */", "\n  // [\n  "])


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[Json]) -> str:
    """A JSON text in some hand: any white space, comments, trailing commas, line ends."""
    text = _written(draw, draw(values))
    text = draw(BLANKS) + text + draw(BLANKS)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def _written(draw: st.DrawFn, value: Json) -> str:
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}{draw(BLANKS)}:{draw(BLANKS)}{_written(draw, below)}" for key, below in value.items()
        ]
        return _enclosed(draw, "{", members, "}")
    if isinstance(value, list):
        return _enclosed(draw, "[", [_written(draw, below) for below in value], "]")
    return json.dumps(value)


def _enclosed(draw: st.DrawFn, start: str, parts: list[str], end: str) -> str:
    text = start
    for number, part in enumerate(parts):
        comma = "," if number < len(parts) - 1 or draw(st.booleans()) else ""
        text += f"{draw(BLANKS)}{part}{draw(BLANKS)}{comma}"
    return text + draw(BLANKS) + end


def comments(text: str) -> Counter[str]:
    return Counter(token.group().strip() for token in TOKEN.finditer(text) if token.lastgroup == "comment")


@settings(max_examples=80, deadline=None)
@given(texts(SETTINGS))
def test_our_part_comes_and_goes_and_nothing_else_changes(text: str) -> None:
    try:
        added = EDIT.added(text)
    except Refused:
        return
    value = value_of(text)
    # A comment inside of a value that ours replaces is the only thing that goes; the file's copy brings it back.
    replaced = '"enabled"' in text
    assert replaced or comments(added) == comments(text)
    now = cast("dict[str, dict[str, Json]]", value_of(added))
    assert cast("list[Json]", now["hooks"]["PostToolUse"])[-1] == GROUP
    assert now["mcpServers"]["pilotfish"] == {"command": "/opt/python", "args": ["mcp"]}
    removed = EDIT.removed(added, text)
    assert removed is not None
    assert value_of(removed) == value
    assert replaced or comments(removed) == comments(text)


@settings(max_examples=40, deadline=None)
@given(texts(SETTINGS))
def test_a_file_without_our_part_stays_as_it_is(text: str) -> None:
    assert EDIT.removed(text, None) == text


@settings(max_examples=40, deadline=None)
@given(texts(SETTINGS), VALUES)
def test_what_others_put_in_after_us_stays_when_we_go(text: str, theirs: Json) -> None:
    try:
        added = EDIT.added(text)
        changed = put(append(added, ["hooks", "PostToolUse"], {"hooks": [{"command": "theirs"}]}), ["later"], theirs)
    except (Refused, ValueError):
        return
    removed = EDIT.removed(changed, text)
    assert removed is not None
    expected = cast("dict[str, Json]", value_of(put(append(text, ["hooks", "PostToolUse"], 0), ["later"], theirs)))
    hooks = cast("dict[str, list[Json]]", expected["hooks"])
    hooks["PostToolUse"][-1] = {"hooks": [{"command": "theirs"}]}
    assert value_of(removed) == expected


def test_a_hook_that_others_put_into_our_group_stays() -> None:
    text = json.dumps({"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [{"command": "theirs"}, OURS]}]}})
    removed = EDIT.removed(text, None)
    assert removed is not None
    assert value_of(removed) == {"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [{"command": "theirs"}]}]}}


def test_a_hook_that_only_sounds_like_ours_stays() -> None:
    text = '{"hooks": {"PostToolUse": [{"hooks": [{"command": "python /src/pilotfish/tools/hook.py"}]}]}}'
    assert EDIT.removed(text, None) == text


def test_what_was_empty_before_is_empty_again() -> None:
    text = '{"hooks": {"PostToolUse": []}, "mcpServers": {}}'
    removed = EDIT.removed(EDIT.added(text), text)
    assert removed is not None
    assert value_of(removed) == value_of(text)


@pytest.mark.parametrize("text", ["{", "[1", '{"a": 1, "a": 2}', "nonsense", "\ufeff["])
def test_what_is_not_json_is_refused_with_what_to_do(text: str) -> None:
    for attempt in (lambda: EDIT.added(text), lambda: EDIT.removed(text, None)):
        with pytest.raises(Refused) as refused:
            attempt()
        assert "JSON" in refused.value.message
        assert refused.value.hint


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"mcpServers": "none"}', '{"hooks": {"PostToolUse": {}}}'])
def test_a_file_that_has_no_place_for_it_is_refused_with_what_to_add(text: str) -> None:
    with pytest.raises(Refused) as refused:
        EDIT.added(text)
    assert "pilotfish" in str(refused.value.hint)


def test_a_byte_order_mark_stays() -> None:
    added = EDIT.added('\ufeff{"a": 1}')
    assert added.startswith('\ufeff{"a": 1, ')
    assert EDIT.removed(added, '\ufeff{"a": 1}') == '\ufeff{"a": 1}'
