"""Where one message ends and the next begins: `Content-Length` framing, in and out, and a line for each message.

Any chunking of the same bytes gives the same bodies, the same count of junk, and the same fault if there is one.
Nothing is allocated for what a header promises: a body grows with the bytes that came, and is refused when its header
promises too much.
A fault is final. After a wrong length the next header cannot be found, so the decoder is poisoned and every later
`feed` raises again; the owner restarts the server.

Between two messages a server may print lines of log, which is against the specification and common. Whole lines are
skipped, counted and kept for the log up to a limit. A header that follows something else than a line end is a fault:
it is the trace of a `Content-Length` that was too small or too large. Only before the first message, where no length
can have lied, may junk end anywhere, for programs that print a banner or a progress bar without a line end.
"""

import re
from functools import lru_cache
from io import BytesIO

from pilotfish.errors import Code

MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes of one body. The largest seen in the wild are answers of some ten megabytes from very large workspaces."""

MAX_HEADER = 8 * 1024
"""Bytes of one header block, as most HTTP servers have it; ours are 30 bytes long."""

MAX_JUNK = 1024 * 1024
"""Bytes of log between two messages. A server that prints more than this before it says a word is not one."""

MAX_JUNK_LINE = 64 * 1024
"""Bytes of one line of log. An unfinished line is copied with every chunk, so its length bounds that work."""

_LINE_FEED = ord("\n")
_END = b"\r\n\r\n"
_FIELD = re.compile(rb"content-(?:length|type)[ \t]{0,16}:", re.IGNORECASE)
_NEXT_FIELD = re.compile(rb"content-length[ \t]{0,16}:|^content-type[ \t]{0,16}:", re.IGNORECASE | re.MULTILINE)
_LONGEST_FIELD = len("content-length") + 16 + len(":")
_MOST_DIGITS = 20
UTF8 = (b"utf-8", b"utf8")
_CHARSET = re.compile(rb"""charset\s*=\s*["']?([^\s;"']*)""", re.IGNORECASE)


class FrameError(Exception):
    """The stream cannot be read any further. `bodies` are the messages that came whole before the fault."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.bodies: tuple[bytes, ...] = ()


def frame(body: bytes) -> bytes:
    """Return `body` with its header, in one piece: two writers can never mix the halves of two messages."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameDecoder:
    """Takes the bytes of one stream in any pieces and gives the bodies of its messages."""

    def __init__(self) -> None:
        self._rest = b""
        """Between messages: what came and is no whole header or line yet. It begins where a line begins."""
        self._body: BytesIO | None = None
        self._missing = 0
        self._fault: tuple[Code, str] | None = None
        self._frames = 0
        self._gap_after = self._gap_size = 0
        """The junk after that many messages."""
        self.junk_size = 0
        """Bytes that were no part of a message."""

    @property
    def incomplete(self) -> bool:
        """Whether a message has begun and not ended. An unfinished line of log is not a message."""
        begun = self._rest[:8].lower()
        return self._body is not None or (begun != b"" and b"content-".startswith(begun))

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the bodies that are whole now. Raises `FrameError`, and then for ever."""
        if self._fault is not None:
            raise FrameError(*self._fault)
        bodies: list[bytes] = []
        try:
            self._advance(data, bodies)
        except FrameError as error:
            self._fault = (error.code, error.message)
            error.bodies = tuple(bodies)
            raise
        self._frames += len(bodies)
        return bodies

    def _advance(self, data: bytes, bodies: list[bytes]) -> None:
        if self._body is not None:
            data = self._fill(self._body, data, bodies)
        elif self._rest:
            data = self._rest + data
        start, size = 0, len(data)
        while start < size:
            end = data.find(_END, start, start + MAX_HEADER + len(_END))
            length = None if end < 0 else _body_length(data[start:end])
            if length is None:
                start = self._skip(data, start, self._frames + len(bodies))
                if _begins_whole_header(data, start):
                    continue
                break
            start = end + len(_END)
            if start + length > size:
                self._rest, self._body, self._missing = b"", BytesIO(), length - (size - start)
                self._body.write(data[start:])
                return
            bodies.append(data[start : start + length])
            start += length
        self._rest = data[start:]

    def _fill(self, body: BytesIO, data: bytes, bodies: list[bytes]) -> bytes:
        """Add to the unfinished body; return what belongs to the next message."""
        if len(data) < self._missing:
            body.write(data)
            self._missing -= len(data)
            return b""
        body.write(data[: self._missing])
        bodies.append(body.getvalue())
        self._body = None
        return data[self._missing :]

    def _skip(self, data: bytes, start: int, frames: int) -> int:
        """Pass over junk; return where the next header begins, or else the line that is not finished yet."""
        if _FIELD.match(data, start):
            return start
        found = _NEXT_FIELD.search(data, start)
        end = found.start() if found else (data.rfind(b"\n", start) + 1 or start)
        if end > start:
            self._note(data[start:end], frames)
        if found is None and len(data) - end > MAX_JUNK_LINE + _LONGEST_FIELD:
            raise _too_much_junk()
        if found and frames and data[end - 1] != _LINE_FEED:
            raise FrameError(Code.PROTOCOL_ERROR, "a message was longer or shorter than its Content-Length")
        return end

    def _note(self, junk: bytes, frames: int) -> None:
        """Count what lies between messages; `frames` tells one gap from the next."""
        if frames != self._gap_after:
            self._gap_after, self._gap_size = frames, 0
        self._gap_size += len(junk)
        self.junk_size += len(junk)
        longest = max(map(len, junk.split(b"\n"))) if len(junk) > MAX_JUNK_LINE else 0
        if self._gap_size > MAX_JUNK or longest > MAX_JUNK_LINE:
            raise _too_much_junk()


def _begins_whole_header(data: bytes, start: int) -> bool:
    if not _FIELD.match(data, start):
        return False
    if data.find(_END, start, start + MAX_HEADER + len(_END)) >= 0:
        return True
    if len(data) - start >= MAX_HEADER + len(_END):
        raise FrameError(Code.LIMIT_EXCEEDED, f"a header is longer than {MAX_HEADER} bytes")
    return False


def _too_much_junk() -> FrameError:
    what = f"more than {MAX_JUNK} bytes, or one line of more than {MAX_JUNK_LINE}, that are not a message"
    return FrameError(Code.LIMIT_EXCEEDED, what)


@lru_cache(maxsize=512)  # Headers differ in the length only and lengths repeat. At worst 512 × `MAX_HEADER` = 4 MiB.
def _body_length(header: bytes) -> int | None:
    """What a whole header promises; None when this is not the beginning of one."""
    if not _FIELD.match(header):
        return None
    lengths: set[int] = set()
    for line in header.split(b"\n"):
        name, _, value = line.partition(b":")
        field = name.strip().lower()
        if field == b"content-length":
            lengths.add(_length(value.strip()))
        elif field == b"content-type" and (found := _CHARSET.search(value)) and found[1].lower() not in UTF8:
            raise FrameError(Code.PROTOCOL_ERROR, f"the charset is not utf-8: {found[1][:20]!r}")
    if not lengths:
        raise FrameError(Code.PROTOCOL_ERROR, "a header has no Content-Length")
    if len(lengths) > 1:
        raise FrameError(Code.PROTOCOL_ERROR, f"a header has several lengths: {sorted(lengths)[:4]}")
    return lengths.pop()


def _length(digits: bytes) -> int:
    if not digits.isdigit():
        raise FrameError(Code.PROTOCOL_ERROR, f"Content-Length is not a number: {digits[:20]!r}")
    # Compared as text first: converting thousands of digits costs quadratic time, and Python refuses it.
    if len(digits) > _MOST_DIGITS or int(digits) > MAX_MESSAGE:
        brief = digits.decode() if len(digits) <= _MOST_DIGITS else f"10^{len(digits) - 1}"
        raise FrameError(Code.LIMIT_EXCEEDED, f"a message of {brief} bytes is over the limit of {MAX_MESSAGE}")
    return int(digits)


class LineDecoder:
    """Takes the bytes of one stream in any pieces and gives its lines, without their ends and without empty ones.

    A line that is longer than `limit` is not kept: None stands for it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        """The line so far."""
        self._size = 0

    @property
    def unfinished(self) -> bytes:
        """The line so far; nothing of one that is too long."""
        return b"".join(self._parts)

    def feed(self, data: bytes) -> list[bytes | None]:
        first, *others = data.split(b"\n")
        self._add(first)
        lines: list[bytes | None] = []
        for part in others:
            if self._size > self._limit:
                lines.append(None)
            elif line := self.unfinished.strip():
                lines.append(line)
            self._parts, self._size = [], 0
            self._add(part)
        return lines

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)
