"""JSON in and out: every input has a value or a `Malformed`, and every value has bytes."""

import json
import math
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from pilotfish.protocol.codec import CHECKED_AT_ONCE, MAX_REASON, Items, Malformed, decode, decode_items, encode
from pilotfish.protocol.wire import (
    InitializeResult,
    ServerInfo,
    TextDocumentItem,
    WireDiagnostic,
    WireLocation,
    WirePosition,
    WireRange,
)

T = TypeVar("T")

ANYWHERE = WireRange(WirePosition(0, 0), WirePosition(0, 1))

# --- Out ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C24", "C25")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": [1, None, True]}, b'{"a":[1,null,true]}', id="compact"),
        pytest.param("é😀\u2028/", '"é😀\u2028/"'.encode(), id="utf-8 and no needless escapes"),
        pytest.param([math.nan, math.inf, -math.inf], b"[null,null,null]", id="no NaN and no Infinity"),
        pytest.param(2**70, b"1180591620717411303424", id="large integer"),
        pytest.param({"a": Raw(b"[1, 2]")}, b'{"a":[1, 2]}', id="raw word for word"),
        pytest.param(WirePosition(0, 0), b'{"line":0,"character":0}', id="zero is not a default"),
        pytest.param(InitializeResult(), b"{}", id="defaults omitted"),
        pytest.param("a\ud800b", '"a\ufffdb"'.encode(), id="lone surrogate"),
        pytest.param("\ude00\ud83d", '"\ufffd\ufffd"'.encode(), id="surrogates in the wrong order"),
        pytest.param({"\udfff": ["\ud800"]}, '{"\ufffd":["\ufffd"]}'.encode(), id="lone surrogate in a key"),
        pytest.param(["\ud800", math.nan, {7: 1.5}], '["\ufffd",null,{"7":1.5}]'.encode(), id="both at once"),
        pytest.param(
            WireDiagnostic(ANYWHERE, "\ud800", data=Raw(b'{"k": 1}')),
            '{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},'
            '"message":"\ufffd","data":{"k": 1}}'.encode(),
            id="struct with a lone surrogate keeps its names, defaults and raw parts",
        ),
        pytest.param(
            TextDocumentItem("file:///a", "x", 1, "\udc80"),
            '{"uri":"file:///a","languageId":"x","version":1,"text":"\ufffd"}'.encode(),
            id="file text with an undecodable byte",
        ),
    ],
)
def test_a_value_is_encoded_to_these_bytes(value: object, expected: bytes) -> None:
    assert encode(value) == expected


TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def plain(value: Any) -> Any:
    """What JSON can carry of a value, said the slow way."""
    match value:
        case str():
            return "".join("\ufffd" if 0xD800 <= ord(character) <= 0xDFFF else character for character in value)
        case float() if not math.isfinite(value):
            return None
        case list():
            return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType] -- any JSON value
        case dict():
            return {plain(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] -- any JSON value
        case _:
            return value


@pytest.mark.proves("C24", "C25")
@given(VALUES)
def test_every_value_is_encoded_to_json_that_the_standard_library_reads_back(value: object) -> None:
    assert json.loads(encode(value).decode()) == plain(value)


# --- In: what is read ---------------------------------------------------------------------------------------------


@given(VALUES)
def test_what_the_standard_library_writes_is_read_to_the_same_value(value: object) -> None:
    for ascii_only in (True, False):
        text = json.dumps([plain(value)], ensure_ascii=ascii_only)
        assert decode(text.encode(), list) == json.loads(text)


@pytest.mark.proves("C22", "C24", "C25", "F32")
@pytest.mark.parametrize(
    ("data", "shape", "expected"),
    [
        pytest.param(b'{"line":1.0,"character":2e1}', WirePosition, WirePosition(1, 20), id="integral floats"),
        pytest.param(b'{"line":-0.0,"character":0}', WirePosition, WirePosition(0, 0), id="negative zero"),
        pytest.param(b'{"line":1,"character":2,"odd":[]}', WirePosition, WirePosition(1, 2), id="unknown field"),
        pytest.param(b'{"line":1,"line":2,"character":0}', WirePosition, WirePosition(2, 0), id="last duplicate wins"),
        pytest.param(
            b'{"line":1.0,"line":2.0,"character":0}', WirePosition, WirePosition(2, 0), id="last mended duplicate wins"
        ),
        pytest.param(rb'["a\ud800"]', list, ["a\ufffd"], id="lone high surrogate"),
        pytest.param(Raw(rb'["a\ud800"]'), list, ["a\ufffd"], id="lone surrogate, raw"),
        pytest.param(rb'["\udc00a"]', list, ["\ufffda"], id="lone low surrogate"),
        pytest.param(rb'["\ud83d\ude00"]', list, ["😀"], id="a pair is one character"),
        pytest.param(rb'["\ud800\ud83d\ude00"]', list, ["\ufffd😀"], id="half a pair before a pair"),
        pytest.param(rb'{"\ud800":1}', dict, {"\ufffd": 1}, id="lone surrogate in a key"),
        pytest.param(rb'["\\ud800"]', list, [r"\ud800"], id="an escaped backslash is no surrogate"),
        pytest.param(rb'["\\ud800\ud800"]', list, ["\\ud800\ufffd"], id="an escaped backslash beside a surrogate"),
        pytest.param(rb'["\\\ud800\n\"\uD83D\uDE00\uDBFF"]', list, ['\\\ufffd\n"😀\ufffd'], id="among other escapes"),
        pytest.param(rb'{"line":1.0,"character":0,"x":"\ud800"}', WirePosition, WirePosition(1, 0), id="both at once"),
        pytest.param(
            b'{"capabilities":{"a":1.5,"b":1e300},"serverInfo":{"version":"1","name":"\\ud800"}}',
            InitializeResult,
            InitializeResult({"a": 1.5, "b": 1e300}, ServerInfo("\ufffd", "1")),
            id="true floats stay floats",
        ),
        pytest.param(b" \r\n[1]\t", list, [1], id="white space around"),
        pytest.param(Raw(b"[1]"), list, [1], id="raw"),
        pytest.param(b"[" + b"9" * 4000 + b"]", list, [10**4000 - 1], id="4000 digits"),
        pytest.param('["é😀"]'.encode(), list, ["é😀"], id="utf-8"),
    ],
)
def test_these_bytes_are_read_to_this_value(data: bytes | Raw, shape: type, expected: object) -> None:
    assert decode(data, shape) == expected


@pytest.mark.proves("C25")
def test_a_raw_part_of_mended_bytes_is_mended_too() -> None:
    assert decode(rb'{"capabilities":{"x":["\ud800", 1.0]}}', dict[str, Raw]) == {
        "capabilities": Raw(rb'{"x":["\ufffd", 1.0]}')
    }
    place = rb'{"start":{"line":0,"character":0},"end":{"line":0,"character":1.0}}'
    body = rb'{"range":' + place + rb',"message":"","data":[1.0,"\ud800"]}'
    assert decode(body, WireDiagnostic) == WireDiagnostic(ANYWHERE, "", data=Raw('[1,"\ufffd"]'.encode()))


ESCAPES = st.sampled_from(
    [r"\ud83d", r"\uDE00", r"\ud800", r"\udfff", r"\u00e9", r"\\", r"\"", r"\n", "u", "d800", "é"]
)


@pytest.mark.proves("C25")
@given(st.lists(ESCAPES, max_size=10).map("".join))
def test_escapes_are_read_as_the_standard_library_reads_them_but_for_halves_of_pairs(text: str) -> None:
    data = f'["{text}"]'
    assert decode(data.encode(), list) == plain(json.loads(data))


@given(st.text(max_size=40), st.integers(-40, 40))
def test_text_is_checked_across_the_steps_of_the_check(text: str, shift: int) -> None:
    padding = "x" * (CHECKED_AT_ONCE - 2 + shift)
    assert decode(encode([padding, text]), list) == [padding, text]


# --- In: what is refused ------------------------------------------------------------------------------------------

DEEP = 100_000


@pytest.mark.proves("C24", "F31", "F32")
@pytest.mark.parametrize(
    ("data", "shape", "message"),
    [
        pytest.param(b"", list, "list: Input data was truncated", id="empty"),
        pytest.param(b"[1", list, "list: Input data was truncated", id="truncated"),
        pytest.param(b"[1] x", list, "list: JSON is malformed: trailing characters (byte 5)", id="trailing"),
        pytest.param(b"[01]", list, "invalid number (byte 2)", id="leading zero"),
        pytest.param(b'["\x01"]', list, "invalid character (byte 2)", id="control character"),
        pytest.param(b"[NaN]", list, "invalid character (byte 1)", id="NaN"),
        pytest.param(b"[-Infinity]", list, "invalid character (byte 2)", id="Infinity"),
        pytest.param(
            b'{"line":1.0,"character":0,"x":NaN}',
            WirePosition,
            "WirePosition: NaN is not JSON",
            id="NaN, while mending",
        ),
        pytest.param(
            b'{"line":1.0,"character":0,"x":-Infinity}',
            WirePosition,
            "-Infinity is not JSON",
            id="Infinity, while mending",
        ),
        pytest.param(
            b'{"line":1.0,"character":0,"x":1e400}', WirePosition, "a number is too large", id="1e400, while mending"
        ),
        pytest.param(b"[1e400]", list, "list: a number is too large", id="1e400"),
        pytest.param(b"[-1e400]", list, "list: a number is too large", id="-1e400"),
        pytest.param(b"[" + b"9" * 5000 + b"]", list, "list: Exceeds the limit", id="5000 digits"),
        pytest.param(b"[" * DEEP, list, "list: nested too deeply", id="100k opening brackets"),
        pytest.param(b"[" * DEEP + b"]" * DEEP, list, "list: nested too deeply", id="100k nested lists"),
        pytest.param(b'{"a":' * DEEP + b"1" + b"}" * DEEP, dict, "dict: nested too deeply", id="100k nested objects"),
        pytest.param(rb'["\ud800",' + b"[" * DEEP, list, "list: nested too deeply", id="100k nested, then mended"),
        pytest.param(b'["\xff"]', list, "can't decode byte 0xff in position 2", id="not utf-8"),
        pytest.param(b'["\xc0\xaf"]', list, "can't decode byte 0xc0 in position 2", id="overlong"),
        pytest.param(b'["\xed\xa0\x80"]', list, "can't decode byte 0xed in position 2", id="surrogate in utf-8"),
        pytest.param(b'["\xe2\x82', list, "can't decode bytes in position 2-3", id="truncated character"),
        pytest.param(b'["' + b"x" * 99_998 + b'\xff"]', list, "in position 100000", id="not utf-8, far out"),
        pytest.param(b'{"capabilities":{},"\xff":1}', InitializeResult, "in position 20", id="in what is skipped"),
        pytest.param(Raw(b'["\xff"]'), list, "list: 'utf-8' codec can't decode", id="not utf-8, raw"),
        pytest.param(b"\xef\xbb\xbf[1]", list, "invalid character (byte 0)", id="byte-order mark"),
        pytest.param("[1]".encode("utf-16"), list, "in position 0", id="utf-16"),
        pytest.param("[1]".encode("utf-16-le"), list, "invalid character (byte 1)", id="utf-16 without a mark"),
        pytest.param(b'{"line":"1","character":0}', WirePosition, "Expected `int`, got `str` - at `$.line`", id="type"),
        pytest.param(
            b'{"line":1}', WirePosition, "WirePosition: Object missing required field `character`", id="missing"
        ),
        pytest.param(
            b'{"line":1.5,"character":0}', WirePosition, "got `float` - at `$.line`", id="fraction for integer"
        ),
        pytest.param(b'{"line":1e300,"character":0}', WirePosition, "got `float` - at `$.line`", id="vast for integer"),
        pytest.param(
            b'{"line":true,"character":0}', WirePosition, "got `bool` - at `$.line`", id="boolean for integer"
        ),
        pytest.param(b"null", WirePosition, "WirePosition: Expected `object`, got `null`", id="null"),
        pytest.param(b"[]", WirePosition, "WirePosition: Expected `object`, got `array`", id="list for object"),
    ],
)
def test_these_bytes_are_malformed_and_the_message_says_what_and_where(
    data: bytes | Raw, shape: type, message: str
) -> None:
    with pytest.raises(Malformed) as caught:
        decode(data, shape)
    assert message in str(caught.value)
    assert len(str(caught.value)) <= MAX_REASON + 100


@pytest.mark.proves("F31", "F32")
@settings(max_examples=300)
@given(st.binary(max_size=60) | st.lists(st.sampled_from(rb'{}[]",:\u0d8 1.e-NaItrue'), max_size=40).map(bytes))
def test_any_bytes_are_a_value_or_malformed(data: bytes) -> None:
    assert is_read(data) == is_an_object_of_finite_numbers(data)


def is_read(data: bytes) -> bool:
    try:
        decode(data, dict[str, Any])
    except Malformed:
        return False
    return True


def is_an_object_of_finite_numbers(data: bytes) -> bool:
    """The standard library's opinion; it alone accepts NaN and turns vast numbers into infinity."""
    try:
        value = json.loads(data.decode())
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return isinstance(value, dict)


# --- Lists --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("F40")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"null", Items(()), id="null is empty"),
        pytest.param(b"[]", Items(()), id="empty"),
        pytest.param(b'[{"line":1,"character":2}]', Items((WirePosition(1, 2),)), id="all good"),
        pytest.param(b'[null,{"line":1,"character":2}]', Items((WirePosition(1, 2),), 1), id="a null item"),
        pytest.param(b'[7,"x",[],{},{"line":1,"character":2}]', Items((WirePosition(1, 2),), 4), id="odd items"),
        pytest.param(b'[{"line":1.0,"character":2}]', Items((WirePosition(1, 2),)), id="a mended item"),
        pytest.param(b'[{"line":1.0,"character":2},0]', Items((WirePosition(1, 2),), 1), id="mended and odd"),
        pytest.param(rb'["\ud800",{"line":1,"character":2}]', Items((WirePosition(1, 2),), 1), id="surrogate and odd"),
        pytest.param(b"[null,null]", Items((), 2), id="none good"),
        pytest.param(Raw(b'[{"line":1,"character":2}]'), Items((WirePosition(1, 2),)), id="raw"),
    ],
)
def test_the_good_items_of_a_list_are_read_and_the_others_counted(
    data: bytes | Raw, expected: Items[WirePosition]
) -> None:
    assert decode_items(data, WirePosition) == expected


@pytest.mark.proves("F40")
@pytest.mark.parametrize("data", [b'"text"', b"{}", b"7", b"true", b"[1", b"", b'[{"line":1,"character":2}'])
def test_what_is_not_a_list_is_malformed_and_never_an_empty_one(data: bytes) -> None:
    with pytest.raises(Malformed, match="list: "):
        decode_items(data, WirePosition)


GOOD = st.builds(WirePosition, st.integers(0, 99), st.integers(0, 99))


@pytest.mark.proves("F40")
@given(st.lists(GOOD | VALUES.map(plain), max_size=8))
def test_a_list_keeps_its_good_items_in_order(entries: list[object]) -> None:
    good = [entry for entry in entries if isinstance(entry, WirePosition)]
    read = decode_items(encode(entries), WirePosition)
    # No random value is a position: it would need both names.
    assert read == Items(tuple(good), len(entries) - len(good))


def test_a_nested_mistake_costs_its_item_only() -> None:
    good = WireLocation("file:///a", ANYWHERE)
    bad = b'{"uri":"file:///b","range":{"start":{"line":0,"character":0},"end":null}}'
    assert decode_items(b"[" + encode(good) + b"," + bad + b"]", WireLocation) == Items((good,), 1)


def test_an_absent_field_has_its_default() -> None:
    assert decode(b'{"serverInfo":{}}', InitializeResult) == InitializeResult({}, ServerInfo("", None))
