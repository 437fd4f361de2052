"""What a client says, what it has open, and our answers in the words of the language server protocol. Pure.

Ours count lines and code points from 1, the protocol counts from 0, and characters in UTF-16 units; so the text of each
file is at hand. A file outside the workspace is never read, and its characters are the server's own already.

Fields of a client's messages that we do not use are not read, and whatever may be absent has a default. Our answer to
`initialize` is the same to every client: texts are synchronised whole, because they are only compared with the disk.

The documents that a client has open are compared with the disk, from which all answers come. Coding agents write a file
and then report its text, so the two agree; a text editor reports text that nobody has saved, about which we know
nothing. One report that differs may be a file that is written at this moment; from the second one on the client is told
that this is not for editors.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Raw, Struct, to_builtins

from pilotfish.api.answers import (
    Changes,
    Diagnostic,
    Edge,
    Extent,
    HierarchyItem,
    Hover,
    ItemReference,
    Location,
    Symbol,
    severity_of,
)
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath, Encoding, Position, Range
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME
from pilotfish.operations.symbols import KINDS
from pilotfish.protocol.positions import Text, position_from_wire, position_to_wire, range_to_wire
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.protocol.wire import (
    ContentChange,
    DocumentParams,
    JsonObject,
    TextDocumentIdentifier,
    TextDocumentPositionParams,
    Wire,
    WireDiagnostic,
    WireHierarchyItem,
    WireLocation,
    WirePlace,
    WirePosition,
    WireRange,
    WireSymbol,
    WireTextEdit,
)
from pilotfish.sanitise import sanitised
from pilotfish.version import VERSION

DELETED = 3
"""`FileChangeType.Deleted`."""

WHOLE_TEXT = 1
"""`TextDocumentSyncKind.Full`."""

INITIALIZE_RESULT: JsonObject = {
    "capabilities": {
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": True, "change": WHOLE_TEXT, "save": {"includeText": False}},
        "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": True},
        "definitionProvider": True,
        "declarationProvider": True,
        "typeDefinitionProvider": True,
        "implementationProvider": True,
        "referencesProvider": True,
        "hoverProvider": True,
        "documentSymbolProvider": True,
        "workspaceSymbolProvider": True,
        "callHierarchyProvider": True,
        "renameProvider": {"prepareProvider": True},
    },
    "serverInfo": {"name": "pilotfish", "version": VERSION},
}


class InitializeParams(Wire, frozen=True):
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[TextDocumentIdentifier] | None = None
    """Of a folder we read what we read of a document: its address."""

    @property
    def root(self) -> AbsPath | None:
        """The first folder that the client names; None where it names none."""
        named = [self.root_uri, *(folder.uri for folder in self.workspace_folders or ())]
        found = next((path for uri in named if uri and (path := path_of(uri)) is not None), None)
        return found or (AbsPath(self.root_path) if self.root_path else None)


class ChangeParams(DocumentParams, frozen=True):
    content_changes: tuple[ContentChange, ...] = ()

    @property
    def whole_text(self) -> str | None:
        """The text of the document now; None from a client that sends parts of it, which we do not ask for."""
        last = self.content_changes[-1] if self.content_changes else None
        return None if last is None or last.range is not None else last.text


class ReferenceContext(Wire, frozen=True):
    include_declaration: bool = True


class QuestionParams(TextDocumentPositionParams, frozen=True):
    context: ReferenceContext = ReferenceContext()
    """Of `references`."""
    new_name: str = ""
    """Of `rename`."""


class QueryParams(Wire, frozen=True):
    query: str = ""


class GivenItem(Wire, frozen=True):
    """An item of a call hierarchy: what we need of it is what we put into `data`."""

    data: Raw = Raw(b"null")


class ItemParams(Wire, frozen=True):
    item: GivenItem


def document_path(uri: str) -> AbsPath:
    """The file of a document. Raises `Refused` for a document that is none."""
    path = path_of(uri)
    if path is None:
        raise Refused(Code.INVALID_INPUT, f"only files are served, and this is none: {uri}")
    return path


PATIENCE = 2
"""Reports in a row that may differ from the disk before the client is told."""

UNSAVED = (
    "{name} has text that is not on disk. `pilotfish lsp` serves coding agents: it answers from the files on disk and "
    "does not check unsaved text. Save the file, or use the language server itself in this editor."
)


class OpenDocument(Struct):
    text: str | None = None
    """As the client reported it last; None where it reported a part only."""
    differing: int = 0
    """How many reports in a row were not what is on disk."""


class OpenDocuments:
    def __init__(self) -> None:
        self._open: dict[AbsPath, OpenDocument] = {}

    def report(self, path: AbsPath, text: str | None) -> None:
        """The client says what a document holds."""
        self._open.setdefault(path, OpenDocument()).text = text

    def close(self, path: AbsPath) -> None:
        self._open.pop(path, None)

    def is_saved(self, path: AbsPath, on_disk: str | None) -> bool:
        """Whether the client's text is the one on disk, as far as it is known. None: there is no such file."""
        known = self._open.get(path)
        if known is None or known.text is None:
            return True
        # Byte-order marks and line endings are the editor's business.
        plain = [text and text.removeprefix("\ufeff").replace("\r\n", "\n") for text in (known.text, on_disk)]
        return plain[0] == plain[1]

    def compare(self, path: AbsPath, on_disk: str | None) -> bool:
        """After a report: whether it is saved. Counts those that are not."""
        saved = self.is_saved(path, on_disk)
        if path in self._open:
            self._open[path].differing = 0 if saved else self._open[path].differing + 1
        return saved

    def is_to_be_told(self, path: AbsPath) -> bool:
        """Whether the client is told now that its text is not served: once, until it is saved."""
        return path in self._open and self._open[path].differing == PATIENCE


VARIABLE = KINDS.index("variable")
"""The kind of a symbol whose own has no number."""

_WORD = re.compile(r"\w+")

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


class FilePlaces(Struct, frozen=True):
    """Where the files of an answer are, and what they hold."""

    root: AbsPath
    texts: Mapping[str, Text]
    """By path as in the answer; files that may not be read are not in it."""

    def uri(self, path: str) -> str:
        """Of a path as answers have it: relative, absolute, or the URI of something that is no file."""
        is_uri = "://" in path and not path.startswith("/") and path_of(path) is None
        return path if is_uri else uri_of(AbsPath(os.path.join(self.root, path)))

    def range(self, path: str, extent: Extent) -> WireRange:
        text = self.texts.get(path)
        start = Position(extent.line - 1, extent.character - 1)
        end = Position(extent.end_line - 1, extent.end_character - 1)
        if text is None:
            return _range(start.line, start.character, end.line, end.character)
        return range_to_wire(Range(start, end), text, Encoding.UTF16)


def paths_in(data: object) -> Iterator[str]:
    if isinstance(data, tuple | list):
        for each in data:  # pyright: ignore[reportUnknownVariableType] -- whatever it holds
            yield from paths_in(each)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(data, Location):
        yield data.path
    elif isinstance(data, HierarchyItem):
        yield data.location.path
    elif isinstance(data, Edge):
        yield from paths_in((*data.calls, *(end for end in (data.caller, data.callee) if end is not None)))


def position_in(text: Text, at: WirePosition) -> tuple[int, int]:
    """A client's position as line and character of a question."""
    place = position_from_wire(at, text, Encoding.UTF16)
    return place.line + 1, place.character + 1


def word_at(text: Text, at: WirePosition) -> JsonObject | None:
    """The range and the text of the name at a position; None where there is none."""
    place = position_from_wire(at, text, Encoding.UTF16)
    line = text.line(place.line)
    word = next((word for word in _WORD.finditer(line) if word.start() <= place.character <= word.end()), None)
    if word is None:
        return None
    extent = Range(Position(place.line, word.start()), Position(place.line, word.end()))
    return {"range": range_to_wire(extent, text, Encoding.UTF16), "placeholder": word[0]}


# --- Diagnostics ------------------------------------------------------------------------------------------------------


def diagnostics(path: str, found: Iterable[Diagnostic], places: FilePlaces) -> list[WireDiagnostic]:
    return [
        WireDiagnostic(
            places.range(path, one),
            sanitised(one.message, MAX_MESSAGE),
            severity_of(one.severity),
            None if one.code is None else sanitised(one.code, MAX_NAME),
            source=sanitised(one.source or one.server, MAX_NAME),
        )
        for one in found
    ]


# --- Answers ----------------------------------------------------------------------------------------------------------


def locations(found: Sequence[Location], places: FilePlaces) -> list[WireLocation]:
    return [WireLocation(places.uri(at.path), places.range(at.path, at)) for at in found]


def hover(found: Hover | None, _: FilePlaces) -> JsonObject | None:
    if found is None or not found.contents:
        return None
    return {"contents": {"kind": "markdown", "value": "\n\n---\n\n".join(found.contents)}}


def symbol_list(found: Sequence[Symbol], places: FilePlaces) -> list[WireSymbol]:
    return [
        WireSymbol(
            one.name,
            _kind(one.kind),
            location=WirePlace(places.uri(one.path), places.range(one.path, one)),
            container_name=one.container,
        )
        for one in found
    ]


def symbol_tree(found: Sequence[Symbol], places: FilePlaces) -> list[JsonObject]:
    """`DocumentSymbol[]`, of a list in which parents stand before their children."""
    roots = list[JsonObject]()
    around = list[tuple[int, JsonObject]]()
    for one in found:
        name = places.range(one.path, one)
        symbol: JsonObject = {
            "name": one.name,
            "kind": _kind(one.kind),
            "range": _around(name, one.first_line, one.last_line, places.texts.get(one.path)),
            "selectionRange": name,
            **({} if one.detail is None else {"detail": one.detail}),
            "children": [],
        }
        while around and around[-1][0] >= one.depth:
            around.pop()
        (around[-1][1]["children"] if around else roots).append(symbol)
        around.append((one.depth, symbol))
    return roots


def hierarchy_items(found: Sequence[HierarchyItem], places: FilePlaces) -> list[WireHierarchyItem]:
    return [_item(item, places) for item in found]


def calls(found: Sequence[Edge], places: FilePlaces) -> list[JsonObject]:
    """`CallHierarchyIncomingCall[]` or `CallHierarchyOutgoingCall[]`."""
    return [
        {
            **({} if edge.caller is None else {"from": _item(edge.caller, places)}),
            **({} if edge.callee is None else {"to": _item(edge.callee, places)}),
            "fromRanges": [places.range(at.path, at) for at in edge.calls],
        }
        for edge in found
    ]


def workspace_edit(changes: Changes, places: FilePlaces) -> JsonObject:
    """Whole lines are replaced, so no character is counted. Raises `Refused` for more than edits of files."""
    if changes.confirm or any(change.kind != "edit" for change in changes.files):
        raise Refused(Code.UNSUPPORTED, "this change does more than edit files: use `pilotfish rename`")
    return {"changes": {places.uri(one.path): _text_edits(one.diff or "") for one in changes.files}}


def _item(item: HierarchyItem, places: FilePlaces) -> WireHierarchyItem:
    name = places.range(item.location.path, item.location)
    text = places.texts.get(item.location.path)
    reference = {
        key: value for key, value in to_builtins(item).items() if key in ItemReference.__struct_encode_fields__
    }
    around = _around(name, item.range.start.line + 1, item.range.end.line + 1, text)
    kind = item.kind if 0 < item.kind < len(KINDS) else VARIABLE
    return WireHierarchyItem(item.name, item.uri, around, name, kind, item.detail, data=reference)


def _around(name: WireRange, first: int | None, last: int | None, text: Text | None) -> WireRange:
    """The whole lines of a declaration, whose name is in there."""
    first_line = min(name.start.line, name.start.line if first is None else first - 1)
    last_line = max(name.end.line, name.end.line if last is None else last - 1)
    if text is None or last_line >= text.line_count:
        return _range(first_line, 0, last_line + 1, 0)
    end = position_to_wire(Position(last_line, len(text.line(last_line))), text, Encoding.UTF16)
    return _range(first_line, 0, end.line, end.character)


def _text_edits(diff: str) -> list[WireTextEdit]:
    extents, texts, is_new = list[WireRange](), list[str](), False
    # Lines end at \n in a diff: the \r of a Windows line belongs to it.
    for line in diff.split("\n")[2:]:
        if hunk := _HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            start = first - 1 if count else first
            extents.append(_range(start, 0, start + count, 0))
            texts.append("")
        elif line.startswith("\\") and is_new:
            texts[-1] = texts[-1].removesuffix("\n")
        elif line.startswith(("+", " ")):
            texts[-1] += line[1:] + "\n"
        is_new = line.startswith(("+", " "))
    return [WireTextEdit(extent, text) for extent, text in zip(extents, texts, strict=True)]


def _kind(word: str) -> int:
    return (KINDS.index(word) if word in KINDS else 0) or VARIABLE


def _range(first: int, character: int, last: int, end: int) -> WireRange:
    return WireRange(WirePosition(first, character), WirePosition(last, end))
