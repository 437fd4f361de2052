"""Shapes that many answers share: one or many, and text in its several historic forms."""

from typing import Any, TypeVar

from pilotfish.protocol.codec import Items, decode, decode_items, items, member
from pilotfish.protocol.wire import Raw

T = TypeVar("T")


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
