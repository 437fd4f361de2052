"""Another process swaps folders for links while we read and write: what we touch lies below the root (T29, P33).

The functions are those that the product reads and writes with: staging an edit, and performing it.
"""

import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import Regular
from pilotfish.policy.boundary import boundary_of
from pilotfish.service.changes.disk import DiskNow
from pilotfish.service.changes.transaction import perform, recover
from pilotfish.system.files import DiskFiles
from support.files.folders import IN_MEMORY
from support.values.edits import created, deleted, edited, left_in, renamed, staged, text_edit

Act = Callable[["Arena"], object]


class Arena:
    """A workspace in memory, and a folder beside it that nothing may touch."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.outside = folder / "outside"
        self.home = AbsPath(str(folder / "journal"))
        self.turn = 0
        (self.root / "sub").mkdir(parents=True)
        self.outside.mkdir()
        (self.root / "sub/file").write_bytes(b"old\n")
        (self.outside / "file").write_bytes(b"canary\n")

    @property
    def is_escaped(self) -> bool:
        return [path.name for path in self.outside.iterdir()] != ["file"] or self._canary != b"canary\n"

    @property
    def _canary(self) -> bytes:
        return (self.outside / "file").read_bytes()

    def apply(self, *changes: dict[str, object]) -> None:
        perform(staged(self.root, *changes), self.home)


@contextmanager
def arena() -> Generator[Arena]:
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        yield Arena(Path(os.path.realpath(folder)))


def reading(place: Arena) -> None:
    disk = DiskNow(boundary_of(str(place.root)), DiskFiles())
    file = disk.at(AbsPath(str(place.root / "sub/file")))
    if not isinstance(file, Regular):
        raise Refused(Code.FILE_MISSING, "swapped")
    assert "canary" not in disk.read(file)[0]


def editing(place: Arena) -> None:
    place.turn += 1
    place.apply(edited(place.root, "sub/file", text_edit(0, 0, 1, str(place.turn % 10))))


def creating(place: Arena) -> None:
    place.apply(created(place.root, "sub/new"), edited(place.root, "sub/new", text_edit(0, 0, 0, "new")))


def moving(place: Arena) -> None:
    place.apply(renamed(place.root, "sub/new", "sub/moved", overwrite=True))


def deleting(place: Arena) -> None:
    place.apply(deleted(place.root, "sub/moved"))


def moving_the_old_file(place: Arena) -> None:
    place.apply(renamed(place.root, "sub/file", "moved"))


def deleting_the_old_file(place: Arena) -> None:
    place.apply(deleted(place.root, "sub/file"))


def checking_first(place: Arena) -> None:
    """What we do not do: it shows that the swaps below would find a way out."""
    path = os.path.realpath(place.root / "sub/file")
    if not path.startswith(f"{place.root}/"):
        raise Refused(Code.OUTSIDE_WORKSPACE, path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


class Swapper:
    """Swaps `root/sub` and a link to the outside, just before the `moment`th system call that takes a name."""

    def __init__(self, place: Arena, moment: int) -> None:
        self._root, self._left = place.root, moment
        os.symlink(place.outside, place.root / "link")

    @contextmanager
    def at_work(self, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
        with monkeypatch.context() as patch:
            for name in ("open", "stat", "replace", "rename", "link", "unlink", "readlink", "lstat", "mkdir", "rmdir"):
                patch.setattr(os, name, self._then(getattr(os, name)))
            yield

    @property
    def has_struck(self) -> bool:
        return self._left < 0

    def _then(self, call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object, **options: object) -> object:
            self._left -= 1
            if self._left == -1:
                for old, new in (("sub", "kept"), ("link", "sub")):
                    os.rename(self._root / old, self._root / new)
            return call(*arguments, **options)

        return wrapped


def swapped_at_every_moment(act: Act, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Run `act` with a swap before its first system call, before its second, and so on; did one escape?"""
    results: list[bool] = []
    for moment in range(1000):
        with arena() as place:
            swapper = Swapper(place, moment)
            with swapper.at_work(monkeypatch), suppress(Failure, OSError):
                act(place)
            if not swapper.has_struck:
                return results
            results.append(place.is_escaped)
    raise AssertionError("more system calls than moments")


@pytest.mark.proves("T29", "P33")
@pytest.mark.parametrize("act", [reading, editing, creating, moving_the_old_file, deleting_the_old_file])
def test_a_swap_between_any_two_system_calls_leads_nowhere(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    results = swapped_at_every_moment(act, monkeypatch)
    assert len(results) >= 8
    assert not any(results)


def test_the_same_swaps_lead_out_of_a_check_before_an_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(swapped_at_every_moment(checking_first, monkeypatch))


SWAP_FOR_EVER = textwrap.dedent(
    """
    import ctypes, os, sys
    os.chdir(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    parent = os.getppid()
    print("swapping", flush=True)
    while os.getppid() == parent:
        for _ in range(1000):
            if exchange:
                exchange(-100, b"sub", -100, b"link", 2)
            else:
                os.rename("sub", "spare"); os.rename("link", "sub"); os.rename("spare", "link")
    """
)


@contextmanager
def swapping(place: Arena) -> Generator[None]:
    """Another process that swaps `root/sub` and a link to the outside as fast as it can."""
    os.symlink("../outside", place.root / "link")
    with subprocess.Popen([sys.executable, "-c", SWAP_FOR_EVER, place.root], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def swap(place: Arena) -> None:
    for old, new in (("sub", "spare"), ("link", "sub"), ("spare", "link")):
        os.rename(place.root / old, place.root / new)


@pytest.mark.proves("T29", "P33", "A17.18")
def test_a_racing_swap_gets_no_escape(request: pytest.FixtureRequest) -> None:
    attempts = request.config.getoption("--race")
    assert isinstance(attempts, int)
    acts: list[Act] = [reading, editing, creating, moving, deleting]
    done, refused = Counter[str](), Counter[str]()
    with arena() as place:
        with swapping(place):
            # On a quiet machine the swaps may be so fast that few acts succeed at first.
            for attempt in range(50 * attempts):
                act = acts[attempt % len(acts)]
                if attempt >= attempts and all(done[one.__name__] and refused[one.__name__] for one in acts):
                    break
                try:
                    act(place)
                except (Failure, OSError):
                    refused[act.__name__] += 1
                else:
                    done[act.__name__] += 1
        assert not place.is_escaped
        # A path may have been resolved while the folder had either name.
        for _ in range(2):
            recover(place.home)
            swap(place)
        folder = place.root / ("link" if (place.root / "sub").is_symlink() else "sub")
        hidden = {path.name for path in folder.iterdir()} - {"file", "new", "moved"}
        # A move between the two names cannot be undone while one of them is a link: its journal stays, too.
        assert {name.split("-")[1] for name in hidden} <= set(left_in(place.home))
        assert not place.is_escaped
    print(f"done {dict(done)} refused {dict(refused)}")
    assert min(done[act.__name__] for act in acts) > 0, done
    assert min(refused[act.__name__] for act in acts) > 0, refused
