"""Texts: each file is read once, and never believed longer than `stat` can vouch for it."""

import mmap
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.service import texts as texts_module
from pilotfish.service.texts import DOUBT_SECONDS, Texts
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.ports import FileText, Identity

pytestmark = pytest.mark.anyio

A, B, C = AbsPath("/w/a.x"), AbsPath("/w/b.x"), AbsPath("/w/c.x")
LONG_AGO = 1_000.0


@dataclass
class FakeFiles:
    """Files in memory that count how often they are read."""

    contents: dict[AbsPath, tuple[str, float]] = field(default_factory=dict[AbsPath, tuple[str, float]])
    reads: list[AbsPath] = field(default_factory=list[AbsPath])
    changes: int = 0
    """What `chmod` and `mv` move on, and writing does too."""

    def write(self, path: AbsPath, text: str, at: float = LONG_AGO) -> None:
        self.contents[path] = (text, at)

    async def read_text(self, path: AbsPath) -> FileText:
        identity = await self.identity(path)
        if identity is None:
            raise Refused(Code.FILE_MISSING, path)
        self.reads.append(path)
        text = self.contents[path][0]
        return FileText(path, text, bom=False, identity=identity, content=text.encode())

    async def identity(self, path: AbsPath) -> Identity | None:
        if path not in self.contents:
            return None
        text, at = self.contents[path]
        return Identity(1, 1, round(at * 1e9), len(text), ctime_ns=self.changes)


@dataclass
class FakeClock:
    now: float = 2_000.0

    def wall(self) -> float:
        return self.now


@pytest.mark.proves("DOC-4")
async def test_an_unchanged_file_is_not_read_again() -> None:
    files = FakeFiles()
    files.write(A, "one")
    texts = Texts(files, FakeClock())
    assert [(await texts.current(A)).text for _ in range(3)] == ["one"] * 3
    assert files.reads == [A]


@pytest.mark.proves("DOC-4", "F95")
async def test_a_file_of_which_a_write_was_told_is_read_again_whatever_its_times_say() -> None:
    files = FakeFiles()
    files.write(A, "one")
    texts = Texts(files, FakeClock())
    await texts.current(A)
    files.write(A, "two")
    assert (await texts.current(A)).text == "one", "the same size and times"
    texts.doubt([A, B])
    assert await texts.unchanged(A) is None
    assert (await texts.current(A)).text == "two"
    await texts.current(A)
    assert files.reads == [A, A]


@pytest.mark.proves("F95")
async def test_a_store_into_a_memory_mapping_that_is_held_is_seen_in_the_file_that_is_asked_about(
    tmp_path: Path,
) -> None:
    path, texts = AbsPath(str(tmp_path / "file")), Texts(DiskFiles(), WallClock())
    Path(path).write_text("fine")
    assert (await texts.current(path)).text == "fine"
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = b"bad1"
        assert (await texts.current(path)).text == "bad1"


@pytest.mark.proves("DOC-4", "PATH-1")
async def test_a_text_is_at_hand_as_long_as_nothing_was_done_to_its_file() -> None:
    files, clock = FakeFiles(), FakeClock()
    texts = Texts(files, clock)
    assert await texts.unchanged(A) is None
    files.write(A, "one")
    assert await texts.unchanged(A) is None
    kept = await texts.text(A)
    assert await texts.unchanged(A) is kept
    files.changes += 1
    assert await texts.unchanged(A) is None
    files.write(A, "two", at=clock.now)
    await texts.text(A)
    assert await texts.unchanged(A) is None, "written so shortly before that it could be written again unseen"
    del files.contents[A]
    assert await texts.unchanged(A) is None
    assert files.reads == [A, A]


@pytest.mark.proves("DOC-4")
@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("two", LONG_AGO + 1, id="another time and size"),
        pytest.param("eno", LONG_AGO + 1, id="another time, the same size"),
        pytest.param("three", LONG_AGO, id="another size, the same time"),
    ],
)
async def test_a_changed_file_is_read_again(text: str, at: float) -> None:
    files = FakeFiles()
    files.write(A, "one")
    texts = Texts(files, FakeClock())
    await texts.current(A)
    files.write(A, text, at)
    assert (await texts.current(A)).text == text


@pytest.mark.proves("F98")
@pytest.mark.parametrize("name", ["asked.py", "other name of the same file.py"])
async def test_a_file_written_in_place_with_its_size_and_time_kept_is_read_again(tmp_path: Path, name: str) -> None:
    """As `cp -p`, `rsync --inplace` and `touch -r` leave it."""
    asked, written = tmp_path / "asked.py", tmp_path / name
    asked.write_text("fine = 1\n")
    if written != asked:
        os.link(asked, written)
    before = asked.stat()
    texts = Texts(DiskFiles(), FakeClock(time.time() + 60))
    assert (await texts.current(AbsPath(str(asked)))).text == "fine = 1\n"
    # The clock of the file system ticks every few milliseconds.
    while asked.stat().st_ctime_ns == before.st_ctime_ns:
        with written.open("r+") as file:
            file.write("fine = x\n")
        os.utime(written, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = asked.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)
    assert (await texts.current(AbsPath(str(asked)))).text == "fine = x\n"


@pytest.mark.proves("DOC-4")
async def test_a_file_read_so_soon_after_its_change_that_stat_cannot_tell_is_read_again() -> None:
    files, clock = FakeFiles(), FakeClock()
    texts = Texts(files, clock)
    files.write(A, "one", clock.now - DOUBT_SECONDS / 2)
    await texts.current(A)
    # Two writes within one tick of the file system's clock: the same time, the same size.
    files.write(A, "two", clock.now - DOUBT_SECONDS / 2)
    assert (await texts.current(A)).text == "two"


async def test_the_doubt_ends_once_a_file_is_read_well_after_its_change() -> None:
    files, clock = FakeFiles(), FakeClock()
    texts = Texts(files, clock)
    files.write(A, "one", clock.now)
    for _ in range(3):
        await texts.current(A)
        clock.now += DOUBT_SECONDS + 0.01
    assert files.reads == [A, A]


async def test_a_file_from_the_future_is_never_certain() -> None:
    files, clock = FakeFiles(), FakeClock()
    texts = Texts(files, clock)
    files.write(A, "one", clock.now + 3600)
    await texts.current(A)
    await texts.current(A)
    assert files.reads == [A, A]


async def test_a_file_that_is_gone_is_refused_and_read_afresh_when_it_comes_back() -> None:
    files = FakeFiles()
    files.write(A, "one")
    texts = Texts(files, FakeClock())
    await texts.current(A)
    del files.contents[A]
    with pytest.raises(Refused) as refused:
        await texts.current(A)
    assert refused.value.code is Code.FILE_MISSING
    files.write(A, "one")
    assert (await texts.current(A)).text == "one"
    assert files.reads == [A, A]


async def test_the_texts_used_least_recently_go_first_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "MAX_KEPT_BYTES", 25)
    files = FakeFiles()
    texts = Texts(files, FakeClock())
    for path in (A, B, C):
        files.write(path, "x" * 10)
    for path in (A, B, A, C):
        await texts.current(path)
    files.reads.clear()
    for path in (A, C, B):
        await texts.current(path)
    assert files.reads == [B]


async def test_one_text_larger_than_all_that_is_kept_is_still_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "MAX_KEPT_BYTES", 25)
    files = FakeFiles()
    texts = Texts(files, FakeClock())
    files.write(A, "x" * 100)
    await texts.current(A)
    await texts.current(A)
    assert files.reads == [A]


async def test_dropped_files_are_read_again_and_make_room() -> None:
    files = FakeFiles()
    texts = Texts(files, FakeClock())
    for path in (A, B):
        files.write(path, "text")
        await texts.current(path)
    texts.drop(lambda path: path == A)
    for path in (A, B):
        await texts.current(path)
    assert files.reads == [A, B, A]
