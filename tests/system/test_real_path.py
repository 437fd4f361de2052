"""A link that is swapped while it is followed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.system.real_path import real_path
from pilotfish.system.watching.listing import linked_folder


def _meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Have `change` happen once, just before a link is read."""
    read = os.readlink
    changes = [change]

    def readlink(path: str) -> str:
        if changes:
            changes.pop()()
        return read(path)

    monkeypatch.setattr(os, "readlink", readlink)


def test_a_link_that_is_removed_meanwhile_is_a_name_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    _meanwhile(monkeypatch, link.unlink)

    assert real_path(str(link / "file")) == str(link / "file")


def test_a_link_that_is_replaced_meanwhile_leads_where_it_leads_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)

    def replace() -> None:
        link.unlink()
        link.mkdir()

    _meanwhile(monkeypatch, replace)

    assert linked_folder(AbsPath(str(link))) == str(link)
