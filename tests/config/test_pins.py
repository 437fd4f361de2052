"""The records of what was approved: private, whole, believed only when nobody else could have made them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.config import trust
from pilotfish.config.trust import BadPin, Pin, pin_file, read_pin, read_pins, remove_pin, write_pin
from pilotfish.model import AbsPath

pytestmark = pytest.mark.proves("T15")

ROOT = AbsPath("/code/a")


def pin(path: str = ROOT, digest: str = "sha256:1") -> Pin:
    return Pin(path, 1, 2, "born 3", digest, ".pilotfish/lsp.json", {"x": {"command": ["a"]}}, {"./run": "ff"})


@pytest.fixture
def folder(tmp_path: Path) -> AbsPath:
    return AbsPath(str(tmp_path / "state" / "trust"))


def test_a_record_comes_back_as_it_was_written(folder: AbsPath) -> None:
    assert read_pin(folder, ROOT) is None
    write_pin(folder, pin())
    assert read_pin(folder, ROOT) == pin()
    write_pin(folder, pin(digest="sha256:2"))
    assert read_pin(folder, ROOT) == pin(digest="sha256:2")
    assert remove_pin(folder, ROOT)
    assert not remove_pin(folder, ROOT)
    assert read_pin(folder, ROOT) is None


def test_a_path_that_is_not_text_is_kept(folder: AbsPath) -> None:
    odd = AbsPath(os.fsdecode(b"/code/\xff"))
    write_pin(folder, pin(odd))
    assert read_pin(folder, odd) == pin(odd)


def test_records_are_private_from_the_first_byte(folder: AbsPath) -> None:
    before = os.umask(0)
    try:
        write_pin(folder, pin())
    finally:
        os.umask(before)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(pin_file(folder, ROOT)).st_mode & 0o777 == 0o600
    assert os.listdir(folder) == [os.path.basename(pin_file(folder, ROOT))]


def loosen(path: str) -> None:
    os.chmod(path, 0o644)


def loosen_folder(path: str) -> None:
    os.chmod(os.path.dirname(path), 0o755)


def link(path: str) -> None:
    os.rename(path, path + ".real")
    os.symlink(path + ".real", path)


def become_a_fifo(path: str) -> None:
    os.unlink(path)
    os.mkfifo(path, 0o600)


def become_a_folder(path: str) -> None:
    os.unlink(path)
    os.mkdir(path, 0o700)


def tear(path: str) -> None:
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])


def empty(path: str) -> None:
    Path(path).write_bytes(b"")


def another_version(path: str) -> None:
    Path(path).write_text(json.dumps({**json.loads(Path(path).read_text()), "version": 3}))


def an_earlier_version(path: str) -> None:
    Path(path).write_text(json.dumps({**json.loads(Path(path).read_text()), "version": 1}))


def another_root(path: str) -> None:
    Path(path).write_text(json.dumps({**json.loads(Path(path).read_text()), "path": "/code/b"}))


def a_number_for_the_digest(path: str) -> None:
    Path(path).write_text(json.dumps({**json.loads(Path(path).read_text()), "digest": 1}))


DAMAGE = [
    loosen,
    loosen_folder,
    link,
    become_a_fifo,
    become_a_folder,
    tear,
    empty,
    another_version,
    an_earlier_version,
    another_root,
    a_number_for_the_digest,
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_record_that_somebody_else_could_have_made_is_not_believed(
    folder: AbsPath, damage: Callable[[str], None]
) -> None:
    write_pin(folder, pin())
    damage(pin_file(folder, ROOT))
    with pytest.raises(BadPin):
        read_pin(folder, ROOT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_record_of_another_user_is_not_believed(folder: AbsPath, what: str) -> None:
    write_pin(folder, pin())
    os.chown(pin_file(folder, ROOT) if what == "file" else folder, 12345, 12345)
    with pytest.raises(BadPin, match="another user"):
        read_pin(folder, ROOT)


def test_an_open_folder_is_not_written_to(folder: AbsPath) -> None:
    os.makedirs(folder, mode=0o755)
    with pytest.raises(BadPin, match="open to other users"):
        write_pin(folder, pin())
    assert os.listdir(folder) == []


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_record_whole(
    folder: AbsPath, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pin(folder, pin())

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(trust.os, failing, fail)
    with pytest.raises(OSError, match="disk full"):
        write_pin(folder, pin(digest="sha256:2"))
    monkeypatch.undo()
    assert read_pin(folder, ROOT) == pin()
    assert len(os.listdir(folder)) == 1


def test_all_records_are_listed_the_doubtful_ones_last(folder: AbsPath) -> None:
    assert read_pins(folder) == ()
    for path in ("/code/b", "/code/a", "/code/c"):
        write_pin(folder, pin(path))
    tear(pin_file(folder, AbsPath("/code/a")))
    b, c, bad = read_pins(folder)
    assert (b, c) == (pin("/code/b"), pin("/code/c"))
    assert isinstance(bad, BadPin)
