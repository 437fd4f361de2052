"""Writing files all or none: what is kept, and what happens when somebody else writes."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import Staged
from pilotfish.service.changes import transaction
from pilotfish.service.changes.journal import Ready
from pilotfish.service.changes.transaction import Recovery, perform, recover
from support.values.edits import contents, created, deleted, edited, left_in, renamed, staged, text_edit, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> AbsPath:
    return AbsPath(str(tmp_path / "state" / "journal"))


# --- What is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("C106", "OPS-4", "F49", "F50", "A17.19")
@pytest.mark.parametrize(
    ("before", "mode", "edit", "after"),
    [
        pytest.param(b"x = 1\n", 0o644, (0, 0, 1, "y"), b"y = 1\n", id="plain"),
        pytest.param(b"x = 1\r\ny = 2\r\n", 0o644, (1, 0, 1, "z\nw"), b"x = 1\r\nz\r\nw = 2\r\n", id="CRLF"),
        pytest.param(b"\xef\xbb\xbfx = 1\r\n", 0o644, (0, 0, 1, "y"), b"\xef\xbb\xbfy = 1\r\n", id="byte-order mark"),
        pytest.param(
            b"#!/bin/sh\necho x", 0o755, (1, 5, 6, "y"), b"#!/bin/sh\necho y", id="executable, no last line end"
        ),
        pytest.param(
            b"x = 1\r\ny = 2\n", 0o600, (1, 0, 1, "z\n"), b"x = 1\r\nz\n = 2\n", id="mixed line ends, private"
        ),
        pytest.param("s = '👩‍👩‍👧é'; x\n".encode(), 0o664, (0, 17, 18, "y"), "s = '👩‍👩‍👧é'; y\n".encode(), id="emoji"),
        pytest.param(b"x", 0o4755, (0, 0, 1, ""), b"", id="emptied, with a special mode"),
    ],
)
def test_a_file_keeps_all_that_the_edit_does_not_change(
    root: Path, home: AbsPath, before: bytes, mode: int, edit: tuple[int, int, int, str], after: bytes
) -> None:
    write(root, {"a.py": (before, mode), "other.py": b"o"})
    perform(staged(root, edited(root, "a.py", text_edit(*edit))), home)
    assert contents(root) == {"a.py": (after, mode), "other.py": (b"o", 0o644)}
    assert left_in(home) == []


@pytest.mark.proves("C104")
def test_file_operations_are_done_as_one(root: Path, home: AbsPath) -> None:
    write(root, {"a.py": (b"a\n", 0o755), "b.py": b"b\n", "c.py": b"c\n", "d/e/f.py": b"f\n", "d/g.bin": b"\0\xff"})
    perform(
        staged(
            root,
            edited(root, "a.py", text_edit(0, 0, 1, "A")),
            renamed(root, "a.py", "new/deep/a.py"),
            edited(root, "new/deep/a.py", text_edit(0, 1, 1, "!")),
            deleted(root, "b.py"),
            created(root, "h.py"),
            edited(root, "h.py", text_edit(0, 0, 0, "h\n")),
            renamed(root, "d", "moved"),
            edited(root, "moved/e/f.py", text_edit(0, 0, 1, "F")),
            renamed(root, "c.py", "b.py"),
        ),
        home,
    )
    assert contents(root) == {
        "new/deep/a.py": (b"A!\n", 0o755),
        "b.py": (b"c\n", 0o644),
        "h.py": (b"h\n", 0o666 & ~umask()),
        "moved/e/f.py": (b"F\n", 0o644),
        "moved/g.bin": (b"\0\xff", 0o644),
    }


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.proves("OPS-3")
def test_a_file_that_only_moves_is_the_same_file(root: Path, home: AbsPath) -> None:
    write(root, {"a.bin": (b"\0" * 10, 0o640)})
    before = (root / "a.bin").stat()
    perform(staged(root, renamed(root, "a.bin", "sub/b.bin")), home)
    after = (root / "sub/b.bin").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode, after.st_nlink) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_mode,
        1,
    )


def test_an_edit_that_changes_nothing_writes_nothing(root: Path, home: AbsPath) -> None:
    write(root, {"a.py": b"x\n"})
    before = (root / "a.py").stat()
    perform(staged(root, edited(root, "a.py", text_edit(0, 0, 1, "x"))), home)
    assert (root / "a.py").stat() == before
    assert not os.path.exists(home)


@pytest.mark.proves("C106")
def test_a_file_system_without_links_gets_copies(root: Path, home: AbsPath, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    write(root, {"a.py": (b"a\n", 0o755), "b.py": b"b\n"})
    changes = staged(
        root,
        edited(root, "a.py", text_edit(0, 0, 1, "A")),
        renamed(root, "b.py", "c.py"),
        created(root, "d.py"),
    )
    monkeypatch.setattr(os, "link", no_links)
    perform(changes, home)
    files = {name: content for name, (content, _) in contents(root).items()}
    assert files == {"a.py": b"A\n", "c.py": b"b\n", "d.py": b""}
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o755


@pytest.mark.proves("T37")
def test_the_journal_is_private(root: Path, home: AbsPath, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    original = transaction.Writing.prepare

    def prepare(self: transaction.Writing, what: Staged) -> Ready:
        for folder, _, names in os.walk(home):
            modes.extend(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in (".", *names))
        return original(self, what)

    monkeypatch.setattr(transaction.Writing, "prepare", prepare)
    write(root, {"a.py": b"x\n"})
    perform(staged(root, edited(root, "a.py", text_edit(0, 0, 1, "y"))), home)
    assert modes == [0o700, 0o700, 0o600]


# --- Somebody else writes -------------------------------------------------------------------------------------------


def replaced(path: Path) -> None:
    other = path.with_name("theirs")
    other.write_bytes(b"theirs\n")
    other.replace(path)


def written_into(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"theirs\n")
        file.truncate()


@pytest.mark.proves("C60", "C106", "F76", "OPS-4")
@pytest.mark.parametrize("act", [replaced, written_into, Path.unlink], ids=["replaced", "written into", "deleted"])
@pytest.mark.parametrize("moment", ["before", "prepared"])
def test_a_file_that_somebody_else_changes_stops_the_whole(
    root: Path, home: AbsPath, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None], moment: str
) -> None:
    """Whoever writes at whatever moment, what they wrote is there in the end, and nothing of ours."""
    original = transaction.Writing.prepare

    def prepare(self: transaction.Writing, what: Staged) -> Ready:
        ready = original(self, what)
        act(root / "b.py")
        return ready

    write(root, {"a.py": b"a\n", "b.py": b"b\n"})
    change = text_edit(0, 0, 1, "ours")
    changes = staged(root, edited(root, "a.py", change), edited(root, "b.py", change))
    if moment == "before":
        act(root / "b.py")
    else:
        monkeypatch.setattr(transaction.Writing, "prepare", prepare)
    with pytest.raises(Refused) as refused:
        perform(changes, home)
    assert refused.value.code in {Code.STALE, Code.FILE_MISSING}
    kept = {name: content for name, (content, _) in contents(root).items()}
    assert kept == {"a.py": b"a\n"} | ({} if act is Path.unlink else {"b.py": b"theirs\n"})
    assert left_in(home) == []


@pytest.mark.proves("C60", "T37")
def test_what_is_written_into_the_old_file_at_the_last_moment_is_not_lost(
    root: Path, home: AbsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor holds the old file open, and writes into it when the name is already that of the new one."""
    write(root, {"a.py": b"a\n", "b.py": b"b\n"})
    change = text_edit(0, 0, 1, "ours")
    changes = staged(root, edited(root, "a.py", change), edited(root, "b.py", change))
    renames = os.replace
    with (root / "b.py").open("r+b", buffering=0) as held:

        def replace(*arguments: Any, **options: Any) -> None:
            renames(*arguments, **options)
            if arguments[1] == "b.py" and held.tell() == 0:
                held.write(b"theirs\n")

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(Refused) as refused:
            perform(changes, home)
    assert refused.value.code is Code.STALE
    assert contents(root) == {"a.py": (b"a\n", 0o644), "b.py": (b"theirs\n", 0o644)}
    assert left_in(home) == []


@pytest.mark.proves("C60")
def test_a_name_that_is_taken_meanwhile_stops_the_whole(root: Path, home: AbsPath) -> None:
    write(root, {"a.py": b"a\n"})
    changes = staged(root, edited(root, "a.py", text_edit(0, 0, 1, "A")), created(root, "new.py"))
    write(root, {"new.py": b"theirs\n"})
    with pytest.raises(Refused):
        perform(changes, home)
    assert contents(root) == {"a.py": (b"a\n", 0o644), "new.py": (b"theirs\n", 0o644)}


@pytest.mark.proves("T29", "A17.18")
@pytest.mark.parametrize("name", ["pkg/b.py", "pkg/new.py"])
def test_a_folder_swapped_for_a_link_leads_nobody_out(root: Path, home: AbsPath, tmp_path: Path, name: str) -> None:
    write(root, {"a.py": b"a\n", "pkg/b.py": b"b\n"})
    write(tmp_path / "outside", {"b.py": b"secret\n"})
    change = text_edit(0, 0, 1, "x")
    last = edited(root, name, change) if name == "pkg/b.py" else created(root, name)
    changes = staged(root, edited(root, "a.py", change), last)
    (root / "pkg").rename(root / "was")
    (root / "pkg").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused) as refused:
        perform(changes, home)
    assert refused.value.code is Code.OUTSIDE_WORKSPACE
    assert contents(tmp_path / "outside") == {"b.py": (b"secret\n", 0o644)}
    assert (root / "a.py").read_bytes() == b"a\n"
    assert left_in(home) == []


@pytest.mark.proves("T29")
def test_a_folder_swapped_for_a_link_at_the_last_moment_leads_nobody_out_either(
    root: Path, home: AbsPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it cannot even be tidied up, until the folder is back."""
    write(root, {"a.py": b"a\n", "pkg/b.py": b"b\n"})
    write(tmp_path / "outside", {"b.py": b"secret\n"})
    old = contents(root)
    original = transaction.Writing.prepare

    def prepare(self: transaction.Writing, what: Staged) -> Ready:
        ready = original(self, what)
        (root / "pkg").rename(root / "was")
        (root / "pkg").symlink_to(tmp_path / "outside")
        return ready

    monkeypatch.setattr(transaction.Writing, "prepare", prepare)
    change = text_edit(0, 0, 1, "x")
    changes = staged(root, edited(root, "a.py", change), edited(root, "pkg/b.py", change))
    with pytest.raises(Unavailable):
        perform(changes, home)
    assert contents(tmp_path / "outside") == {"b.py": (b"secret\n", 0o644)}
    assert (root / "a.py").read_bytes() == b"a\n"
    (root / "pkg").unlink()
    (root / "was").rename(root / "pkg")
    assert recover(home) == Recovery(undone=1)
    assert contents(root) == old
