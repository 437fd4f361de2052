"""Opening and changing files by descriptors: what it does, and that no swap leads it out."""

import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.policy import openat as beneath
from pilotfish.policy.openat import (
    create_beneath,
    identity_of,
    make_folders_beneath,
    open_beneath,
    remove_beneath,
    rename_beneath,
    replace_beneath,
)
from support.files.folders import IN_MEMORY

WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
Act = Callable[[AbsPath], object]


def refusal(act: Callable[[], object]) -> Code:
    with pytest.raises(Refused) as refused:
        act()
    return refused.value.code


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> AbsPath:
    (tmp_path / "root/sub").mkdir(parents=True)
    (tmp_path / "root/sub/file").write_bytes(b"old")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"canary")
    return AbsPath(str(tmp_path / "root"))


@pytest.mark.proves("T29", "F57")
def test_a_replaced_file_has_the_new_content_and_keeps_its_mode(root: AbsPath) -> None:
    path = Path(root, "sub/file")
    path.chmod(0o750)
    written = replace_beneath(root, ["sub", "file"], b"new", identity_of(path.stat()))
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert written == identity_of(path.stat())
    assert names(path.parent) == ["file"]


@pytest.mark.proves("OPS-4")
def test_a_file_that_changed_since_is_not_replaced(root: AbsPath) -> None:
    path = Path(root, "sub/file")
    before = identity_of(path.stat())
    path.write_bytes(b"somebody else was here")
    assert refusal(lambda: replace_beneath(root, ["sub", "file"], b"new", before)) is Code.STALE
    assert path.read_bytes() == b"somebody else was here"
    assert names(path.parent) == ["file"]


@pytest.mark.proves("OPS-4")
def test_a_file_that_is_gone_is_not_replaced(root: AbsPath) -> None:
    path = Path(root, "sub/file")
    before = identity_of(path.stat())
    path.unlink()
    assert refusal(lambda: replace_beneath(root, ["sub", "file"], b"new", before)) is Code.STALE


@pytest.mark.proves("F57")
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: AbsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(root, "sub/file")

    def full(_descriptor: int, _content: memoryview) -> int:
        raise OSError(28, "No space left on device")

    before = identity_of(path.stat())
    monkeypatch.setattr(os, "write", full)
    assert refusal(lambda: replace_beneath(root, ["sub", "file"], b"new", before)) is Code.FILE_UNREADABLE
    assert path.read_bytes() == b"old"
    assert names(path.parent) == ["file"]


@pytest.mark.proves("T28")
def test_a_created_file_never_replaces_one(root: AbsPath) -> None:
    assert refusal(lambda: create_beneath(root, ["sub", "file"], b"new")) is Code.INVALID_INPUT
    assert Path(root, "sub/file").read_bytes() == b"old"
    create_beneath(root, ["sub", "other"], b"new")
    assert Path(root, "sub/other").read_bytes() == b"new"
    assert names(Path(root, "sub")) == ["file", "other"]


@pytest.mark.proves("T28")
def test_folders_on_the_way_are_made_and_kept(root: AbsPath) -> None:
    make_folders_beneath(root, ["sub", "deep", "er", "file"])
    make_folders_beneath(root, ["sub", "deep", "er", "file"])
    create_beneath(root, ["sub", "deep", "er", "file"], b"new")
    assert Path(root, "sub/deep/er/file").read_bytes() == b"new"


@pytest.mark.proves("T28")
def test_a_renamed_file_never_replaces_one(root: AbsPath) -> None:
    Path(root, "taken").write_bytes(b"taken")
    assert refusal(lambda: rename_beneath(root, ["sub", "file"], ["taken"])) is Code.INVALID_INPUT
    rename_beneath(root, ["sub", "file"], ["free"])
    assert Path(root, "free").read_bytes() == b"old"
    assert names(Path(root, "sub")) == []


@pytest.mark.proves("T28")
def test_a_removed_file_is_gone(root: AbsPath) -> None:
    remove_beneath(root, ["sub", "file"])
    assert names(Path(root, "sub")) == []
    assert refusal(lambda: remove_beneath(root, ["sub", "file"])) is Code.FILE_MISSING


ACTS: dict[str, Callable[[AbsPath, list[str]], object]] = {
    "open": lambda root, segments: os.close(open_beneath(root, segments, os.O_RDONLY)),
    "write": lambda root, segments: os.close(open_beneath(root, segments, WRITE)),
    "create": lambda root, segments: create_beneath(root, segments, b"new"),
    "replace": lambda root, segments: replace_beneath(
        root, segments, b"new", identity_of(os.stat(os.path.join(root, *segments)))
    ),
    "remove": remove_beneath,
    "rename from": lambda root, segments: rename_beneath(root, segments, ["stolen"]),
    "rename to": lambda root, segments: rename_beneath(root, ["sub", "file"], segments),
    "make folders": lambda root, segments: make_folders_beneath(root, [*segments, "new", "file"]),
}


@pytest.mark.proves("T28", "T29", "T30")
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
@pytest.mark.parametrize(
    "segments",
    [
        pytest.param(["..", "outside", "file"], id="a step up"),
        pytest.param(["sub", "..", "..", "outside", "file"], id="a step up on the way"),
        pytest.param(["sub/../../outside/file"], id="slashes in a name"),
        pytest.param(["sub", "/etc/hostname"], id="an absolute name"),
        pytest.param(["link", "file"], id="a link to a folder outside"),
        pytest.param(["linked"], id="a link to a file outside"),
    ],
)
def test_nothing_leads_out_of_the_root(
    root: AbsPath, act: Callable[[AbsPath, list[str]], object], segments: list[str]
) -> None:
    outside = Path(root).parent / "outside"
    Path(root, "link").symlink_to(outside)
    Path(root, "linked").symlink_to(outside / "file")
    assert refusal(lambda: act(root, segments)) in {Code.OUTSIDE_WORKSPACE, Code.INVALID_INPUT}
    assert names(outside) == ["file"]
    assert (outside / "file").read_bytes() == b"canary"
    assert "stolen" not in names(Path(root))


@pytest.mark.proves("T43")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a FIFO", "a folder"])
@pytest.mark.parametrize("act", ["open", "write", "replace", "remove", "rename from"])
def test_only_regular_files_are_touched(root: AbsPath, make: Callable[[str], None], act: str) -> None:
    make(os.path.join(root, "odd"))
    assert refusal(lambda: ACTS[act](root, ["odd"])) is Code.NOT_A_FILE


@pytest.mark.proves("F55")
def test_a_root_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    gone = AbsPath(str(tmp_path / "gone"))
    assert refusal(lambda: open_beneath(gone, ["file"], os.O_RDONLY)) is Code.ROOT_GONE


@pytest.mark.proves("T43")
def test_the_root_itself_is_not_a_file(root: AbsPath) -> None:
    assert refusal(lambda: open_beneath(root, [], os.O_RDONLY)) is Code.NOT_A_FILE


# --- Somebody swaps while we work ---------------------------------------------------------------------------------


def by_descriptor(root: AbsPath) -> None:
    os.close(open_beneath(root, ["sub", "file"], WRITE))


def by_replacing(root: AbsPath) -> None:
    replace_beneath(root, ["sub", "file"], b"new", identity_of(os.stat(os.path.join(root, "sub/file"))))


def by_creating(root: AbsPath) -> None:
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(root, "sub/new"))
    create_beneath(root, ["sub", "new"], b"new")


def by_checking_first(root: AbsPath) -> None:
    """What we do not do: it shows that the swaps below would find a way out."""
    path = os.path.realpath(os.path.join(root, "sub/file"))
    if not path.startswith(root + "/"):
        raise Refused(Code.OUTSIDE_WORKSPACE, path)
    os.close(os.open(path, WRITE))


class Swapper:
    """Swaps `root/sub` and a link to the outside, just before the `moment`th system call that takes a name."""

    def __init__(self, root: AbsPath, moment: int) -> None:
        self._root, self._left = root, moment
        os.symlink(os.path.join(root, "../outside"), os.path.join(root, "link"))

    @contextmanager
    def at_work(self, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
        with monkeypatch.context() as patch:
            for name in ("open", "stat", "replace", "link", "unlink", "readlink", "lstat"):
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
                    os.rename(os.path.join(self._root, old), os.path.join(self._root, new))
            return call(*arguments, **options)

        return wrapped


def escapes(root: AbsPath) -> bool:
    outside = Path(root).parent / "outside"
    return names(outside) != ["file"] or (outside / "file").read_bytes() != b"canary"


def swapped_at_every_moment(act: Act, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Run `act` with a swap before its first system call, before its second, and so on; did one escape?"""
    results: list[bool] = []
    for moment in range(100):
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            root = AbsPath(os.path.join(os.path.realpath(folder), "root"))
            os.makedirs(os.path.join(root, "sub"))
            os.mkdir(os.path.join(folder, "outside"))
            Path(root, "sub/file").write_bytes(b"old")
            Path(folder, "outside/file").write_bytes(b"canary")
            swapper = Swapper(root, moment)
            with swapper.at_work(monkeypatch), suppress(Refused, OSError):
                act(root)
            if not swapper.has_struck:
                return results
            results.append(escapes(root))
    raise AssertionError("more system calls than moments")


@pytest.mark.proves("T29")
@pytest.mark.parametrize("act", [by_descriptor, by_replacing, by_creating])
def test_a_swap_between_any_two_system_calls_leads_nowhere(act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    results = swapped_at_every_moment(act, monkeypatch)
    assert len(results) >= 4
    assert not any(results)


def test_the_same_swaps_lead_out_of_a_check_before_an_open(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(swapped_at_every_moment(by_checking_first, monkeypatch))


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
def racing(root: AbsPath) -> Generator[None]:
    """Another process that swaps `root/sub` and a link to the outside as fast as it can."""
    os.symlink("../outside", os.path.join(root, "link"))
    with subprocess.Popen([sys.executable, "-c", SWAP_FOR_EVER, root], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


@pytest.mark.proves("T29", "P33")
def test_a_racing_swap_gets_no_escape(request: pytest.FixtureRequest) -> None:
    attempts = request.config.getoption("--race")
    assert isinstance(attempts, int)
    outcomes = {"written": 0, "refused": 0}
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        root = AbsPath(os.path.join(os.path.realpath(folder), "root"))
        os.makedirs(os.path.join(root, "sub"))
        os.mkdir(os.path.join(folder, "outside"))
        Path(root, "sub/file").write_bytes(b"old")
        Path(folder, "outside/file").write_bytes(b"canary")
        acts = (by_descriptor, by_replacing, by_creating)
        with racing(root):
            for attempt in range(attempts):
                try:
                    acts[attempt % 3](root)
                except (Refused, OSError):
                    outcomes["refused"] += 1
                else:
                    outcomes["written"] += 1
        assert names(Path(folder, "outside")) == ["file"]
        assert Path(folder, "outside/file").read_bytes() == b"canary"
    assert min(outcomes.values()) > 0, outcomes


def test_folders_on_the_way_need_not_be_readable() -> None:
    assert getattr(os, "O_PATH", 0) & beneath.STEP_FLAGS == getattr(os, "O_PATH", 0)
