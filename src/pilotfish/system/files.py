"""Reads source files: regular, text, of bounded size; and says which path a path really is.

Rules:
- Opening never blocks and reading never waits: a FIFO, device or socket in a project is refused by what the open
  descriptor is, not by what the path was a moment before.
- The identity is taken before the text. A file that changes while it is read then differs from its identity, and is
  read again; the other way round a torn text would pass for the new one.
- Line endings stay as they are.
- Text is UTF-8, or what a Python file declares in a coding line (PEP 263), or UTF-16 with a byte-order mark in
  languages whose compilers take that.

What may be read is decided above, in `policy`; symbolic links are followed here.
"""

import errno
import os
import re
import stat
from typing import Never

import anyio.to_thread

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.system import calls
from pilotfish.system.ports import FileText, Identity

MAX_LINES = 400_000
"""Of a file: everybody waits while the beginnings of its lines are listed, 1.7 s for 8 million. In 8 MB, this many have
20 characters each."""

MAX_FILE_BYTES = 8 * 1024 * 1024
"""The largest hand-written sources have 3 MB; beyond are bundles and data, which cost a server seconds for nothing."""

INLINE_BYTES = 256 * 1024
"""Up to here a read takes less than the 140 µs that the way to a thread and back takes (20 KB: 7 µs, 256 KB: 21 µs)."""

BINARY_PROBE_BYTES = 8 * 1024
"""Where a NUL makes a file binary: the rule of git and of most editors."""

UTF8_MARK = b"\xef\xbb\xbf"
OTHER_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff", b"\xff\xfe", b"\xfe\xff")
"""The byte-order marks of UTF-32 and UTF-16."""

UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
UTF16_TAKEN = (
    ".cjs", ".cs", ".css", ".cts", ".fs", ".htm", ".html", ".js", ".jsx", ".mjs", ".mts", ".ps1", ".psd1", ".psm1",
    ".ts", ".tsx", ".vb", ".xml",
)  # fmt: skip
"""Files whose compilers take UTF-16: those of TypeScript, of .NET and of the web."""

PYTHON = (".py", ".pyi", ".pyw")
CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BLANK = re.compile(rb"[ \t\f]*(?:#.*)?\r?")
UTF8_NAME = re.compile(r"(?i)utf[-_]?8(?:[-_].*)?")
CODING_PROBE_BYTES = 4096
"""Bytes within which the first two lines of a Python file must end for a coding line to count."""

NOT_A_FILE = frozenset({errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EAGAIN})
"""What opening or reading says of sockets, devices without a driver, folders, and files that only look regular."""

MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})


class DiskFiles:
    """The `EditableFiles` port over the file system."""

    async def read_text(self, path: AbsPath) -> FileText:
        descriptor, status = _open(path)
        try:
            if status.st_size <= INLINE_BYTES:
                content = _read(path, descriptor, status.st_size)
            else:
                content = await anyio.to_thread.run_sync(_read, path, descriptor, status.st_size)
        finally:
            os.close(descriptor)
        return _text(path, content, status)

    def read_opened(self, path: AbsPath, descriptor: int) -> FileText:
        status = os.fstat(descriptor)
        if status.st_size > MAX_FILE_BYTES:
            raise _too_large(path)
        return _text(path, _read(path, descriptor, status.st_size), status)

    async def identity(self, path: AbsPath) -> Identity | None:
        try:
            return _identity(os.stat(path))
        except OSError as error:
            if error.errno in MISSING:
                return None
            _refuse(path, error)
        except ValueError:
            return None


def _open(path: AbsPath) -> tuple[int, os.stat_result]:
    try:
        # Without O_NOCTTY a terminal device could become ours by being looked at.
        descriptor = os.open(path, os.O_RDONLY | calls.O_NONBLOCK | calls.O_NOCTTY)
    except OSError as error:
        _refuse(path, error)
    except ValueError as error:
        raise Refused(Code.INVALID_INPUT, f"not a path of this system: {path!r}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(Code.NOT_A_FILE, f"not a file: {path}")
        if status.st_size > MAX_FILE_BYTES:
            raise _too_large(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _read(path: AbsPath, descriptor: int, size: int) -> bytes:
    """Read to the end, whatever the size was said to be: files of `/proc` say 0, and a log may be growing."""
    parts: list[bytes] = []
    room = MAX_FILE_BYTES + 1
    try:
        while room and (part := os.read(descriptor, min(room, max(size + 1, 4096)))):
            parts.append(part)
            room -= len(part)
    except OSError as error:
        _refuse(path, error)
    if not room:
        raise _too_large(path)
    content = b"".join(parts)
    if content.count(b"\n") + content.count(b"\r") > MAX_LINES:
        raise Refused(Code.LIMIT_EXCEEDED, f"more than {MAX_LINES:,} lines: {path}")
    return content


def _text(path: AbsPath, content: bytes, status: os.stat_result) -> FileText:
    return FileText(
        path,
        decoded(path, content),
        bom=content.startswith(UTF8_MARK),
        identity=_identity(status),
        content=content,
        encoding=encoding_of(path, content),
    )


def decoded(path: AbsPath, content: bytes) -> str:
    """The text of a file's content, without its byte-order mark; raises `Refused` (`unsupported`) for anything else."""
    encoding = encoding_of(path, content)
    if encoding in UTF16_MARKS.values():
        try:
            return content[2:].decode(encoding)
        except UnicodeError:
            raise Refused(Code.UNSUPPORTED, f"unsupported encoding (not {encoding.upper()}): {path}") from None
    if content.startswith(OTHER_MARKS):
        raise Refused(Code.UNSUPPORTED, f"unsupported encoding (UTF-16 or UTF-32): {path}")
    if b"\0" in content[:BINARY_PROBE_BYTES]:
        raise Refused(Code.UNSUPPORTED, f"binary file: {path}")
    try:
        text = content.removeprefix(UTF8_MARK).decode(encoding)
    except (UnicodeError, LookupError) as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise Refused(Code.UNSUPPORTED, f"unsupported encoding (not {name} at byte {start}): {path}") from None
    if encoding != "utf-8" and text.encode(encoding, "replace") != content:
        # The codec changes more than the letters, so places in the text would not be places in the file.
        raise Refused(Code.UNSUPPORTED, f"unsupported encoding ({encoding}): {path}")
    return text


def encoding_of(path: AbsPath, content: bytes) -> str:
    """`utf-8`, the codec that a Python file names in its first two lines (PEP 263), or UTF-16 where it is taken."""
    if path.endswith(UTF16_TAKEN) and content[2:4] != b"\0\0":
        return UTF16_MARKS.get(content[:2], "utf-8")
    if not path.endswith(PYTHON) or content.startswith(UTF8_MARK):
        return "utf-8"
    for line in content[:CODING_PROBE_BYTES].split(b"\n", 2)[:2]:
        if found := CODING.match(line):
            name = found[1].decode("ascii")
            return "utf-8" if UTF8_NAME.fullmatch(name) else name
        if not BLANK.fullmatch(line):
            break
    return "utf-8"


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns)


def _refuse(path: str, error: OSError) -> Never:
    if error.errno in MISSING:
        raise Refused(Code.FILE_MISSING, f"no such file: {path}") from None
    if error.errno in NOT_A_FILE:
        raise Refused(Code.NOT_A_FILE, f"not a file: {path}") from None
    raise Refused(Code.FILE_UNREADABLE, f"cannot be read: {path}: {os.strerror(error.errno or 0).lower()}") from error


def _too_large(path: str) -> Refused:
    return Refused(Code.LIMIT_EXCEEDED, f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB: {path}")
