"""What a server is asked, and what it found, before and after its places are counted in code points.

Reading an answer gives values in the server's units (`ServerResult`), each with the places that it names. Counting
these in code points needs the texts of their files, so answers are read in two steps: the caller reads the texts in
between, of no more files than will be shown, and of none outside the workspace.

A list of references makes hundreds of these values, so they are structs, which are made in a tenth of the time.
Nothing about a place can fail: without a text, lines are right (they are the same in all encodings) and characters are
the server's, which are the same for a line of ASCII.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from html import unescape
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from pilotfish.api.answers import Extent, Hover, Item, ItemReference, Location, Signature, counted_from_one
from pilotfish.api.questions import Question
from pilotfish.errors import Bug
from pilotfish.model import AbsPath, Encoding, Position, Range
from pilotfish.paths import is_inside, shown_path
from pilotfish.protocol.codec import Items, decode, decode_items, items, member
from pilotfish.protocol.notebooks import cell_at, is_notebook
from pilotfish.protocol.positions import Text, range_from_wire
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import (
    UNSET,
    Raw,
    WireDiagnostic,
    WireHover,
    WireParameter,
    WirePlace,
    WirePosition,
    WireRange,
    WireSignature,
    WireSignatureHelp,
)

T = TypeVar("T")

MAX_EXCERPT = 200
"""Code points of a source line in an answer: long enough for any line that a person wrote."""

_START = WirePosition(0, 0)
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
"""Code in Markdown: a block or a span."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
NOWHERE = WireRange(_START, _START)
"""Stands for the range of a result that names a file and no place in it."""


class RequestContext(Struct, frozen=True):
    """A question, and what was found out so that it can be put to one server. Positions are in that server's units."""

    question: Question
    uri: str | None = None
    """The document, spelt as it was opened."""
    position: WirePosition | None = None
    range: WireRange | None = None
    """Where actions are wanted."""
    diagnostics: tuple[WireDiagnostic, ...] = ()
    """What the server itself said about that range, word for word: many fixes hang on it."""
    item: Raw | ItemReference | None = None
    """The item of a hierarchy, as the server gave it or as the caller handed it back."""

    @property
    def document(self) -> str:
        return self._known(self.uri, "a document")

    @property
    def place(self) -> WirePosition:
        return self._known(self.position, "a position")

    @property
    def extent(self) -> WireRange:
        return self._known(self.range, "a range")

    @property
    def hierarchy_item(self) -> Raw | ItemReference:
        return self._known(self.item, "an item")

    @property
    def new_name(self) -> str:
        return self._known(self.question.new_name, "a new name")

    @property
    def query(self) -> str:
        return self._known(self.question.query, "a query")

    def _known(self, value: T | None, what: str) -> T:
        if value is None:
            raise Bug(f"{self.question.operation} was asked without {what}")
        return value


class Spot(Struct, frozen=True):
    """A range in a document, in the server's units."""

    uri: str
    range: WireRange

    @property
    def path(self) -> AbsPath | None:
        """The file, if the URI names one."""
        return _path_of(self.uri)

    @property
    def order(self) -> tuple[str, int, int]:
        """By file, then place: the same order as after conversion."""
        return self.path or self.uri, self.range.start.line, self.range.start.character


class ServerResult(Struct, frozen=True, kw_only=True):
    """One result in a server's units."""

    name: str = ""
    """What it is called, where it has a name."""
    spots: tuple[Spot, ...] = ()
    """The places in it; by the first it is sorted and told apart from others."""

    def resolved(self, view: "View") -> Item:
        """The same as surfaces see it."""
        raise NotImplementedError


F_co = TypeVar("F_co", bound=ServerResult, covariant=True)


class Reading(Struct, Generic[F_co], frozen=True):
    """One server's answer, read: what was of the right shape, and how much was not."""

    found: tuple[F_co, ...] = ()
    skipped: int = 0
    """Items of the wrong shape: the answer is then partial."""


class ViewedFile(Struct, frozen=True):
    """A file in an answer: what all places in it have in common."""

    shown: str
    """Its path as surfaces see it."""
    is_external: bool
    text: Text | None
    is_notebook: bool


class View(Struct, frozen=True):
    """What one server's places are looked at with."""

    workspace: AbsPath
    server: str
    encoding: Encoding
    texts: Mapping[AbsPath, Text]
    outside: frozenset[AbsPath] = frozenset()
    """Files that look as if they were inside the workspace and are not, such as those behind a symbolic link."""
    _files: dict[str, ViewedFile] = field(default_factory=dict[str, ViewedFile])
    """By URI: a list of references names the same few files again and again."""

    def location(self, spot: Spot, place: Range | None = None) -> Location:
        """The place as surfaces see it: all of the spot, or the part of its file that was found."""
        file = self.file(spot)
        text = file.text
        place = place or self._place(spot.range, text)
        start = place.start
        cell = cell_at(text.string, start.line) if file.is_notebook and text is not None else None
        return Location(
            *counted_from_one(place),
            path=file.shown,
            external=file.is_external,
            text=None if text is None else excerpt(text.line(start.line), start.character),
            cell=None if cell is None else cell.number,
            cell_line=None if cell is None else start.line - cell.first_line + 1,
        )

    def extent(self, spot: Spot) -> Extent:
        return Extent(*counted_from_one(self.place(spot)))

    def place(self, spot: Spot) -> Range:
        """The range in code points, as far as the text is at hand."""
        return self._place(spot.range, self.text(spot))

    def lines(self, spot: Spot, wire: WireRange) -> tuple[int, int]:
        """The first and the last line of a range in the spot's file, which are the same in all units."""
        text = self.text(spot)
        first, last = max(0, wire.start.line), max(0, wire.end.line)
        if text is not None:
            end = text.line_count - 1
            first, last = min(first, end), min(last, end)
        return (first, last) if first <= last else (last, first)

    def _place(self, wire: WireRange, text: Text | None) -> Range:
        if text is not None:
            return range_from_wire(wire, text, self.encoding)
        start, end = wire.start, wire.end
        places = sorted(Position(max(0, one.line), max(0, one.character)) for one in (start, end))
        return Range(places[0], places[1])

    def text(self, spot: Spot) -> Text | None:
        return self.file(spot).text

    def path(self, spot: Spot) -> str:
        return self.file(spot).shown

    def file(self, spot: Spot) -> ViewedFile:
        known = self._files.get(spot.uri)
        if known is None:
            known = self._files[spot.uri] = self._looked_at(spot.uri)
        return known

    def _looked_at(self, uri: str) -> ViewedFile:
        path = _path_of(uri)
        if path is None:
            return ViewedFile(uri, is_external=True, text=None, is_notebook=False)
        is_external = path in self.outside or not is_inside(path, self.workspace)
        text = None if is_external else self.texts.get(path)
        return ViewedFile(shown_path(path, self.workspace), is_external, text, is_notebook(path))


def excerpt(line: str, character: int) -> str:
    """The line, or of a very long one the part around `character`."""
    line = line.rstrip()
    if len(line) <= MAX_EXCERPT:
        return line
    start = min(max(0, character - MAX_EXCERPT // 4), len(line) - MAX_EXCERPT)
    end = start + MAX_EXCERPT
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


_path_of = lru_cache(maxsize=4096)(path_of)
"""A list of references names the same few files again and again."""


# --- A place ---------------------------------------------------------------------------------------------------------


class FoundLocation(ServerResult, frozen=True):
    """A place that answers the question."""

    def resolved(self, view: View) -> Location:
        return view.location(self.spots[0])


def read_locations(raw: Raw, _asked: RequestContext) -> Reading[FoundLocation]:
    """Read `Location | Location[] | LocationLink[] | null`, also mixed; raises `Malformed` when it is none of these.

    Of a link, the place is that of the name, which is where a further question can be asked.
    """
    items = one_or_many(raw, WirePlace)
    spots = [spot for spot in map(_spot, items.items) if spot is not None]
    skipped = items.skipped + len(items.items) - len(spots)
    return Reading(tuple(FoundLocation(spots=(spot,)) for spot in spots), skipped)


def _spot(place: WirePlace) -> Spot | None:
    if place.target_uri is not None:
        name = place.target_selection_range or place.target_range
        return None if name is None else Spot(place.target_uri, name)
    if place.uri is None or place.range is None:
        return None
    return Spot(place.uri, place.range)


# --- Words about a place ---------------------------------------------------------------------------------------------


class FoundHover(ServerResult, frozen=True):
    """One server's words, which are its name; the spot is what they are about, if it says so."""

    contents: tuple[str, ...]

    def resolved(self, view: View) -> Hover:
        return Hover(self.contents, view.extent(self.spots[0]) if self.spots else None)


def read_hover(raw: Raw, asked: RequestContext) -> Reading[FoundHover]:
    """Read `Hover | null`. A hover without a word in it is none."""
    hover = one_or_none(raw, WireHover)
    contents = () if hover is None else tuple(map(unescaped, texts_of(hover.contents)))
    if hover is None or not contents:
        return Reading()
    spots = () if hover.range is None else (Spot(asked.document, hover.range),)
    return Reading((FoundHover(contents, name="\n".join(contents), spots=spots),))


def unescaped(markdown: str) -> str:
    """Text without the escapes of Markdown and HTML, which only a renderer needs; code stays as it is."""
    parts = _CODE.split(markdown)
    plain = (part if number % 2 else unescape(_ESCAPED.sub(r"\1", part)) for number, part in enumerate(parts))
    return "".join(plain).replace("\xa0", " ")


def joined(hovers: tuple[Hover, ...]) -> Hover | None:
    """All servers' words as one hover, what two of them say alike said once."""
    contents = tuple(dict.fromkeys(text for hover in hovers for text in hover.contents))
    extents = [hover.range for hover in hovers if hover.range is not None]
    return Hover(contents, extents[0] if extents else None) if contents else None


# --- Signatures of a call --------------------------------------------------------------------------------------------


class FoundSignature(ServerResult, frozen=True):
    """A signature; it has no place of its own."""

    signature: Signature

    def resolved(self, view: View) -> Signature:  # noqa: ARG002 -- part of `ServerResult`; there is no place to look at
        return self.signature


def read_signatures(raw: Raw, _asked: RequestContext) -> Reading[FoundSignature]:
    """Read `SignatureHelp | null`."""
    help_ = one_or_none(raw, WireSignatureHelp)
    if help_ is None or help_.signatures is UNSET:
        return Reading()
    items = decode_items(help_.signatures, WireSignature)
    active = help_.active_signature or 0
    found = [_read_signature(item, help_, active=number == active) for number, item in enumerate(items.items)]
    return Reading(tuple(FoundSignature(signature, name=signature.label) for signature in found), items.skipped)


def _read_signature(item: WireSignature, help_: WireSignatureHelp, *, active: bool) -> Signature:
    parameters = tuple(_parameter(parameter, item.label) for parameter in item.parameters or ())
    # Since 3.16 each signature may name its own parameter; before, one number was for the active signature.
    index = item.active_parameter if item.active_parameter is not None else help_.active_parameter
    return Signature(
        label=item.label,
        documentation=unescaped(text_of(item.documentation) or "") or None,
        parameters=parameters,
        active_parameter=index if active and index is not None and 0 <= index < len(parameters) else None,
        active=active,
    )


def _parameter(parameter: WireParameter, label: str) -> str:
    """The parameter's label, a string or a pair of UTF-16 offsets into the label of its signature."""
    match parameter.label:
        case str() as text:
            return text
        case [int() as start, int() as end] if 0 <= start <= end:
            return label.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "ignore")
        case _:
            return ""


# --- Shapes that many answers share: one or many, and text in its several historic forms ------------------------------


def is_null(raw: Raw) -> bool:
    return _start(raw) == b"null"


def is_string(raw: Raw) -> bool:
    return _start(raw).startswith(b'"')


def one_or_many(raw: Raw, shape: type[T]) -> Items[T]:
    """Read `shape | shape[] | null`, item by item; raises `Malformed` when it is none of these."""
    if _start(raw).startswith(b"{"):
        return Items((decode(raw, shape),))
    return decode_items(raw, shape)


def one_or_none(raw: Raw, shape: type[T]) -> T | None:
    """Read `shape | null`."""
    return None if is_null(raw) else decode(raw, shape)


def texts_of(contents: Any) -> tuple[str, ...]:
    """Read `MarkupContent | MarkedString | MarkedString[]`: each piece as text, code in fences, blank ones left out."""
    pieces = items(contents) or (contents,)
    return tuple(text for text in map(_text, pieces) if text.strip())


def text_of(documentation: Any) -> str | None:
    """Read `string | MarkupContent`, absent or not."""
    return "\n\n".join(texts_of(documentation)) or None


def _start(raw: Raw) -> bytes:
    """Enough of a value to tell its kind; the rest may be megabytes."""
    return bytes(memoryview(raw)[:8]).strip()


def _text(piece: Any) -> str:
    if isinstance(piece, str):
        return piece.strip("\r\n")
    value, language = member(piece, "value"), member(piece, "language")
    if not isinstance(value, str):
        return ""
    value = value.strip("\r\n")
    return f"```{language}\n{value}\n```" if isinstance(language, str) and value.strip() else value
