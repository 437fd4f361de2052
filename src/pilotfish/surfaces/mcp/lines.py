"""Where one MCP message ends and the next begins: a line each. Pure, and any chunking gives the same lines.

A line that is too long is passed over without being kept: only its ends are, where the id of a request stands.
"""

import re

import msgspec
from msgspec import Struct

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one message, the limit that the SDK has for HTTP. The longest argument is the text of a file to check."""

KEPT = 256
"""Bytes kept of either end of a line that is too long: enough for an id and a version."""

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,100}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AHEAD = re.compile(rb"\s*\{\s*(?:%b\s*,\s*)?%b\s*," % (_VERSION, _ID))
_BEHIND = re.compile(rb",\s*%b\s*(?:,\s*%b\s*)?\}\s*$" % (_ID, _VERSION))


class TooLong(Struct, frozen=True):
    """A message that was passed over; `id` is that of the request it seems to have been."""

    id: int | str | None


class LineDecoder:
    """Takes the bytes of one stream in any pieces and gives its lines, without their ends and without empty ones."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        """The line so far; of one that is too long, its two ends."""
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        first, *others = data.split(b"\n")
        self._add(first)
        lines: list[bytes | TooLong] = []
        for part in others:
            lines += self._ended()
            self._add(part)
        return lines

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > MAX_LINE:
            kept = b"".join(self._parts)
            self._parts = [kept[:KEPT], kept[KEPT:][-KEPT:]]

    def _ended(self) -> list[bytes | TooLong]:
        size, parts = self._size, self._parts
        self._parts, self._size = [], 0
        if size > MAX_LINE:
            return [TooLong(_identifier(*parts))]
        line = b"".join(parts).strip()
        return [line] if line else []


def _identifier(head: bytes, tail: bytes) -> int | str | None:
    """The id of a request, where it stands before or after everything else; one that stands deeper is not its own."""
    found = _AHEAD.match(head) or _BEHIND.search(tail)
    try:
        return None if found is None else msgspec.json.decode(found[1], type=int | str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Escapes that are none, bytes that are no text: whatever it was, it was no id.
        return None
