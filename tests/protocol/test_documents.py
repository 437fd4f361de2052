"""What is open where, and the exact notifications that say so."""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.errors import Bug
from pilotfish.model import AbsPath, Encoding
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.documents import (
    Documents,
    Notification,
    SyncKind,
    SyncOptions,
    changed_part,
    sync_options,
)
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import (
    ContentChange,
    DidChangeParams,
    DidOpenParams,
    DidSaveParams,
    DocumentParams,
    TextDocumentIdentifier,
    WireRange,
)
from support.oracles import naive_text

UTF8, UTF16, UTF32 = Encoding.UTF8, Encoding.UTF16, Encoding.UTF32
NONE, FULL, INCREMENTAL = SyncKind.NONE, SyncKind.FULL, SyncKind.INCREMENTAL
A, B, C = AbsPath("/w/a.py"), AbsPath("/w/[b].py"), AbsPath("/w/c.py")

TEXTS = st.text(alphabet="ab\r\né😀\u2028", max_size=12)


def documents(
    change: SyncKind = INCREMENTAL,
    *,
    open_close: bool = True,
    save: bool | None = None,
    encoding: Encoding = UTF16,
) -> Documents:
    return Documents(SyncOptions(open_close, change, save), encoding)


def on_the_wire(notifications: tuple[Notification, ...]) -> list[tuple[str, bytes]]:
    return [(notification.method, msgspec.json.encode(notification.params)) for notification in notifications]


@dataclass
class NaiveServer:
    """Believes what it is told, and fails on anything that a strict server would refuse."""

    encoding: Encoding
    texts: dict[str, str] = field(default_factory=dict[str, str])
    last_versions: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, notifications: tuple[Notification, ...]) -> None:
        for notification in notifications:
            match notification.params:
                case DidOpenParams(item):
                    assert item.uri not in self.texts, "opened twice"
                    self._rise(item.uri, item.version)
                    self.texts[item.uri] = item.text
                case DidChangeParams(document, changes):
                    assert document.version is not None
                    self._rise(document.uri, document.version)
                    for change in changes:
                        self.texts[document.uri] = self._changed(self.texts[document.uri], change)
                case DidSaveParams(document, text):
                    assert text is None or text == self.texts[document.uri]
                case DocumentParams(document):
                    del self.texts[document.uri]
                case _:
                    pytest.fail(f"unknown notification {notification.method}")

    def _rise(self, uri: str, version: int) -> None:
        assert version > self.last_versions.get(uri, 0), "version did not rise"
        self.last_versions[uri] = version

    def _changed(self, text: str, change: ContentChange) -> str:
        if change.range is None:
            return change.text
        start, end = (
            self._offset(text, place.line, place.character) for place in (change.range.start, change.range.end)
        )
        return text[:start] + change.text + text[end:]

    def _offset(self, text: str, line: int, character: int) -> int:
        place = naive_text.place_from_units(text, line, character, self.encoding)
        content = naive_text.lines(text)[line][0]
        assert naive_text.units(content[: place[1]], self.encoding) == character, "not the start of a character"
        return naive_text.offset(text, *place)


# --- Reading what the server wants ----------------------------------------------------------------------------------


@pytest.mark.proves("C36", "C69")
@pytest.mark.parametrize(
    ("value", "options"),
    [
        pytest.param(None, SyncOptions(), id="absent or null"),
        pytest.param(0, SyncOptions(), id="number 0"),
        pytest.param(1, SyncOptions(True, FULL, False), id="number 1"),
        pytest.param(2, SyncOptions(True, INCREMENTAL, False), id="number 2"),
        pytest.param(2.0, SyncOptions(True, INCREMENTAL, False), id="number written as a float"),
        pytest.param({}, SyncOptions(), id="empty object"),
        pytest.param({"openClose": True}, SyncOptions(True), id="open and close only"),
        pytest.param({"openClose": False, "change": 1}, SyncOptions(False, FULL), id="changes only"),
        pytest.param({"openClose": True, "change": 2}, SyncOptions(True, INCREMENTAL), id="object without save"),
        pytest.param({"openClose": None, "change": None, "save": None}, SyncOptions(), id="nulls"),
        pytest.param({"save": True}, SyncOptions(save=False), id="save: true"),
        pytest.param({"save": False}, SyncOptions(), id="save: false"),
        pytest.param({"save": {}}, SyncOptions(save=False), id="save: {} means yes"),
        pytest.param({"save": {"includeText": True}}, SyncOptions(save=True), id="save with text"),
        pytest.param({"save": {"includeText": False}}, SyncOptions(save=False), id="save without text"),
        pytest.param({"willSave": True, "future": 1}, SyncOptions(), id="unknown fields pass"),
    ],
)
def test_every_shape_of_text_document_sync_is_understood(value: object, options: SyncOptions) -> None:
    assert sync_options(value) == options


@pytest.mark.proves("C36")
@pytest.mark.parametrize(
    "value", [3, -1, 1.5, True, "2", [], {"change": 3}, {"change": True}, {"change": {}}, {"save": 1}], ids=repr
)
def test_a_text_document_sync_that_nobody_defined_is_refused(value: object) -> None:
    with pytest.raises(Malformed, match="textDocumentSync"):
        sync_options(value)


# --- The bytes ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C65", "C67", "DOC-1")
def test_the_bytes_of_opening_changing_saving_and_closing() -> None:
    opened = documents(save=True)
    assert on_the_wire(opened.open(B, "python", "x = '😀'\r\ny\r\n")) == [
        (
            "textDocument/didOpen",
            (
                b'{"textDocument":{"uri":"file:///w/%5Bb%5D.py","languageId":"python","version":1,'
                b'"text":"x = \'\xf0\x9f\x98\x80\'\\r\\ny\\r\\n"}}'
            ),
        )
    ]
    assert on_the_wire(opened.change(B, "x = '😀z'\r\ny\r\n")) == [
        (
            "textDocument/didChange",
            (
                b'{"textDocument":{"uri":"file:///w/%5Bb%5D.py","version":2},"contentChanges":[{"text":"z",'
                b'"range":{"start":{"line":0,"character":7},"end":{"line":0,"character":7}}}]}'
            ),
        )
    ]
    assert on_the_wire(opened.save(B)) == [
        (
            "textDocument/didSave",
            b'{"textDocument":{"uri":"file:///w/%5Bb%5D.py"},"text":"x = \'\xf0\x9f\x98\x80z\'\\r\\ny\\r\\n"}',
        )
    ]
    assert on_the_wire(opened.close(B)) == [
        ("textDocument/didClose", b'{"textDocument":{"uri":"file:///w/%5Bb%5D.py"}}')
    ]


@pytest.mark.proves("C67", "DOC-1")
def test_a_server_with_full_sync_gets_the_whole_text_without_a_range() -> None:
    opened = documents(FULL)
    opened.open(A, "python", "old")
    assert on_the_wire(opened.change(A, "")) == [
        (
            "textDocument/didChange",
            b'{"textDocument":{"uri":"file:///w/a.py","version":2},"contentChanges":[{"text":""}]}',
        )
    ]


@pytest.mark.proves("C67")
def test_a_server_without_sync_hears_of_no_change_and_keeps_its_version() -> None:
    opened = documents(NONE, save=True)
    opened.open(A, "python", "old")
    assert opened.change(A, "new") == ()
    assert opened.version(A) == 1
    assert opened.text(A).string == "new"
    assert on_the_wire(opened.save(A)) == [
        ("textDocument/didSave", b'{"textDocument":{"uri":"file:///w/a.py"},"text":"new"}')
    ]


@pytest.mark.proves("C69")
@pytest.mark.parametrize(
    ("save", "sent"),
    [
        pytest.param(None, [], id="not asked for"),
        pytest.param(False, [b'{"textDocument":{"uri":"file:///w/a.py"}}'], id="without text"),
        pytest.param(True, [b'{"textDocument":{"uri":"file:///w/a.py"},"text":""}'], id="with text"),
    ],
)
def test_saving_is_told_as_the_server_asked(save: bool | None, sent: list[bytes]) -> None:
    opened = documents(save=save)
    opened.open(A, "python", "")
    assert on_the_wire(opened.save(A)) == [("textDocument/didSave", params) for params in sent]


# --- Sync -----------------------------------------------------------------------------------------------------------


def methods(notifications: tuple[Notification, ...]) -> list[str]:
    return [notification.method.removeprefix("textDocument/") for notification in notifications]


@pytest.mark.proves("C65", "DOC-1")
def test_sync_opens_once_changes_after_and_says_nothing_about_the_same_text() -> None:
    opened = documents()
    assert methods(opened.sync(A, "python", "1")) == ["didOpen"]
    assert opened.sync(A, "python", "1") == ()
    assert methods(opened.sync(A, "python", "2")) == ["didChange"]
    assert opened.version(A) == 2
    assert opened.is_open(A)
    assert not opened.is_open(B)


@pytest.mark.proves("C71")
def test_another_language_id_closes_and_opens_again() -> None:
    opened = documents()
    opened.sync(A, "javascript", "x")
    notifications = opened.sync(A, "typescriptreact", "x")
    assert methods(notifications) == ["didClose", "didOpen"]
    assert opened.language_id(A) == "typescriptreact"
    assert opened.version(A) == 2


@pytest.mark.proves("C66")
def test_a_version_is_never_used_again_not_even_after_closing() -> None:
    opened = documents()
    opened.open(A, "python", "1")
    opened.change(A, "2")
    opened.close(A)
    opened.open(A, "python", "1")
    assert opened.version(A) == 3


@pytest.mark.proves("C65")
def test_closing_what_is_not_open_says_nothing() -> None:
    assert documents().close(A) == ()


@pytest.mark.parametrize("method", ["change", "version", "text", "save"])
def test_using_a_document_that_is_not_open_is_our_bug(method: str) -> None:
    opened = documents()
    arguments = (A, "x") if method == "change" else (A,)
    with pytest.raises(Bug, match="not open"):
        getattr(opened, method)(*arguments)
    assert opened.language_id(A) is None


@pytest.mark.proves("C65")
def test_opening_twice_is_our_bug() -> None:
    opened = documents()
    opened.open(A, "python", "")
    with pytest.raises(Bug, match="twice"):
        opened.open(A, "python", "")


# --- Servers that want other things later ---------------------------------------------------------------------------


@pytest.mark.proves("C36", "C65")
def test_a_server_that_registers_late_is_told_then_what_it_has_missed() -> None:
    opened = documents(NONE, open_close=False)
    assert opened.open(A, "dart", "1") == ()
    assert opened.change(A, "2") == ()
    assert opened.open(B, "dart", "b") == ()
    assert opened.close(B) == ()
    wanted = SyncOptions(True, INCREMENTAL)
    server = NaiveServer(UTF16)
    server.take(opened.configure(wanted))
    assert server.texts == {uri_of(A): "2"}
    assert opened.configure(wanted) == ()


@pytest.mark.proves("C65")
@pytest.mark.parametrize("kind", SyncKind)
def test_a_document_that_was_not_announced_is_neither_changed_nor_closed(kind: SyncKind) -> None:
    opened = documents(kind, open_close=False)
    assert opened.open(A, "python", "1") == ()
    assert opened.change(A, "2") == ()
    assert opened.close(A) == ()


@pytest.mark.proves("C65")
def test_what_was_announced_is_closed_even_when_the_server_lost_interest() -> None:
    opened = documents()
    opened.open(A, "python", "")
    assert opened.configure(SyncOptions()) == ()
    assert methods(opened.close(A)) == ["didClose"]


# --- Use ------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DOC-5")
def test_the_least_recently_used_documents_are_those_beyond_the_limit() -> None:
    opened = documents(save=False)
    for path in (A, B, C):
        opened.open(path, "python", "")
    opened.sync(A, "python", "")
    opened.save(B)
    assert opened.paths == (C, A, B)
    assert opened.least_recently_used(1) == (C, A)
    assert opened.least_recently_used(3) == ()
    assert opened.least_recently_used(9) == ()


# --- The changed part -----------------------------------------------------------------------------------------------


@pytest.mark.proves("C67", "C78", "C82", "DOC-1")
@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize(
    ("old", "new", "text", "places"),
    [
        pytest.param("", "a", "a", ((0, 0), (0, 0)), id="first text"),
        pytest.param("a", "", "", ((0, 0), (0, 1)), id="all gone"),
        pytest.param("a\nb\nc", "a\nX\nc", "X", ((1, 0), (1, 1)), id="one character"),
        pytest.param("aa", "aaa", "a", ((0, 2), (0, 2)), id="insertion in a run"),
        pytest.param("aaa", "aa", "", ((0, 2), (0, 3)), id="removal from a run"),
        pytest.param("x", "x\n", "\n", ((0, 1), (0, 1)), id="line ending added at the end"),
        pytest.param("x\n", "x", "", ((0, 1), (1, 0)), id="line ending lost at the end"),
        pytest.param("a\nb", "a\r\nb", "\r\n", ((0, 1), (1, 0)), id="line feed gets a carriage return"),
        pytest.param("a\r\nb", "a\nb", "\n", ((0, 1), (1, 0)), id="line feed loses its carriage return"),
        pytest.param("a\rb", "a\r\nb", "\r\n", ((0, 1), (1, 0)), id="carriage return gets a line feed"),
        pytest.param("a\r\nb", "a\rb", "\r", ((0, 1), (1, 0)), id="carriage return loses its line feed"),
        pytest.param("\r\n", "\r\n\r\n", "\r\n", ((1, 0), (1, 0)), id="a line more"),
        pytest.param("a\u2028b\x0cc", "a\u2028b\x0cd", "d", ((0, 4), (0, 5)), id="what splitlines would cut"),
    ],
)
def test_the_changed_part_is_minimal_and_never_cuts_a_line_ending(
    old: str, new: str, text: str, places: tuple[tuple[int, int], tuple[int, int]], encoding: Encoding
) -> None:
    change = changed_part(Text(old), new, encoding)
    assert isinstance(change.range, WireRange)
    contents = [content for content, _ in naive_text.lines(old)]
    expected = [(line, naive_text.units(contents[line][:character], encoding)) for line, character in places]
    assert [(place.line, place.character) for place in (change.range.start, change.range.end)] == expected
    assert change.text == text


@pytest.mark.proves("C67", "F51", "RPC-5")
@pytest.mark.parametrize(("encoding", "columns"), [(UTF8, (7, 11)), (UTF16, (4, 6)), (UTF32, (3, 4))], ids=str)
def test_the_changed_part_counts_in_the_encoding_of_the_server_and_in_the_old_text(
    encoding: Encoding, columns: tuple[int, int]
) -> None:
    change = changed_part(Text("é😀a😀\r\nb"), "é😀a\r\nb", encoding)
    assert change.range is not None
    assert (change.range.start.character, change.range.end.character) == columns
    assert change.text == ""


@pytest.mark.proves("C67", "C82")
@given(TEXTS, TEXTS, TEXTS, TEXTS, st.sampled_from(Encoding))
@example("a\r", "", "\n", "\nb", UTF16)
def test_the_changed_part_makes_the_new_text_of_the_old(
    head: str, before: str, after: str, tail: str, encoding: Encoding
) -> None:
    old, new = head + before + tail, head + after + tail
    change = changed_part(Text(old), new, encoding)
    server = NaiveServer(encoding, {"x": old})
    identifier = TextDocumentIdentifier("x", 1)
    server.take((Notification("textDocument/didChange", DidChangeParams(identifier, [change])),))
    assert server.texts["x"] == new
    assert change.range is not None
    assert len(change.text) <= len(after) + 2, "more than what changed, and the other halves of two line endings"


@dataclass(frozen=True)
class Act:
    """One thing that happens to a document."""

    name: str
    path: AbsPath
    text: str
    options: SyncOptions


OPTIONS = st.builds(SyncOptions, st.just(True), st.sampled_from([FULL, INCREMENTAL]), st.none() | st.booleans())
ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from(["sync", "sync", "sync", "language", "save", "close", "configure", "evict"]),
        st.sampled_from([A, B, C]),
        TEXTS,
        OPTIONS,
    ),
    max_size=12,
)


@pytest.mark.proves("C65", "C66", "C67", "C69", "C71", "DOC-1", "DOC-5")
@given(ACTS, OPTIONS, st.sampled_from(Encoding))
def test_the_server_always_sees_what_we_hold(acts: list[Act], options: SyncOptions, encoding: Encoding) -> None:
    held = Documents(options, encoding)
    server = NaiveServer(encoding)
    for act in acts:
        match act.name:
            case "sync":
                server.take(held.sync(act.path, held.language_id(act.path) or "python", act.text))
            case "language":
                server.take(held.sync(act.path, f"language {len(act.text)}", act.text))
            case "save" if held.is_open(act.path):
                server.take(held.save(act.path))
            case "close":
                server.take(held.close(act.path))
            case "configure":
                server.take(held.configure(act.options))
            case "evict":
                for path in held.least_recently_used(1):
                    server.take(held.close(path))
            case _:
                pass
        assert server.texts == {uri_of(path): held.text(path).string for path in held.paths}
        assert all(server.last_versions[uri_of(path)] == held.version(path) for path in held.paths)
