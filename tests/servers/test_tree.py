"""An answer about the disk holds until something that it rests on changes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.servers import tree as evidence
from pilotfish.servers.tree import DiskTree, Evidence, Witness

pytestmark = pytest.mark.proves("REG-3", "P1")

Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def old_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test has just made may prove something."""
    monkeypatch.setattr(evidence, "DOUBT_NANOSECONDS", 0)


def seen(folder: Path) -> Evidence:
    """What a search leaves behind that asked in all three ways."""
    witness = Witness(DiskTree())
    witness.exists(str(folder / "marker"))
    witness.exists(str(folder / "deep" / "er" / "marker"))
    witness.exists(str(folder / "dangling"))
    witness.exists(str(folder / "place" / "file" / "marker"))
    witness.exists(str(folder / "linked" / "marker"))
    witness.names(str(folder / "listed"))
    witness.read(str(folder / "manifest"), 100)
    found = witness.evidence()
    assert found is not None
    return found


def ground(folder: Path) -> Path:
    (folder / "listed").mkdir()
    (folder / "other").mkdir()
    (folder / "manifest").write_text("one")
    (folder / "dangling").symlink_to(folder / "other" / "target")
    (folder / "place").mkdir()
    (folder / "place" / "file").touch()
    (folder / "other" / "file").touch()
    (folder / "linked").symlink_to(folder / "other" / "file")
    return folder


def give_way(file: Path) -> None:
    """A folder with the marker takes the place of a file."""
    file.unlink()
    (file / "marker").mkdir(parents=True)


CHANGES: dict[str, Change] = {
    "a marker comes": lambda folder: (folder / "marker").touch(),
    "a marker comes where there was no folder": lambda folder: os.makedirs(folder / "deep" / "er" / "marker"),
    "a file comes into a folder that was listed": lambda folder: (folder / "listed" / "new").touch(),
    "a file that was read is written": lambda folder: (folder / "manifest").write_text("another"),
    "a file that was read goes": lambda folder: (folder / "manifest").unlink(),
    "a link leads somewhere at last": lambda folder: (folder / "other" / "target").touch(),
    "a file gives way to a folder": lambda folder: give_way(folder / "place" / "file"),
    "a file that a link leads to gives way to a folder": lambda folder: give_way(folder / "other" / "file"),
    "the folder is closed": lambda folder: (folder / "listed").chmod(0o500),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_is_void_when(change: Change, tmp_path: Path) -> None:
    found = seen(ground(tmp_path))
    assert found.holds()
    change(tmp_path)
    assert not found.holds()


def test_it_holds_whatever_happens_elsewhere(tmp_path: Path) -> None:
    found = seen(ground(tmp_path))
    (tmp_path / "other" / "unrelated").touch()
    (tmp_path / "place" / "file").write_text("nothing can be below it, whatever it says")
    assert found.holds()


def test_what_has_just_changed_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "DOUBT_NANOSECONDS", 3_600_000_000_000)
    witness = Witness(DiskTree())
    witness.names(str(tmp_path))
    assert witness.evidence() is None
