"""Opening files by descriptors: what is opened, and that nothing leads out of the root.

`tests/service/test_apply_races.py` swaps folders for links while files are read and written.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.policy import openat
from pilotfish.policy.openat import drop_name, give_name, open_beneath, parent_of, write_all


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


def test_a_file_below_the_root_is_opened_for_reading(root: AbsPath) -> None:
    with os.fdopen(open_beneath(root, ["sub", "file"]), "rb") as opened:
        assert opened.read() == b"old"
        assert not opened.writable()


def follow(root: AbsPath, segments: list[str]) -> None:
    with parent_of(root, segments) as (folder, name):
        os.close(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder))


@pytest.mark.proves("T28", "T29", "T30")
@pytest.mark.parametrize(
    "segments",
    [
        pytest.param(["..", "outside", "file"], id="a step up"),
        pytest.param(["sub", "..", "..", "outside", "file"], id="a step up on the way"),
        pytest.param(["sub/../../outside/file"], id="slashes in a name"),
        pytest.param(["sub", "/etc/hostname"], id="an absolute name"),
        pytest.param(["sub", "fi\0le"], id="a NUL in a name"),
        pytest.param(["link", "file"], id="a link to a folder outside"),
        pytest.param(["linked"], id="a link to a file outside"),
    ],
)
def test_nothing_leads_out_of_the_root(root: AbsPath, segments: list[str]) -> None:
    outside = Path(root).parent / "outside"
    Path(root, "link").symlink_to(outside)
    Path(root, "linked").symlink_to(outside / "file")
    assert refusal(lambda: open_beneath(root, segments)) is Code.OUTSIDE_WORKSPACE
    with pytest.raises((Refused, OSError)):
        follow(root, segments)


@pytest.mark.proves("T43", "A17.1")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a FIFO", "a folder"])
def test_only_regular_files_are_opened(root: AbsPath, make: Callable[[str], None]) -> None:
    make(os.path.join(root, "odd"))
    assert refusal(lambda: open_beneath(root, ["odd"])) is Code.NOT_A_FILE


def test_a_file_on_the_way_is_no_folder(root: AbsPath) -> None:
    assert refusal(lambda: open_beneath(root, ["sub", "file", "more"])) is Code.FILE_MISSING


@pytest.mark.proves("T29")
def test_a_link_that_is_a_folder_again_when_it_is_looked_at_was_still_a_link(
    root: AbsPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a missing file: nobody may conclude that nothing is to be tidied up there."""
    link = Path(root, "link")
    link.symlink_to("../outside")
    status_of = openat.status_of

    def swap_and_look(folder: int, name: str) -> os.stat_result | None:
        link.unlink()
        link.mkdir()
        return status_of(folder, name)

    monkeypatch.setattr(openat, "status_of", swap_and_look)
    assert refusal(lambda: open_beneath(root, ["link", "file"])) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("F55")
def test_a_root_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    gone = AbsPath(str(tmp_path / "gone"))
    assert refusal(lambda: open_beneath(gone, ["file"])) is Code.ROOT_GONE


@pytest.mark.proves("T43")
def test_the_root_itself_is_not_a_file(root: AbsPath) -> None:
    assert refusal(lambda: open_beneath(root, [])) is Code.NOT_A_FILE


@pytest.mark.linux("there is no O_PATH elsewhere")
def test_folders_on_the_way_need_not_be_readable() -> None:
    assert getattr(os, "O_PATH", 0) & openat.STEP_FLAGS == getattr(os, "O_PATH", 0)


@pytest.mark.proves("T28")
@pytest.mark.parametrize("has_links", [True, False])
def test_a_name_that_is_taken_is_never_given_to_another_file(
    root: AbsPath, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def no_links(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    Path(root, "sub/taken").write_bytes(b"taken")
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    with parent_of(root, ["sub", "file"]) as (folder, file):
        with pytest.raises(FileExistsError):
            give_name(folder, file, "taken")
        give_name(folder, file, "free")
        drop_name(folder, file)
        drop_name(folder, file)
    assert names(Path(root, "sub")) == ["free", "taken"]
    assert Path(root, "sub/taken").read_bytes() == b"taken"
    assert Path(root, "sub/free").read_bytes() == b"old"


def test_all_is_written_in_however_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def write_a_part(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[:3])

    monkeypatch.setattr(os, "write", write_a_part)
    with (tmp_path / "file").open("wb") as opened:
        write_all(opened.fileno(), b"more than three")
    assert (tmp_path / "file").read_bytes() == b"more than three"
