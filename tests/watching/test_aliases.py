"""Folders that have another name by a link inside the root: what changes in them is told by that name, too."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.watching.watched import EVERYTHING, Watched, watched

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-4", "F57")]


def lead(link: Path, target: str) -> None:
    """As `ln -sfn` does."""
    link.with_name("new~").symlink_to(target)
    link.with_name("new~").rename(link)


async def aliases(changes: Watched) -> list[str]:
    found = changes.watcher.aliases(await changes.watcher.drain())
    assert all(one.is_alias for one in found)
    return sorted(f"{one.change.name.lower()} {changes.named(one.path)}" for one in found)


NAMES = ("inner/current", "link", "step")
"""By which the folder `one` is known as well."""

CASES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a file is written": (lambda root: (root / "one" / "a").write_text("2"), [f"changed {name}/a" for name in NAMES]),
    "a file is made": (lambda root: (root / "one" / "new").touch(), [f"created {name}/new" for name in NAMES]),
    "a file is deleted": (lambda root: (root / "one" / "a").unlink(), [f"deleted {name}/a" for name in NAMES]),
    "a file elsewhere is written": (lambda root: (root / "two" / "a").write_text("2"), []),
    "the link leads elsewhere": (lambda root: lead(root / "link", "two"), ["changed link/a", "created link/b"]),
    "a step behind the link leads elsewhere": (
        lambda root: lead(root / "inner" / "current", "../two"),
        ["changed inner/current/a", "changed step/a", "created inner/current/b", "created step/b"],
    ),
    "the link is removed": (lambda root: (root / "link").unlink(), ["deleted link/a"]),
    "a link is made": (lambda root: (root / "again").symlink_to("two"), ["created again/a", "created again/b"]),
    "where it led to is removed": (lambda root: shutil.rmtree(root / "one"), [f"deleted {name}/a" for name in NAMES]),
}


@pytest.mark.proves("A7.1", "A7.3", "A15.3")
@pytest.mark.parametrize("case", CASES)
async def test_what_changes_behind_a_link_is_told_below_it(tmp_path: Path, case: str) -> None:
    change, expected = CASES[case]
    for name in ("one/a", "two/a", "two/b", "inner/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "inner" / "current").symlink_to("../one")
    (tmp_path / "step").symlink_to("inner/current")
    # Links around themselves have no end, and one to a file is a file.
    (tmp_path / "inner" / "loop").symlink_to(tmp_path)
    (tmp_path / "file").symlink_to("two/b")
    async with watched(tmp_path, EVERYTHING) as changes:
        await changes.watcher.drain()
        change(tmp_path)
        assert await aliases(changes) == expected
