"""JSON with comments and trailing commas, and where it stops being that."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.config.jsonc import MAX_DEPTH, BadJson, LineColumn, parse
from pilotfish.protocol.wire import Json

pytestmark = pytest.mark.proves("CFG-1")

GOOD: dict[str, tuple[bytes, Json]] = {
    "plain": (b'{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
    "line comment": (b'{"a": 1 // one\n}', {"a": 1}),
    "block comment": (b'/* a */ {"a": /* b\n */ 1}', {"a": 1}),
    "comment marks inside strings": (b'{"a": "// no /* no */"}', {"a": "// no /* no */"}),
    "escaped quote before a comment mark": (b'{"a": "\\" // no"}', {"a": '" // no'}),
    "trailing commas": (b'{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
    "comment after a trailing comma": (b"[1, /* x */ // y\n]", [1]),
    "byte order mark": (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    "brackets inside strings": (b'["]", "{",]', ["]", "{"]),
}


@pytest.mark.parametrize(("text", "value"), GOOD.values(), ids=GOOD)
def test_reads_json_as_people_write_it(text: bytes, value: Json) -> None:
    assert parse(text).value == value


BAD: dict[str, tuple[bytes, str, LineColumn]] = {
    "empty": (b"", "Expecting value", LineColumn(1, 1)),
    "missing comma": (b'{"a": 1\n "b": 2}', "delimiter", LineColumn(2, 2)),
    "comma after nothing in a list": (b"[,]", "Expecting value", LineColumn(1, 2)),
    "comma after nothing in an object": (b"{,}", "property name", LineColumn(1, 2)),
    "two commas": (b"[1,,]", "Expecting value", LineColumn(1, 4)),
    "comma after a colon": (b'{"a":,}', "Expecting value", LineColumn(1, 6)),
    "open comment": (b'{"a": 1, /* x', "property name", LineColumn(1, 10)),
    "stray slash": (b"[/]", "Expecting value", LineColumn(1, 2)),
    "line break in a string": (b'["a\nb"]', "control character", LineColumn(1, 4)),
    "same key twice": (b'{"a": 1,\n  "a": 2}', 'the key "a" appears twice', LineColumn(2, 3)),
    "same key twice, escaped": (b'{"a": 1, "\\u0061": 2}', "appears twice", LineColumn(1, 10)),
    "NaN": (b"[NaN]", "NaN is not JSON", LineColumn(1, 2)),
    "infinite number": (b"[1e999]", "too large", LineColumn(1, 2)),
    "endless number": (b"[" + b"1" * 5000 + b"]", "too long", LineColumn(1, 2)),
    "lone surrogate": (b'["\\ud800"]', "lone surrogate", LineColumn(1, 3)),
    "not UTF-8": (b'{\n"\xff": 1}', "not UTF-8", LineColumn(2, 2)),
    "comment that hides a value": (b'{"a": // 1\n}', "Expecting value", LineColumn(2, 1)),
}


@pytest.mark.proves("CFG-8")
@pytest.mark.parametrize(("text", "message", "place"), BAD.values(), ids=BAD)
def test_says_where_it_stops_being_json(text: bytes, message: str, place: LineColumn) -> None:
    with pytest.raises(BadJson, match=message) as caught:
        parse(text)
    assert caught.value.place == place


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_refuses_deep_nesting_before_anything_recurses(opening: str) -> None:
    with pytest.raises(BadJson, match="nested deeper"):
        parse((opening * 100_000).encode())


def test_depth_up_to_the_limit_is_fine() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


PLACES: dict[str, tuple[tuple[str | int, ...], LineColumn]] = {
    "top": ((), LineColumn(2, 1)),
    "key": (("lsp",), LineColumn(3, 3)),
    "nested key": (("lsp", "a b", "command"), LineColumn(4, 13)),
    "item": (("lsp", "a b", "command", 1), LineColumn(4, 30)),
    "key after a comment": (("timing",), LineColumn(6, 3)),
    "something that is not there": (("timing", "nothing", 3), LineColumn(6, 3)),
}


@pytest.mark.proves("CFG-8")
@pytest.mark.parametrize(("path", "place"), PLACES.values(), ids=PLACES)
def test_knows_where_a_value_stands(path: tuple[str | int, ...], place: LineColumn) -> None:
    text = b"""
{
  "lsp": {
    "a b": {"command": ["x", "y"]}, // here
  },
  "timing": {} }
"""
    assert parse(text).place(path) == place


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(max_size=8).filter(lambda text: text.isprintable())
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab/*,"]}', max_size=4), inner, max_size=4),
    max_leaves=12,
)
noise = st.sampled_from(["", " ", "\n", '// x, "] }\n', "/* , ] */", "/**/", "/* // */\n"])


@given(values, st.data())
def test_comments_and_trailing_commas_change_nothing(value: Json, data: st.DataObject) -> None:
    text = _written(value, lambda: data.draw(noise), lambda: data.draw(st.booleans()))
    assert parse(text.encode()).value == value


def _written(value: Json, gap: Callable[[], str], trailing: Callable[[], bool]) -> str:
    """A second writer of JSON, with noise in every gap."""
    match value:
        case dict():
            members = [
                f"{gap()}{json.dumps(key)}{gap()}:{_written(item, gap, trailing)}" for key, item in value.items()
            ]
            opening, closing = "{", "}"
        case list():
            members = [_written(item, gap, trailing) for item in value]
            opening, closing = "[", "]"
        case _:
            return f"{gap()}{json.dumps(value)}{gap()}"
    comma = "," + gap() if members and trailing() else ""
    return f"{gap()}{opening}{','.join(members)}{gap()}{comma}{closing}{gap()}"
