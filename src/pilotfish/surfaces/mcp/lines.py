"""Where one MCP message ends and the next begins: a line each. Pure, and any chunking gives the same lines."""

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one message, the limit that the SDK has for HTTP. The longest argument is the text of a file to check."""


class LineDecoder:
    """Takes the bytes of one stream in any pieces and gives its lines, without their ends and without empty ones.

    A line that is too long is not kept: None stands for it.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        """The line so far."""
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | None]:
        first, *others = data.split(b"\n")
        self._add(first)
        lines: list[bytes | None] = []
        for part in others:
            lines += self._end()
            self._add(part)
        return lines

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _end(self) -> list[bytes | None]:
        size, parts = self._size, self._parts
        self._parts, self._size = [], 0
        if size > MAX_LINE:
            return [None]
        line = b"".join(parts).strip()
        return [line] if line else []
