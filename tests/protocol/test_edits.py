"""Workspace edits as plans, and text edits against the naive implementation."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.model import AbsPath, Encoding, Position, Range, Uri
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import (
    Annotation,
    Create,
    Delete,
    EditOperation,
    EditPlan,
    OnExisting,
    Overlapping,
    Rename,
    Resource,
    TextChange,
    TextEdit,
    apply_edits,
    edit_plan,
)
from pilotfish.protocol.positions import Text, range_to_wire
from pilotfish.protocol.wire import WirePosition, WireRange
from support.oracles import naive_text
from support.oracles.naive_text import NaiveEdit

UTF16 = Encoding.UTF16
A = Resource(Uri("file:///w/a.py"), AbsPath("/w/a.py"))
B = Resource(Uri("file:///w/b.py"), AbsPath("/w/b.py"))
HERE = WireRange(WirePosition(1, 2), WirePosition(1, 5))
HERE_JSON = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}}


def plan(**members: object) -> EditPlan:
    return edit_plan(msgspec.json.encode(members))


def operations(*document_changes: object, **members: object) -> tuple[EditOperation, ...]:
    return plan(documentChanges=document_changes, **members).operations


def edit(new_text: str, **members: object) -> dict[str, object]:
    return {"range": HERE_JSON, "newText": new_text, **members}


def change(uri: str, *edits: object, version: object = None) -> dict[str, object]:
    return {"textDocument": {"uri": uri, "version": version}, "edits": edits}


def text_change(resource: Resource, *new_texts: str, version: int | None = None) -> TextChange:
    return TextChange(resource, version, tuple(TextEdit(HERE, new_text) for new_text in new_texts))


# --- Plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C103")
def test_document_changes_win_over_changes() -> None:
    both = plan(changes={B.uri: [edit("old")]}, documentChanges=[change(A.uri, edit("new"), version=3)])
    assert both == EditPlan((text_change(A, "new", version=3),))


@pytest.mark.proves("C103")
@pytest.mark.parametrize("document_changes", [None, []], ids=["null", "empty"])
def test_changes_count_where_there_are_no_document_changes(document_changes: object) -> None:
    edits = {A.uri: [edit("1"), edit("2")], B.uri: []}
    assert plan(changes=edits, documentChanges=document_changes).operations == (
        text_change(A, "1", "2"),
        text_change(B),
    )


@pytest.mark.parametrize("members", [{}, {"changes": None}, {"changes": {}}, {"documentChanges": []}], ids=repr)
def test_an_edit_may_be_empty(members: dict[str, object]) -> None:
    assert plan(**members) == EditPlan(())


@pytest.mark.proves("C104")
def test_operations_keep_their_order() -> None:
    found = operations(
        {"kind": "create", "uri": B.uri},
        change(B.uri, edit("text")),
        {"kind": "rename", "oldUri": B.uri, "newUri": A.uri},
        change(A.uri, edit("more")),
        {"kind": "delete", "uri": A.uri},
    )
    assert found == (Create(B), text_change(B, "text"), Rename(B, A), text_change(A, "more"), Delete(A))


@pytest.mark.proves("C104")
@pytest.mark.parametrize(
    ("options", "on_existing"),
    [
        pytest.param(None, OnExisting.FAIL, id="absent"),
        pytest.param({}, OnExisting.FAIL, id="empty"),
        pytest.param({"overwrite": False, "ignoreIfExists": False}, OnExisting.FAIL, id="neither"),
        pytest.param({"ignoreIfExists": True}, OnExisting.IGNORE, id="ignore"),
        pytest.param({"overwrite": True}, OnExisting.OVERWRITE, id="overwrite"),
        pytest.param({"overwrite": True, "ignoreIfExists": True}, OnExisting.OVERWRITE, id="overwrite beats ignore"),
        pytest.param({"overwrite": None, "ignoreIfExists": True}, OnExisting.IGNORE, id="null is no"),
    ],
)
def test_the_options_of_create_and_rename(options: object, on_existing: OnExisting) -> None:
    found = operations(
        {"kind": "create", "uri": A.uri, "options": options},
        {"kind": "rename", "oldUri": A.uri, "newUri": B.uri, "options": options},
    )
    assert found == (Create(A, on_existing), Rename(A, B, on_existing))


@pytest.mark.proves("C104")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(None, Delete(A), id="absent"),
        pytest.param({"recursive": True}, Delete(A, recursive=True), id="recursive"),
        pytest.param({"ignoreIfNotExists": True}, Delete(A, ignore_missing=True), id="ignore what is missing"),
        pytest.param({"recursive": True, "ignoreIfNotExists": True}, Delete(A, True, True), id="both"),
    ],
)
def test_the_options_of_delete(options: object, expected: Delete) -> None:
    assert operations({"kind": "delete", "uri": A.uri, "options": options}) == (expected,)


@pytest.mark.proves("C113", "F41")
def test_edits_of_one_document_are_joined_in_order_however_its_uri_is_spelled() -> None:
    found = operations(
        change("file:///w/%61.py", edit("1"), version=None),
        change(B.uri, edit("2")),
        change("file:///w/a.py", edit("3"), edit("4"), version=7),
    )
    assert found == (
        text_change(Resource(Uri("file:///w/%61.py"), A.path), "1", "3", "4", version=7),
        text_change(B, "2"),
    )


@pytest.mark.proves("C103", "F41")
def test_edits_under_two_spellings_in_changes_are_joined_too() -> None:
    found = plan(changes={A.uri: [edit("1")], "file://localhost/w/a.py": [edit("2")]}).operations
    assert found == (text_change(A, "1", "2"),)


@pytest.mark.proves("C104")
def test_edits_are_not_joined_across_a_file_operation() -> None:
    found = operations(change(A.uri, edit("1")), {"kind": "delete", "uri": B.uri}, change(A.uri, edit("2")))
    assert found == (text_change(A, "1"), Delete(B), text_change(A, "2"))


@pytest.mark.proves("C115")
def test_a_uri_that_names_no_file_stays_as_it_came() -> None:
    uri = "jdt://contents/rt.jar/java.lang/String.class?=p/%3Cjava"
    found = operations(change(uri, edit("x")), change("untitled:a", edit("y")))
    assert found == (text_change(Resource(Uri(uri), None), "x"), text_change(Resource(Uri("untitled:a"), None), "y"))


@pytest.mark.proves("C107")
@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param({"label": "why"}, Annotation("why", False), id="for information"),
        pytest.param({"label": "why", "needsConfirmation": False}, Annotation("why", False), id="no need"),
        pytest.param(
            {"label": "why", "needsConfirmation": True, "description": "more"},
            Annotation("why", True),
            id="to be confirmed",
        ),
        pytest.param({}, Annotation("id", False), id="without a label"),
        pytest.param(None, Annotation("id", True), id="announced and missing: a person should look"),
    ],
)
def test_annotations_come_with_the_operations(annotation: object, expected: Annotation) -> None:
    annotated = {"annotationId": "id"}
    found = plan(
        documentChanges=[
            change(A.uri, edit("x"), edit("y", **annotated)),
            {"kind": "create", "uri": A.uri, **annotated},
            {"kind": "rename", "oldUri": A.uri, "newUri": B.uri, **annotated},
            {"kind": "delete", "uri": B.uri, **annotated},
        ],
        changeAnnotations={"id": annotation},
    )
    assert found.operations == (
        TextChange(A, None, (TextEdit(HERE, "x"), TextEdit(HERE, "y", expected))),
        Create(A, annotation=expected),
        Rename(A, B, annotation=expected),
        Delete(B, annotation=expected),
    )


@pytest.mark.proves("C108")
def test_a_snippet_edit_becomes_a_plain_one() -> None:
    snippet = {"range": HERE_JSON, "snippet": {"kind": "snippet", "value": "f(${1:x})$0"}}
    assert operations(change(A.uri, snippet)) == (text_change(A, "f(x)"),)


@pytest.mark.proves("C22")
def test_unknown_members_pass() -> None:
    found = plan(documentChanges=[{**change(A.uri, edit("x", future=1)), "kind": None, "future": 2}], future=3)
    assert found.operations == (text_change(A, "x"),)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        pytest.param({"documentChanges": [{"kind": "copy", "uri": A.uri}]}, r"\[0\].*'copy'", id="unknown operation"),
        pytest.param({"documentChanges": [change(A.uri), 3]}, r"documentChanges\[1\]", id="not an object"),
        pytest.param({"documentChanges": [{"x": 1}]}, "kind", id="neither edit nor operation"),
        pytest.param({"documentChanges": [{"kind": "create"}]}, "no uri", id="create without uri"),
        pytest.param({"documentChanges": [{"kind": "delete"}]}, "no uri", id="delete without uri"),
        pytest.param({"documentChanges": [{"kind": "rename", "newUri": "x"}]}, "no oldUri", id="rename from nowhere"),
        pytest.param({"documentChanges": [{"kind": "rename", "oldUri": "x"}]}, "no newUri", id="rename to nowhere"),
        pytest.param({"documentChanges": [change(A.uri, {"range": HERE_JSON})]}, "newText", id="edit without text"),
        pytest.param(
            {"documentChanges": [change(A.uri, {"range": HERE_JSON, "snippet": {"value": 1}})]},
            "newText",
            id="no snippet",
        ),
        pytest.param({"documentChanges": [change(A.uri), {"kind": 1}]}, r"\[1\]", id="kind is a number"),
        pytest.param(
            {"changes": {A.uri: [{"range": HERE_JSON, "snippet": {"value": "${1/a/b/}"}}]}}, "plain", id="bad snippet"
        ),
        pytest.param({"documentChanges": [change(A.uri, {"newText": "x"})]}, "range", id="edit without range"),
        pytest.param({"changes": {A.uri: [{"newText": "x"}]}}, "range", id="change without range"),
        pytest.param({"changes": {A.uri: [None]}}, "null", id="null among the edits"),
        pytest.param({"changes": []}, "object", id="changes is a list"),
        pytest.param(
            {"documentChanges": [change(A.uri, version=1), change(A.uri, version=2)]}, "versions", id="two versions"
        ),
    ],
)
def test_a_malformed_edit_is_refused_as_a_whole_and_says_why(members: dict[str, object], complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        plan(**members)


# --- Applying -------------------------------------------------------------------------------------------------------

Place = tuple[int, int]


def at(start: Place, end: Place, new_text: str) -> TextEdit:
    return TextEdit(WireRange(WirePosition(*start), WirePosition(*end)), new_text)


@pytest.mark.proves("C79", "C80", "C81", "C82", "F49")
@pytest.mark.parametrize(
    ("text", "edits", "result"),
    [
        pytest.param("abc", [], "abc", id="none"),
        pytest.param("abc", [at((0, 2), (0, 3), "Z"), at((0, 0), (0, 1), "X")], "XbZ", id="unsorted"),
        pytest.param("ab", [at((0, 1), (0, 1), "1"), at((0, 1), (0, 1), "2")], "a12b", id="inserts keep their order"),
        pytest.param("abc", [at((0, 1), (0, 1), "+"), at((0, 1), (0, 2), "X")], "a+Xc", id="insert and replace"),
        pytest.param("abc", [at((0, 1), (0, 2), "X"), at((0, 1), (0, 1), "+")], "a+Xc", id="replace and insert"),
        pytest.param("abc", [at((0, 0), (0, 1), "X"), at((0, 1), (0, 2), "Y")], "XYc", id="touching"),
        pytest.param("abc", [at((0, 0), (0, 2), ""), at((0, 2), (0, 2), "Y")], "Yc", id="insert where a removal ends"),
        pytest.param("a\nb\n", [at((0, 0), (2, 0), "")], "", id="all removed"),
        pytest.param("", [at((0, 0), (0, 0), "x\r\n")], "x\r\n", id="empty text takes what comes"),
        pytest.param("x", [at((0, 0), (0, 1), "y")], "y", id="no line ending at the end stays none"),
        pytest.param("x\n", [at((0, 0), (0, 9), "y")], "y\n", id="line ending at the end stays"),
        pytest.param("a", [at((9, 0), (9, 9), "\nb")], "a\nb", id="beyond the text is its end"),
        pytest.param("a\r\nb\r\n", [at((0, 1), (0, 1), "\nc")], "a\r\nc\r\nb\r\n", id="CRLF text keeps CRLF"),
        pytest.param("a\nb", [at((0, 1), (0, 1), "\r\nc")], "a\nc\nb", id="LF text keeps LF"),
        pytest.param("a\rb", [at((0, 1), (0, 1), "\nc\r\nd")], "a\rc\rd\rb", id="CR text keeps CR"),
        pytest.param("a\r\nb\n", [at((1, 1), (1, 1), "\nc")], "a\r\nb\nc\n", id="mixed text takes what comes"),
        pytest.param("a\nb", [at((0, 1), (0, 1), "\r")], "a\r\nb", id="a lone carriage return stays"),
        pytest.param("a\r\nb", [at((0, 1), (1, 0), " ")], "a b", id="lines joined over CRLF"),
        pytest.param("x = 1\n", [at((0, 0), (0, 0), "y")], "yx = 1\n", id="first column, byte-order mark not counted"),
        pytest.param("😀b", [at((0, 2), (0, 3), "c")], "😀c", id="astral character before"),
        pytest.param("😀b", [at((0, 1), (0, 3), "c")], "c", id="from inside a surrogate pair"),
        pytest.param("abc", [at((0, 2), (0, 1), "X")], "aXc", id="reversed range"),
    ],
)
def test_edits_apply_to_the_original_text(text: str, edits: list[TextEdit], result: str) -> None:
    assert apply_edits(Text(text), edits, UTF16) == result


@pytest.mark.proves("C80")
@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([at((0, 0), (1, 1), "X"), at((1, 0), (1, 2), "Y")], id="by one character"),
        pytest.param([at((1, 0), (1, 2), "X"), at((1, 0), (1, 2), "X")], id="twice the same"),
        pytest.param([at((1, 0), (1, 1), "X"), at((1, 0), (1, 2), "Y")], id="same start"),
        pytest.param([at((1, 1), (1, 1), "X"), at((1, 0), (1, 2), "Y")], id="insert inside a replacement"),
    ],
)
def test_overlapping_edits_are_refused_as_a_whole(edits: list[TextEdit]) -> None:
    with pytest.raises(Overlapping, match="line 2"):
        apply_edits(Text("ab\ncd\n"), edits, UTF16)


TEXTS = st.text(alphabet="ab\r\né😀\u2028", max_size=16)


@st.composite
def edit_sets(draw: st.DrawFn) -> tuple[str, list[NaiveEdit]]:
    """A text and edits of it at places that the protocol can name: none between `\\r` and `\\n`."""
    text = draw(TEXTS)
    places = [offset for offset in range(len(text) + 1) if text[max(0, offset - 1) : offset + 1] != "\r\n"]
    spans = st.lists(st.sampled_from(places), min_size=2, max_size=2).map(sorted)
    edits = draw(st.lists(st.tuples(spans, st.text(alphabet="XY\r\n😀", max_size=3)), max_size=5))
    return text, [NaiveEdit(start, end, new_text) for (start, end), new_text in edits]


def on_the_wire(text: Text, edits: Sequence[NaiveEdit], encoding: Encoding) -> list[TextEdit]:
    ranges = [Range(text.position_at(edit.start), text.position_at(edit.end)) for edit in edits]
    return [
        TextEdit(range_to_wire(span, text, encoding), edit.new_text) for span, edit in zip(ranges, edits, strict=True)
    ]


@pytest.mark.proves("C79", "C80", "C82", "F49", "F51", "P12")
@given(edit_sets(), st.sampled_from(Encoding))
@example(("a\nb", [NaiveEdit(1, 1, "\r")]), UTF16)
@example(("ab", [NaiveEdit(0, 2, "X"), NaiveEdit(1, 1, "Y")]), UTF16)
def test_any_set_of_edits_gives_what_the_naive_implementation_gives(
    drawn: tuple[str, list[NaiveEdit]], encoding: Encoding
) -> None:
    original, edits = drawn
    text = Text(original)
    kept = [NaiveEdit(e.start, e.end, naive_text.with_line_endings_of(original, e.new_text)) for e in edits]
    expected = naive_text.apply(original, kept)
    wire_edits = on_the_wire(text, edits, encoding)
    if expected is None:
        with pytest.raises(Overlapping):
            apply_edits(text, wire_edits, encoding)
    else:
        assert apply_edits(text, wire_edits, encoding) == expected


@pytest.mark.proves("C82", "F49")
@given(TEXTS, TEXTS)
def test_an_edit_of_one_line_leaves_all_others_byte_for_byte(text: str, other: str) -> None:
    first = other.replace("\r", "").replace("\n", "")
    indexed = Text(f"{first}\r\n{text}")
    whole_line = Range(Position(0, 0), Position(0, len(first)))
    edited = apply_edits(indexed, [TextEdit(range_to_wire(whole_line, indexed, UTF16), "new")], UTF16)
    assert edited == f"new\r\n{text}"
