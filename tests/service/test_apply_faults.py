"""Writing files all or none: every fault at every step, and what the next start makes of it."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pilotfish.errors import Failure, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import Staged
from pilotfish.service.changes import transaction
from pilotfish.service.changes.journal import Ready
from pilotfish.service.changes.transaction import Recovery, perform, recover
from support.files.faulty import Faults, Killed, error, full_disk, gone_bad, injected, kill
from support.files.folders import IN_MEMORY
from support.values.edits import Written, contents, created, deleted, edited, left_in, renamed, staged, text_edit, write

Files = dict[str, tuple[bytes, int]]

OPEN = os.open
"""As it is where faults are injected."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> AbsPath:
    return AbsPath(str(tmp_path / "state" / "journal"))


OLD: Written = {
    "a.py": (b"a = 1\n", 0o755),
    "pkg/b.py": b"\xef\xbb\xbfb = 1\r\n",
    "pkg/c.py": b"c",
    "pkg/data.bin": b"\0\1\2",
}


def edits(root: Path) -> Staged:
    change = text_edit(0, 0, 1, "changed")
    return staged(root, *(edited(root, name, change) for name in ("a.py", "pkg/b.py", "pkg/c.py")))


def moves(root: Path) -> Staged:
    return staged(
        root,
        edited(root, "a.py", text_edit(0, 0, 1, "changed")),
        renamed(root, "a.py", "new/a.py"),
        renamed(root, "pkg/data.bin", "new/data.bin"),
        deleted(root, "pkg/c.py"),
    )


def everything(root: Path) -> Staged:
    return staged(
        root,
        created(root, "x/y/new.py"),
        edited(root, "x/y/new.py", text_edit(0, 0, 0, "new\n")),
        renamed(root, "pkg", "lib"),
        edited(root, "lib/b.py", text_edit(0, 0, 1, "changed")),
        renamed(root, "lib/c.py", "a.py", overwrite=True),
    )


PLANS = {"edits": edits, "moves": moves, "everything": everything}
KINDS: dict[str, Callable[[int], Faults]] = {
    "killed": kill,
    "ENOSPC": lambda at: error(errno.ENOSPC, at),
    "EACCES": lambda at: error(errno.EACCES, at),
    "full from then on": full_disk,
    "broken from then on": gone_bad,
}


class Arena:
    """A workspace in memory; `old` and `new` are the only two states that anybody may ever see."""

    def __init__(self, plan: Callable[[Path], Staged]) -> None:
        self._plan = plan
        self._folder = Path()

    def made(self, folder: Path) -> "Arena":
        self._folder = folder
        self.root.mkdir()
        write(self.root, OLD)
        self.changes = self._plan(self.root)
        return self

    @property
    def root(self) -> Path:
        return self._folder / "root"

    @property
    def home(self) -> AbsPath:
        return AbsPath(str(self._folder / "journal"))

    def states(self) -> tuple[Files, Files, int]:
        """Before, after, and how many steps lie between."""
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            self.made(Path(folder))
            old = contents(self.root)
            with injected(kill(None)) as counted:
                perform(self.changes, self.home)
            return old, contents(self.root), len(counted.calls)


@pytest.mark.proves("P23", "P24", "F57", "F58", "C105", "OPS-4")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_at_any_step_leaves_anything_half_done(kind: str, plan: Callable[[Path], Staged]) -> None:
    """Old or new after whatever fault, at the latest after the next start; and no name or journal is left."""
    arena = Arena(plan)
    old, new, steps = arena.states()
    for at in range(steps):
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            arena.made(Path(folder))
            outcome = attempt(arena, KINDS[kind](at))
            if kind in {"ENOSPC", "EACCES", "full from then on"} and not isinstance(outcome, Unavailable):
                wanted = old if isinstance(outcome, Failure) else new
                assert visible(contents(arena.root)) == wanted, f"{kind} at {at}: {outcome!r}"
            recovery = recover(arena.home)
            after = contents(arena.root)
            assert after in (old, new), f"{kind} at {at}: {outcome!r}, {recovery}"
            assert after == new or outcome is not None, f"{kind} at {at}: it was said to be done"
            assert left_in(arena.home) == []
            assert recover(arena.home) == Recovery()


@pytest.mark.proves("P23")
def test_that_is_more_than_a_thousand_faults() -> None:
    assert sum(Arena(plan).states()[2] for plan in PLANS.values()) * len(KINDS) > 1_000


def visible(files: Files) -> Files:
    """Without what a later start tidies up: hidden names, and folders that are empty now."""
    return {name: file for name, file in files.items() if ".pilotfish-" not in name and not name.endswith("/")}


def attempt(arena: Arena, faults: Faults) -> BaseException | None:
    with injected(faults):
        try:
            perform(arena.changes, arena.home)
        except (Failure, Killed) as outcome:
            return outcome
    return None


@pytest.mark.proves("P23", "C106")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_file_system_without_links_is_left_as_whole(
    plan: Callable[[Path], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a file is missing for an instant, between two renames: the next start puts it back."""

    def no_links(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    arena = Arena(plan)
    old, new, steps = arena.states()
    for kind in ("killed", "full from then on"):
        for at in range(steps):
            with TemporaryDirectory(dir=IN_MEMORY) as folder:
                arena.made(Path(folder))
                attempt(arena, KINDS[kind](at))
                recover(arena.home)
                assert contents(arena.root) in (old, new), f"{kind} at {at}"
                assert left_in(arena.home) == []


def numbered(name: str, new: str, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool) -> None:
    """A second name as sshfs gives it: the same content and time, and another number."""
    assert not follow_symlinks
    reading, found = OPEN(name, os.O_RDONLY, dir_fd=src_dir_fd), os.stat(name, dir_fd=src_dir_fd)
    writing = OPEN(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=dst_dir_fd)
    with os.fdopen(reading, "rb") as old, os.fdopen(writing, "wb") as copy:
        copy.write(old.read())
    os.chmod(new, found.st_mode, dir_fd=dst_dir_fd)
    os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=dst_dir_fd)


@pytest.mark.proves("P23")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_file_system_that_numbers_names_is_written_and_left_as_whole(
    plan: Callable[[Path], Staged], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", numbered)
    arena = Arena(plan)
    old, new, steps = arena.states()
    assert new != old
    for at in range(0, steps, 3):
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            arena.made(Path(folder))
            attempt(arena, kill(at))
            recover(arena.home)
            assert contents(arena.root) in (old, new), f"killed at {at}"
            assert left_in(arena.home) == []


@pytest.mark.proves("P23")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_process_that_is_really_killed_leaves_nothing_half_done(plan: Callable[[Path], Staged]) -> None:
    """The same with the end of a real process: its lock goes with it, and nothing else does anything for it."""
    arena = Arena(plan)
    old, new, steps = arena.states()
    for at in range(0, steps, 7):
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            arena.made(Path(folder))
            child = os.fork()
            if child == 0:
                with injected(Faults(at, lambda: os._exit(9), lambda name: False)):
                    perform(arena.changes, arena.home)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
            recover(arena.home)
            assert contents(arena.root) in (old, new)
            assert left_in(arena.home) == []


@pytest.mark.proves("P23")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_recovery_that_is_killed_is_taken_up_by_the_next(plan: Callable[[Path], Staged]) -> None:
    arena = Arena(plan)
    old, new, steps = arena.states()
    for at in range(steps // 2, steps, 5):
        for again in range(0, 60, 11):
            with TemporaryDirectory(dir=IN_MEMORY) as folder:
                arena.made(Path(folder))
                attempt(arena, kill(at))
                with injected(kill(again)), suppress(Killed):
                    recover(arena.home)
                recover(arena.home)
                assert contents(arena.root) in (old, new), f"killed at {at} and {again}"
                assert left_in(arena.home) == []


def second_rename() -> int:
    """The step at which one of the files of `edits` is new, and the others are old."""
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        arena = Arena(edits).made(Path(folder))
        with injected(kill(None)) as counted:
            perform(arena.changes, arena.home)
    return [number for number, name in enumerate(counted.calls) if name == "replace"][1]


@pytest.mark.proves("P24", "F58")
def test_what_cannot_even_be_put_back_is_named(root: Path, home: AbsPath) -> None:
    write(root, OLD)
    old, changes = contents(root), edits(root)
    with injected(gone_bad(second_rename())), pytest.raises(Unavailable) as failed:
        perform(changes, home)
    assert failed.value.message.partition("Changed files: ")[2] == f"{root}/a.py"
    assert (root / "a.py").read_bytes() == b"changed = 1\n"
    assert recover(home) == Recovery(undone=1)
    assert contents(root) == old


# --- Recovery -------------------------------------------------------------------------------------------------------


def half_done(root: Path, home: AbsPath) -> None:
    """Killed when `a.py` was new and the others were old."""
    write(root, OLD)
    changes = edits(root)
    with injected(kill(second_rename())), pytest.raises(Killed):
        perform(changes, home)
    assert (root / "a.py").read_bytes() == b"changed = 1\n"
    assert (root / "pkg/c.py").read_bytes() == b"c"


@pytest.mark.proves("T37")
def test_what_we_wrote_is_put_back_where_a_disk_numbers_its_files_anew(root: Path, home: AbsPath) -> None:
    half_done(root, home)
    found = (root / "a.py").stat()
    copy = root / "copy"
    copy.write_bytes((root / "a.py").read_bytes())
    copy.chmod(found.st_mode)
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
    copy.replace(root / "a.py")
    assert recover(home) == Recovery(undone=1)
    assert contents(root)["a.py"] == (b"a = 1\n", 0o755)


@pytest.mark.proves("T37")
def test_what_somebody_else_has_written_since_is_left_as_it_is(root: Path, home: AbsPath) -> None:
    half_done(root, home)
    (root / "a.py").write_bytes(b"theirs\n")
    assert recover(home) == Recovery(undone=1, left=(f"{root}/a.py",))
    found = {name: content for name, (content, _) in contents(root).items()}
    assert found == {
        "a.py": b"theirs\n",
        "pkg/b.py": b"\xef\xbb\xbfb = 1\r\n",
        "pkg/c.py": b"c",
        "pkg/data.bin": b"\0\1\2",
    }


@pytest.mark.proves("F55")
def test_another_folder_in_place_of_the_root_is_none_of_ours(root: Path, home: AbsPath, tmp_path: Path) -> None:
    half_done(root, home)
    root.rename(tmp_path / "elsewhere")
    write(root, {"a.py": b"changed = 1\n"})
    recover(home)
    assert contents(root) == {"a.py": (b"changed = 1\n", 0o644)}


@pytest.mark.proves("F55")
def test_a_root_that_is_not_there_now_is_recovered_when_it_is_back(root: Path, home: AbsPath, tmp_path: Path) -> None:
    half_done(root, home)
    root.rename(tmp_path / "unmounted")
    assert recover(home) == Recovery()
    (tmp_path / "unmounted").rename(root)
    assert recover(home) == Recovery(undone=1)
    assert (root / "a.py").read_bytes() == b"a = 1\n"


@pytest.mark.proves("T29")
def test_recovery_is_not_led_out_by_a_link(root: Path, home: AbsPath, tmp_path: Path) -> None:
    half_done(root, home)
    (root / "pkg").rename(tmp_path / "outside")
    (root / "pkg").symlink_to(tmp_path / "outside")
    before = contents(tmp_path / "outside")
    recover(home)
    assert contents(tmp_path / "outside") == before
    assert (root / "a.py").read_bytes() == b"a = 1\n"


@pytest.mark.proves("C60")
def test_a_transaction_that_is_under_way_is_nobody_elses_to_undo(
    root: Path, home: AbsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process starts in the middle: it sees the lock."""
    seen: list[Recovery] = []
    original = transaction.Writing.commit

    def commit(self: transaction.Writing, ready: Ready) -> None:
        original(self, ready)
        seen.append(recover(home))

    monkeypatch.setattr(transaction.Writing, "commit", commit)
    write(root, OLD)
    perform(edits(root), home)
    assert seen == [Recovery()]
    assert (root / "pkg/c.py").read_bytes() == b"changed"


def test_a_journal_that_nobody_can_read_stays_and_harms_nobody(home: AbsPath) -> None:
    strange = Path(home, "0" * 16)
    strange.mkdir(parents=True)
    (strange / "plan").write_bytes(b"{}")
    assert recover(home) == Recovery()
    assert (strange / "plan").exists()


def test_recovery_without_a_journal_is_nothing(home: AbsPath) -> None:
    assert recover(home) == Recovery()
    assert not os.path.exists(home)


@pytest.mark.proves("F45")
def test_a_name_that_is_no_text_is_put_back(root: Path, home: AbsPath) -> None:
    name = os.fsdecode(b"\xff.py")
    write(root, {name: b"a\n", "pkg/b.py": b"b\n", "pkg/c.py": b"c"})
    old = contents(root)
    change = text_edit(0, 0, 1, "changed")
    changes = staged(root, *(edited(root, file, change) for file in (name, "pkg/b.py", "pkg/c.py")))
    with injected(kill(second_rename())), pytest.raises(Killed):
        perform(changes, home)
    assert (root / name).read_bytes() == b"changed\n"
    assert recover(home) == Recovery(undone=1)
    assert contents(root) == old
