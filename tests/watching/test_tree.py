"""The picture of the watched folders, with a system that does odd things to watches."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.ports import Interest
from pilotfish.system.watching.folder_watcher import Aliases
from pilotfish.system.watching.ignoring import tops
from pilotfish.system.watching.tree import MAX_SHARED, WatchedTree
from support.watching.watched import EVERYTHING, absolute, registered

pytestmark = pytest.mark.proves("WATCH-2")


@dataclass
class FakeSentry:
    """Numbers folders by what they are, as inotify does; `same` lists paths that lead to one folder."""

    same: dict[str, str] = field(default_factory=dict[str, str])
    ended: set[int] = field(default_factory=set[int])
    numbers: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def watch(self, folder: AbsPath, *, follow: bool) -> int | None:
        try:
            status = os.stat(self.same.get(folder, folder), follow_symlinks=follow)
        except OSError:
            return None
        return self.numbers.setdefault((status.st_dev, status.st_ino), len(self.numbers))

    def unwatch(self, watch: int) -> None:
        self.ended.add(watch)


@pytest.fixture
def sentry() -> FakeSentry:
    return FakeSentry()


def covering(root: Path, sentry: FakeSentry) -> WatchedTree:
    tree = WatchedTree(sentry, lambda: 4e9)
    tree.cover(tops(Interest((absolute(root),), registered(EVERYTHING))))
    return tree


def number_of(tree: WatchedTree, folder: Path) -> int:
    (found,) = [number for number in range(100) if tree.watches.folder_of(number) == str(folder)]
    return found


def told(tree: WatchedTree) -> list[str]:
    return [f"{found.change.name.lower()} {os.path.basename(found.path)}" for found in tree.take()]


def test_another_worktree_inside_is_not_entered(tmp_path: Path, sentry: FakeSentry) -> None:
    for name, pointer in (("tree", "gitdir: /r/.git/worktrees/tree\n"), ("module", "gitdir: ../.git/modules/m\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(pointer)
    assert covering(tmp_path, sentry).folders() == (absolute(tmp_path), absolute(tmp_path / "module"))


def test_a_folder_whose_watch_the_system_ends_is_watched_again_and_compared(tmp_path: Path, sentry: FakeSentry) -> None:
    (tmp_path / "mount").mkdir()
    tree = covering(tmp_path, sentry)
    (tmp_path / "mount" / "unseen").touch()
    tree.watches.ended(number_of(tree, tmp_path / "mount"))
    assert absolute(tmp_path / "mount") not in tree.watches
    tree.settle()
    assert absolute(tmp_path / "mount") in tree.watches
    assert told(tree) == ["created unseen"]


def test_a_folder_that_turns_up_elsewhere_takes_its_watch_along(tmp_path: Path, sentry: FakeSentry) -> None:
    (tmp_path / "old" / "inner").mkdir(parents=True)
    tree = covering(tmp_path, sentry)
    number = number_of(tree, tmp_path / "old" / "inner")
    (tmp_path / "old").rename(tmp_path / "new")
    tree.look(absolute(tmp_path), "new", written=True)
    assert tree.watches.folder_of(number) == str(tmp_path / "new" / "inner")
    tree.settle()
    assert told(tree) == ["created new", "created inner", "deleted inner", "deleted old"]
    assert not sentry.ended
    assert not tree.watches.without


def test_a_folder_that_is_mounted_twice_is_no_endless_quarrel(tmp_path: Path, sentry: FakeSentry) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    sentry.same[str(tmp_path / "two")] = str(tmp_path / "one")
    tree = covering(tmp_path, sentry)
    tree.settle()
    tree.settle()
    assert len(tree.watches) == 2
    assert told(tree) == []


def test_a_watch_of_a_folder_that_is_gone_meanwhile_is_no_trouble(tmp_path: Path, sentry: FakeSentry) -> None:
    (tmp_path / "gone" / "inner").mkdir(parents=True)
    tree = covering(tmp_path, sentry)
    number = number_of(tree, tmp_path / "gone" / "inner")
    (tmp_path / "gone" / "inner").rmdir()
    (tmp_path / "gone").rmdir()
    tree.watches.ended(number)
    tree.watches.ended(number)
    tree.settle()
    assert told(tree) == ["deleted inner"]
    tree.look(absolute(tmp_path), "gone", written=False)
    assert told(tree) == ["deleted gone"]
    assert [*tree.folders()] == [str(tmp_path)]


def test_what_is_said_of_a_folder_that_is_not_known_is_passed_over(tmp_path: Path, sentry: FakeSentry) -> None:
    tree = covering(tmp_path, sentry)
    tree.look(absolute("/elsewhere"), "x", written=True)
    assert told(tree) == []


@pytest.mark.parametrize(
    ("now", "said"), [("two", ["changed link", "deleted a", "created a"]), ("nowhere", ["changed link", "deleted a"])]
)
def test_a_link_that_is_switched_before_more_is_covered_is_told_of(
    tmp_path: Path, sentry: FakeSentry, now: str, said: list[str]
) -> None:
    root = tmp_path / "root"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").touch()
    root.mkdir()
    (root / "link").symlink_to("../one")
    tree = covering(root, sentry)
    (root / "new").symlink_to(f"../{now}")
    (root / "new").rename(root / "link")
    tree.cover(tops(Interest((absolute(root),), registered(EVERYTHING, "*.py"))))
    tree.settle()
    assert told(tree) == said
    assert (absolute(root / "link") in tree.watches) is (now == "two")


def test_as_many_links_as_are_looked_at_cost_an_edit_next_to_nothing(
    sentry: FakeSentry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monorepo has a link for each of its packages; comparing each with each takes a tenth of a second."""
    tree = WatchedTree(sentry, lambda: 4e9)
    links = {absolute(f"/w/linked/{number}"): f"/w/packages/{number}" for number in range(MAX_SHARED)}
    monkeypatch.setattr(tree, "inner_links", lambda: links)
    names = Aliases(tree)
    names.learn()
    change = PathChange(absolute("/w/packages/7/a"), Change.CHANGED)
    begun = time.thread_time()
    assert [one.path for one in names.of((change,))] == ["/w/linked/7/a"]
    assert time.thread_time() - begun < 0.04
