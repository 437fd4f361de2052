"""Which documents are open at one server, with their text and version.

`Documents` is the only writer of that. It does no I/O: each method returns the notifications that make the server see
the same, to be sent in order and before anything else about those documents.

Invariants:
- A document is announced (`didOpen`) at most once until it is closed, and closed only if it was announced.
- Versions come from one counter, so they strictly rise for every document, across closing, reopening and restarts, and
  nothing has to be remembered about closed ones.
- A change follows the server's sync kind to the letter: servers that ask for ranges keep a wrong document or exit when
  they get the full text, and the other way round.
"""

from enum import IntEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.errors import Bug
from pilotfish.model import AbsPath, Encoding, Range
from pilotfish.protocol.codec import Malformed, maybe_fields
from pilotfish.protocol.positions import Text, range_to_wire
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import (
    ContentChange,
    DidChangeParams,
    DidOpenParams,
    DidSaveParams,
    DocumentParams,
    TextDocumentIdentifier,
    TextDocumentItem,
    Wire,
)


class SyncKind(IntEnum):
    NONE = 0
    FULL = 1
    INCREMENTAL = 2


class SyncOptions(Struct, frozen=True):
    """What a server wants to be told about documents; by default nothing."""

    open_close: bool = False
    change: SyncKind = SyncKind.NONE
    save: bool | None = None
    """Whether with the text; None: not at all."""


def sync_options(value: object) -> SyncOptions:
    """Read `textDocumentSync`: absent, null, a number or an object.

    Raises `Malformed` on anything else, for a guess could leave the server with a wrong text unnoticed.
    """
    if value is None:
        return SyncOptions()
    if (found := maybe_fields(value)) is not None:
        open_close = found.get("openClose") is True
        return SyncOptions(open_close, sync_kind(found.get("change")), save_options(found.get("save")))
    kind = sync_kind(value)
    # The number is older than the object, and meant opening, closing and saving along with changes.
    return SyncOptions() if kind is SyncKind.NONE else SyncOptions(open_close=True, change=kind, save=False)


def sync_kind(value: object) -> SyncKind:
    """Read a sync kind; absent means that changes are not wanted. Raises `Malformed`."""
    if value is None:
        return SyncKind.NONE
    if isinstance(value, bool) or value not in tuple(SyncKind):
        raise Malformed(f"textDocumentSync: {value!r} is not a sync kind")
    return SyncKind(value)


def save_options(value: object) -> bool | None:
    """Read `save`, where `{}` means yes: whether with the text, None for no. Raises `Malformed`."""
    if (found := maybe_fields(value)) is not None:
        return found.get("includeText") is True
    if value is None or isinstance(value, bool):
        return False if value else None
    raise Malformed(f"textDocumentSync: {value!r} does not say whether saving is of interest")


class Notification(Struct, frozen=True):
    method: str
    params: Wire


class _Document(Struct, frozen=True):
    language_id: str
    text: Text
    version: int
    announced: bool = False


class Documents:
    def __init__(self, options: SyncOptions, encoding: Encoding) -> None:
        self._options = options
        self._encoding = encoding
        self._version = 0
        self._open: dict[AbsPath, _Document] = {}
        """The least recently used one first."""
        self.moves = 0
        """How often a document was opened, closed or sent anew: as long as it stays the same, so do the open paths."""

    # --- What is open ----------------------------------------------------------------------------------------------

    @property
    def paths(self) -> tuple[AbsPath, ...]:
        """The least recently used one first."""
        return tuple(self._open)

    def is_open(self, path: AbsPath) -> bool:
        return path in self._open

    def version(self, path: AbsPath) -> int:
        """The version that the server knows the current text by."""
        return self._document(path).version

    def text(self, path: AbsPath) -> Text:
        return self._document(path).text

    def language_id(self, path: AbsPath) -> str | None:
        document = self._open.get(path)
        return None if document is None else document.language_id

    def least_recently_used(self, limit: int) -> tuple[AbsPath, ...]:
        """What to close so that `limit` documents stay open, the longest unused first."""
        return tuple(islice(self._open, max(0, len(self._open) - limit)))

    # --- What changes it -------------------------------------------------------------------------------------------

    def sync(self, path: AbsPath, language_id: str, text: str, *, anew: bool = False) -> tuple[Notification, ...]:
        """Make the server see `text`, by whatever that takes; nothing when it does already and need not see it anew."""
        known = self.language_id(path)
        if known is None:
            return self.open(path, language_id, text)
        if known != language_id:
            return self.close(path) + self.open(path, language_id, text)
        return self.change(path, text, anew=anew)

    def open(self, path: AbsPath, language_id: str, text: str) -> tuple[Notification, ...]:
        if path in self._open:
            raise Bug(f"{path!r} was opened twice")
        self._open[path] = _Document(language_id, Text(text), self._next_version())
        self.moves += 1
        return self._announce(path)

    def change(self, path: AbsPath, text: str, *, anew: bool = False) -> tuple[Notification, ...]:
        """Replace the text; nothing to send when it is the same, or when the server does not follow changes."""
        document = self._used(path)
        if text == document.text.string and not anew:
            return ()
        self.moves += anew
        changed = replace(document, text=Text(text))
        kind = self._options.change if document.announced else SyncKind.NONE
        if kind is SyncKind.NONE:
            self._open[path] = changed
            return ()
        changed = self._open[path] = replace(changed, version=self._next_version())
        change = ContentChange(changed.text.string)
        if kind is SyncKind.INCREMENTAL:
            change = changed_part(document.text, changed.text.string, self._encoding)
        identifier = TextDocumentIdentifier(uri_of(path), changed.version)
        return (Notification("textDocument/didChange", DidChangeParams(identifier, [change])),)

    def save(self, path: AbsPath) -> tuple[Notification, ...]:
        """Tell that the current text reached the disk; nothing to send when the server did not ask for that."""
        document = self._used(path)
        if self._options.save is None:
            return ()
        text = document.text.string if self._options.save else None
        return (Notification("textDocument/didSave", DidSaveParams(TextDocumentIdentifier(uri_of(path)), text)),)

    def close(self, path: AbsPath) -> tuple[Notification, ...]:
        """Forget the document; nothing to send when it is not open."""
        document = self._open.pop(path, None)
        self.moves += 1
        if document is None or not document.announced:
            return ()
        return (Notification("textDocument/didClose", DocumentParams(TextDocumentIdentifier(uri_of(path)))),)

    def configure(self, options: SyncOptions) -> tuple[Notification, ...]:
        """The server wants to be told other things from now on; announces what it did not want to hear of before."""
        self._options = options
        return tuple(notification for path in self._open for notification in self._announce(path))

    def _announce(self, path: AbsPath) -> tuple[Notification, ...]:
        document = self._open[path]
        if document.announced or not self._options.open_close:
            return ()
        self._open[path] = replace(document, announced=True)
        item = TextDocumentItem(uri_of(path), document.language_id, document.version, document.text.string)
        return (Notification("textDocument/didOpen", DidOpenParams(item)),)

    def _document(self, path: AbsPath) -> _Document:
        try:
            return self._open[path]
        except KeyError:
            raise Bug(f"{path!r} is not open") from None

    def _used(self, path: AbsPath) -> _Document:
        """The document, moved to the end of the line."""
        document = self._document(path)
        del self._open[path]
        self._open[path] = document
        return document

    def _next_version(self) -> int:
        self._version += 1
        return self._version


def changed_part(old: Text, new: str, encoding: Encoding) -> ContentChange:
    """The smallest single replacement that makes `new` of `old`, and never cuts a `\\r\\n` of either in two."""
    prefix = _common_prefix(old.string, new)
    suffix = _common_prefix(old.string[prefix:][::-1], new[prefix:][::-1])
    if _cuts_line_ending(old.string, prefix) or _cuts_line_ending(new, prefix):
        prefix -= 1
    if _cuts_line_ending(old.string, len(old.string) - suffix) or _cuts_line_ending(new, len(new) - suffix):
        suffix -= 1
    span = Range(old.position_at(prefix), old.position_at(len(old.string) - suffix))
    return ContentChange(new[prefix : len(new) - suffix], range_to_wire(span, old, encoding))


def _common_prefix(one: str, other: str) -> int:
    """How many characters both start with.

    By bisection: each step compares only what is still unknown, so the log₂(n) slices are n characters in all.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _cuts_line_ending(text: str, offset: int) -> bool:
    return text[offset - 1 : offset + 1] == "\r\n"
