"""Workspace edits: what a server wants changed, as a plan, and how text edits change a text.

`edit_plan` reads; it decides nothing about files. The plan keeps the server's order. Text edits of one document between
two file operations become one change, because all of them speak of the same text. `documentChanges` wins over
`changes`. Ranges stay in the server's units until `apply_edits` has the text in hand.

An edit that is wrong in any part is `Malformed` as a whole: half a rename is worse than none.
A URI that names no file has no path and stays as it came.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from pilotfish.model import AbsPath, Encoding, Uri
from pilotfish.protocol.codec import Malformed, decode, maybe_fields, member
from pilotfish.protocol.positions import Text, range_from_wire
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import (
    Raw,
    WireRange,
    WireResourceOperation,
    WireTextDocumentEdit,
    WireTextEdit,
    WireWorkspaceEdit,
)


class Annotation(Struct, frozen=True):
    """Why a change is made, and whether a person has to agree to it first."""

    label: str
    needs_confirmation: bool


class Resource(Struct, frozen=True):
    """What a change is about. `path` is None where the URI names no file."""

    uri: Uri
    path: AbsPath | None


class TextEdit(Struct, frozen=True):
    """Replace `range`, in the server's units, by `new_text`."""

    range: WireRange
    new_text: str
    annotation: Annotation | None = None


class TextChange(Struct, frozen=True):
    """Edits of one document, all against its text at `version`; None where the server does not say which."""

    resource: Resource
    version: int | None
    edits: tuple[TextEdit, ...]


class OnExisting(StrEnum):
    FAIL = "fail"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"


class Create(Struct, frozen=True):
    resource: Resource
    on_existing: OnExisting = OnExisting.FAIL
    annotation: Annotation | None = None


class Rename(Struct, frozen=True):
    source: Resource
    target: Resource
    on_existing: OnExisting = OnExisting.FAIL
    annotation: Annotation | None = None


class Delete(Struct, frozen=True):
    resource: Resource
    recursive: bool = False
    ignore_missing: bool = False
    annotation: Annotation | None = None


EditOperation = TextChange | Create | Rename | Delete


class EditPlan(Struct, frozen=True):
    operations: tuple[EditOperation, ...]


class Overlapping(Malformed):
    """Two edits of one document want the same piece of text."""


def edit_plan(data: bytes | Raw) -> EditPlan:
    """Read a `WorkspaceEdit`, or raise `Malformed`."""
    edit = decode(data, WireWorkspaceEdit)
    annotations = edit.change_annotations or {}
    if edit.document_changes:
        return EditPlan(_joined(_document_changes(edit.document_changes, annotations)))
    changes = edit.changes or {}
    return EditPlan(
        _joined(TextChange(_resource(uri), None, _text_edits(edits, annotations)) for uri, edits in changes.items())
    )


def apply_edits(text: Text, edits: Iterable[TextEdit], encoding: Encoding) -> str:
    """`text` after all edits, each of them against `text` itself; raises `Overlapping`.

    Inserts at one place appear in the order given, before what replaces the text that follows.
    Where all line endings of `text` are the same, those of the edits become the same too.
    """
    spans: list[tuple[int, int, str]] = []
    for edit in edits:
        place = range_from_wire(edit.range, text, encoding)
        # A lone carriage return stays: before a line feed of the text it is how a server asks for the other one.
        new_text = edit.new_text if text.eol is None else _LINE_FEED.sub(text.eol, edit.new_text)
        spans.append((text.offset(place.start), text.offset(place.end), new_text))
    pieces: list[str] = []
    done = 0
    for start, end, new_text in sorted(spans, key=lambda span: span[:2]):
        if start < done:
            raise Overlapping(f"two edits want the same text in line {text.position_at(start).line + 1}")
        pieces += (text.string[done:start], new_text)
        done = end
    return "".join([*pieces, text.string[done:]])


_LINE_FEED = re.compile(r"\r?\n")


# --- Reading --------------------------------------------------------------------------------------------------------

_Annotations = Mapping[str, object]


def _document_changes(items: Iterable[Raw], annotations: _Annotations) -> Iterator[EditOperation]:
    for number, item in enumerate(items):
        try:
            if "textDocument" in decode(item, dict[str, Raw]):
                change = decode(item, WireTextDocumentEdit)
                document, edits = change.text_document, _text_edits(change.edits, annotations)
                yield TextChange(_resource(document.uri), document.version, edits)
            else:
                yield _resource_operation(decode(item, WireResourceOperation), annotations)
        except Malformed as malformed:
            raise Malformed(f"documentChanges[{number}]: {malformed}") from None


def _resource_operation(wire: WireResourceOperation, annotations: _Annotations) -> EditOperation:
    options = wire.options or {}
    annotation = _annotation(wire.annotation_id, annotations)
    match wire.kind:
        case "create":
            return Create(_named(wire.uri, "uri"), _on_existing(options), annotation)
        case "rename":
            source, target = _named(wire.old_uri, "oldUri"), _named(wire.new_uri, "newUri")
            return Rename(source, target, _on_existing(options), annotation)
        case "delete":
            recursive, ignore_missing = options.get("recursive") is True, options.get("ignoreIfNotExists") is True
            return Delete(_named(wire.uri, "uri"), recursive, ignore_missing, annotation)
        case _:
            raise Malformed(f"there is no file operation {wire.kind!r}")


def _on_existing(options: Mapping[str, object]) -> OnExisting:
    """The specification lets `overwrite` win over `ignoreIfExists`."""
    if options.get("overwrite") is True:
        return OnExisting.OVERWRITE
    return OnExisting.IGNORE if options.get("ignoreIfExists") is True else OnExisting.FAIL


def _text_edits(wires: Iterable[WireTextEdit], annotations: _Annotations) -> tuple[TextEdit, ...]:
    return tuple(TextEdit(wire.range, _new_text(wire), _annotation(wire.annotation_id, annotations)) for wire in wires)


def _new_text(wire: WireTextEdit) -> str:
    if wire.new_text is not None:
        return wire.new_text
    value = member(wire.snippet, "value")
    if not isinstance(value, str):
        raise Malformed("a text edit has neither newText nor a snippet")
    return plain_text(value)


def _annotation(identifier: str | None, annotations: _Annotations) -> Annotation | None:
    if identifier is None:
        return None
    found = maybe_fields(annotations.get(identifier))
    if found is None:
        # The server forgot to say what it means. A person should look.
        return Annotation(identifier, needs_confirmation=True)
    label = found.get("label")
    return Annotation(label if isinstance(label, str) else identifier, found.get("needsConfirmation") is True)


def _named(uri: str | None, field: str) -> Resource:
    if uri is None:
        raise Malformed(f"a file operation has no {field}")
    return _resource(uri)


def _resource(uri: str) -> Resource:
    return Resource(Uri(uri), path_of(uri))


# --- One change per document ----------------------------------------------------------------------------------------


def _joined(operations: Iterable[EditOperation]) -> tuple[EditOperation, ...]:
    """The operations in order, with the text edits of one document joined where no file operation stands between."""
    joined: list[EditOperation | list[TextChange]] = []
    documents: dict[str, list[TextChange]] = {}
    for operation in operations:
        if not isinstance(operation, TextChange):
            documents.clear()
            joined.append(operation)
            continue
        document = operation.resource.path or operation.resource.uri
        if document not in documents:
            documents[document] = []
            joined.append(documents[document])
        documents[document].append(operation)
    return tuple(_one_change(item) if isinstance(item, list) else item for item in joined)


def _one_change(changes: Sequence[TextChange]) -> TextChange:
    resource = changes[0].resource
    versions = {change.version for change in changes if change.version is not None}
    if len(versions) > 1:
        raise Malformed(f"edits of {resource.uri} are for different versions")
    return TextChange(resource, max(versions, default=None), tuple(edit for change in changes for edit in change.edits))


# --- Snippets as plain text: what stands in the file when every default is accepted -----------------------------------

# Tab stops vanish, placeholders leave their default, choices their first option, a tab stop that is named again repeats
# the default it was given. We define no variables, so a variable leaves its default, or else its name.
# What has no plain form (a transformation, a placeholder without end) is `Malformed`: an edit that is refused harms
# nobody, half a snippet in a source file does.

MAX_LENGTH = 1 << 14
"""Characters. Snippets are written by people and stay far below; the bound keeps repeated defaults from multiplying
into more than some ten megabytes."""

_TOKEN = re.compile(
    r"""
      \\ (?P<escaped> [\\$}] )
    | \$ (?P<stop> \d+ )
    | \$\{ (?P<braced_stop> \d+ ) \}
    | \$\{ (?P<choice> \d+ ) \| (?P<first> (?: \\. | [^\\|,] )* ) (?: , (?: \\. | [^\\|] )* )? \|\}
    | \$\{ (?P<opened> \d+ | [A-Za-z_]\w* ) :
    | \$\{ (?: \d+ | [A-Za-z_]\w* ) (?P<transformed> / )
    | \$ (?P<variable> [A-Za-z_]\w* )
    | \$\{ (?P<braced_variable> [A-Za-z_]\w* ) \}
    | (?P<closed> \} )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPED_IN_CHOICE = re.compile(r"\\([\\$},|])")


def plain_text(snippet: str) -> str:
    """The text that `snippet` stands for, or `Malformed`."""
    if len(snippet) > MAX_LENGTH:
        raise Malformed(f"a snippet has more than {MAX_LENGTH} characters")
    pieces: list[tuple[str, str | None]] = []
    """Text, or the number of a tab stop that repeats its default."""
    begun: list[tuple[str, int]] = []
    defaults: dict[str, str] = {}
    end = 0
    for token in _TOKEN.finditer(snippet):
        pieces.append((snippet[end : token.start()], None))
        end = token.end()
        if stop := token["stop"] or token["braced_stop"]:
            pieces.append(("", stop))
        elif choice := token["choice"]:
            first = _ESCAPED_IN_CHOICE.sub(r"\1", token["first"])
            defaults.setdefault(choice, first)
            pieces.append((first, None))
        elif opened := token["opened"]:
            begun.append((opened, len(pieces)))
        elif token["transformed"]:
            raise Malformed("a snippet with a transformation has no plain text")
        elif token["closed"] and begun:
            number, start = begun.pop()
            # Repeats inside a default are left out of it: otherwise defaults of defaults would grow without bound.
            defaults.setdefault(number, "".join(text for text, _ in pieces[start:]))
        else:
            pieces.append((token["escaped"] or token["variable"] or token["braced_variable"] or token["closed"], None))
    if begun:
        raise Malformed("a placeholder of a snippet has no end")
    return "".join(text if stop is None else defaults.get(stop, "") for text, stop in pieces) + snippet[end:]
