"""Reading text files: what is read word for word, what is refused, and that nothing blocks."""

import errno
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.system import files
from pilotfish.system.files import BINARY_PROBE_BYTES, INLINE_BYTES, MAX_FILE_BYTES, MAX_LINES, DiskFiles
from pilotfish.system.ports import Files, FileText, Identity
from support.left_behind import no_task_left_behind, nothing_left_behind

__all__ = ["no_task_left_behind", "nothing_left_behind"]

pytestmark = pytest.mark.anyio

BOUND_SECONDS = 5.0


async def read(path: Path) -> FileText:
    reader: Files = DiskFiles()
    with anyio.fail_after(BOUND_SECONDS):
        return await reader.read_text(AbsPath(str(path)))


async def refusal(path: Path) -> Refused:
    with pytest.raises(Refused) as caught:
        await read(path)
    assert str(path) in caught.value.message
    return caught.value


@pytest.mark.proves("F49", "F50", "C81", "DOC-6")
@pytest.mark.parametrize(
    ("content", "text", "bom"),
    [
        pytest.param(b"", "", False, id="empty"),
        pytest.param(b"a\r\nb\rc\nd", "a\r\nb\rc\nd", False, id="every line ending"),
        pytest.param(b"\xef\xbb\xbfa\n", "a\n", True, id="UTF-8 with a mark"),
        pytest.param(b"\xef\xbb\xbf", "", True, id="a mark alone"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfa", "\ufeffa", True, id="two marks"),
        pytest.param("é😀\u2028x".encode(), "é😀\u2028x", False, id="beyond ASCII"),
        pytest.param(b"a" * BINARY_PROBE_BYTES + b"\0", "a" * BINARY_PROBE_BYTES + "\0", False, id="a late NUL"),
        pytest.param(b"x" * (INLINE_BYTES + 1), "x" * (INLINE_BYTES + 1), False, id="read in a thread"),
        pytest.param(b"x" * MAX_FILE_BYTES, "x" * MAX_FILE_BYTES, False, id="as large as may be"),
    ],
)
async def test_a_text_file_is_read_word_for_word(tmp_path: Path, content: bytes, text: str, bom: bool) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content)
    status = path.stat()
    found = await read(path)
    assert (found.text, found.bom, found.content) == (text, bom, content)
    assert found.path == str(path)
    assert found.identity == Identity(status.st_dev, status.st_ino, status.st_mtime_ns, len(content))


CAFE = "# -*- coding: latin-1 -*-\ncafé = 1\n"


@pytest.mark.proves("DOC-6")
@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        pytest.param("a.py", CAFE.encode("latin-1"), CAFE, id="Latin-1"),
        pytest.param("a.pyi", b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n\x80", None, id="second line"),
        pytest.param("a.py", "# coding=shift_jis\nあ".encode("shift_jis"), "# coding=shift_jis\nあ", id="two bytes"),
        pytest.param("a.py", "# coding: utf-8-unix\né".encode(), "# coding: utf-8-unix\né", id="UTF-8 by another name"),
        pytest.param("a.py", "x = 1\n# coding: latin-1\né".encode(), "x = 1\n# coding: latin-1\né", id="after code"),
        pytest.param("a.rb", "# coding: latin-1\né".encode(), "# coding: latin-1\né", id="not Python"),
    ],
)
async def test_a_coding_line_of_python_is_honoured(tmp_path: Path, name: str, content: bytes, text: str | None) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert (await read(path)).text == (text or content.decode("cp1252"))


@pytest.mark.proves("F99")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
async def test_utf_16_is_read_where_the_compiler_takes_it(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffconst café: string = '😀';\r\n".encode(encoding)
    for name in ("a.ts", "a.js", "a.cs"):
        (tmp_path / name).write_bytes(content)
        found = await read(tmp_path / name)
        assert (found.text, found.encoding) == ("const café: string = '😀';\r\n", encoding)
    (tmp_path / "a.ts").write_bytes(content[:-1])
    assert "unsupported encoding (not UTF-16" in (await refusal(tmp_path / "a.ts")).message
    (tmp_path / "a.py").write_bytes(content)
    assert (await refusal(tmp_path / "a.py")).code is Code.UNSUPPORTED


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"# coding: unicode_escape\nx = '\\u0041'\n", id="a codec that changes lengths"),
        pytest.param(b"# coding: nonsense\nx = 1\n", id="an unknown codec"),
        pytest.param(b"# coding: rot13\nx = 1\n", id="no text encoding"),
        pytest.param(b"# coding: utf-16\nx = 1\n", id="not what the file is in"),
        pytest.param(b"# coding: ascii\n\xe9", id="a byte outside of it"),
    ],
)
async def test_a_coding_line_that_does_not_fit_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content)
    refused = await refusal(path)
    assert refused.code is Code.UNSUPPORTED
    assert "unsupported encoding" in refused.message


@pytest.mark.proves("F50", "F52", "DOC-6")
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        pytest.param(b"\xff\xfea\0", Code.UNSUPPORTED, "unsupported encoding", id="UTF-16 little"),
        pytest.param(b"\xfe\xff\0a", Code.UNSUPPORTED, "unsupported encoding", id="UTF-16 big"),
        pytest.param(b"\xff\xfe\0\0a\0\0\0", Code.UNSUPPORTED, "unsupported encoding", id="UTF-32 little"),
        pytest.param(b"\0\0\xfe\xff\0\0\0a", Code.UNSUPPORTED, "unsupported encoding", id="UTF-32 big"),
        pytest.param(b"caf\xe9", Code.UNSUPPORTED, "not UTF-8 at byte 3", id="Latin-1"),
        pytest.param(b"\xed\xa0\x80", Code.UNSUPPORTED, "not UTF-8", id="a surrogate"),
        pytest.param(b"\x7fELF\0", Code.UNSUPPORTED, "binary", id="a program"),
        pytest.param(b"a" * (BINARY_PROBE_BYTES - 1) + b"\0", Code.UNSUPPORTED, "binary", id="NUL at the last place"),
        pytest.param(b"x" * (MAX_FILE_BYTES + 1), Code.LIMIT_EXCEEDED, "larger than 8 MiB", id="too large"),
        pytest.param(b"\n" * (MAX_LINES + 1), Code.LIMIT_EXCEEDED, "more than 400,000 lines", id="too many lines"),
    ],
)
async def test_what_is_no_utf8_text_of_bounded_size_is_refused(
    tmp_path: Path, content: bytes, code: Code, said: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content)
    refused = await refusal(path)
    assert refused.code is code
    assert said in refused.message


@pytest.mark.proves("F52")
async def test_fifty_sparse_gigabytes_are_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.py"
    with path.open("wb") as file:
        file.truncate(50_000_000_000)
    assert (await refusal(path)).code is Code.LIMIT_EXCEEDED


async def test_a_file_that_grows_while_it_is_read_is_refused_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.py"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 150)
    real_read = os.read

    def grow_and_read(descriptor: int, size: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"x" * 60)
        return real_read(descriptor, size)

    monkeypatch.setattr(os, "read", grow_and_read)
    assert (await refusal(path)).code is Code.LIMIT_EXCEEDED


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.proves("T43", "A17.1")
@pytest.mark.parametrize("make", [fifo, unix_socket, link_to_device, Path.mkdir])
async def test_what_is_no_regular_file_is_refused_without_blocking(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.py"
    make(path)
    before = signal.alarm(10)  # a read that blocks the loop is beyond the reach of its deadlines
    try:
        assert (await refusal(path)).code is Code.NOT_A_FILE
    finally:
        signal.alarm(before)


@pytest.mark.proves("T43")
async def test_a_file_that_tells_no_size_is_read_to_its_end() -> None:
    found = await read(Path("/proc/self/status"))
    assert found.identity.size == 0
    assert found.text.startswith("Name:")
    assert found.text.endswith("\n")


@pytest.mark.proves("PATH-4", "F54")
@pytest.mark.parametrize("name", ["missing.py", "file/below.py"])
async def test_a_missing_file_is_refused_and_has_no_identity(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    assert (await refusal(tmp_path / name)).code is Code.FILE_MISSING
    assert await DiskFiles().identity(AbsPath(str(tmp_path / name))) is None


@pytest.mark.proves("PATH-4")
async def test_a_file_that_may_not_be_read_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)  # root, as whom many a container runs tests, is refused nothing
    refused = await refusal(tmp_path / "secret.py")
    assert refused.code is Code.FILE_UNREADABLE
    assert "permission denied" in refused.message


@pytest.mark.proves("PATH-4")
async def test_what_the_system_cannot_open_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    for path in (tmp_path / "loop.py", tmp_path / ("n" * 300)):
        assert (await refusal(path)).code is Code.FILE_UNREADABLE
        with pytest.raises(Refused) as caught:
            await DiskFiles().identity(AbsPath(str(path)))
        assert caught.value.code is Code.FILE_UNREADABLE


@pytest.mark.proves("PATH-4")
@pytest.mark.parametrize("path", ["/a\0b", "/a\ud800b"], ids=["NUL", "not encodable"])
async def test_what_cannot_be_a_path_is_invalid_input(path: str) -> None:
    with pytest.raises(Refused) as caught:
        await DiskFiles().read_text(AbsPath(path))
    assert caught.value.code is Code.INVALID_INPUT
    assert await DiskFiles().identity(AbsPath(path)) is None


@pytest.mark.proves("F45")
async def test_a_name_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.py")
    path.write_text("x")
    assert (await read(path)).text == "x"


async def test_the_identity_changes_with_the_file_and_not_with_its_name(tmp_path: Path) -> None:
    reader = DiskFiles()
    path = tmp_path / "a.py"
    path.write_text("one")
    first = await reader.identity(AbsPath(str(path)))
    assert first == (await read(path)).identity
    (tmp_path / "link.py").symlink_to(path)
    assert await reader.identity(AbsPath(str(tmp_path / "link.py"))) == first
    os.utime(path, ns=(1, 1))
    second = await reader.identity(AbsPath(str(path)))
    replacement = tmp_path / "b.py"
    replacement.write_text("two")
    os.utime(replacement, ns=(1, 1))
    replacement.rename(path)
    third = await reader.identity(AbsPath(str(path)))
    assert len({first, second, third}) == 3


async def test_a_file_that_changes_while_it_is_read_keeps_the_older_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("old")
    os.utime(path, ns=(1, 1))
    real_read = os.read

    def change_and_read(descriptor: int, size: int) -> bytes:
        if path.read_text() == "old":
            path.write_text("new text")
        return real_read(descriptor, size)

    monkeypatch.setattr(os, "read", change_and_read)
    found = await read(path)
    assert found.identity != await DiskFiles().identity(AbsPath(str(path)))


@pytest.mark.proves("F50")
@given(st.binary(max_size=40))
def test_content_is_read_as_python_decodes_it_or_refused(content: bytes) -> None:
    try:
        expected = content.decode("utf-8-sig") if b"\0" not in content else None
    except UnicodeDecodeError:
        expected = None
    if expected is None:
        with pytest.raises(Refused):
            files.decoded(AbsPath("/a"), content)
    else:
        assert files.decoded(AbsPath("/a"), content) == expected
