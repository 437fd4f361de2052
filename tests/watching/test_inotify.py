"""What the watcher of Linux notices, one thing at a time. It is asked right after each change: no event may be late.

Where it has to compare instead of being told, a file that was written just before may count as changed once more.
"""

import errno
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pilotfish.model import AbsPath
from pilotfish.system.watching import folder_watcher, inotify, listing, tree
from pilotfish.system.watching.folder_watcher import FolderWatcher
from pilotfish.system.watching.inotify import Inotify, remote_mounts
from support.watching.short_of import FewWatches, TinyQueue
from support.watching.watched import EVERYTHING, absolute, registered, watched

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-1")]


WATCHED_AND_POLLED = pytest.mark.parametrize("make", [None, lambda: FewWatches(1)], ids=["watched", "polled"])


def lay_out(root: Path) -> None:
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "file").write_text("1")
    (root / "folder" / "inner" / "deep").write_text("1")


def save_atomically(root: Path) -> None:
    (root / "file~").write_text("2")
    (root / "file~").replace(root / "file")


def write_by_another_process(root: Path) -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "open('file', 'w').write('2')"], cwd=root, check=True)


def keep_open_for_writing(root: Path) -> None:
    """What is written counts when it is written, and not when the file is closed."""
    with (root / "file").open("a") as file:
        file.write("more")
        file.flush()


HAPPENINGS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda root: None, []),
    "a file is made": (lambda root: (root / "new").write_text(""), ["created new"]),
    "a file is written": (lambda root: (root / "file").write_text("2"), ["changed file"]),
    "a file is written with the same text": (lambda root: (root / "file").write_text("1"), ["changed file"]),
    "a file is written by another process": (write_by_another_process, ["changed file"]),
    "a file is written and stays open": (keep_open_for_writing, ["changed file"]),
    "a file is deleted": (lambda root: (root / "file").unlink(), ["deleted file"]),
    "a file is saved by renaming": (save_atomically, ["changed file"]),
    "a file is renamed": (lambda root: (root / "file").rename(root / "other"), ["created other", "deleted file"]),
    "a file is touched": (lambda root: os.utime(root / "file", (1, 1)), ["changed file"]),
    "a file is made and deleted": (lambda root: ((root / "new").touch(), (root / "new").unlink()), []),
    "a file is deleted and made": (
        lambda root: ((root / "file").unlink(), (root / "file").write_text("1")),
        ["changed file"],
    ),
    "a file becomes a folder": (
        lambda root: ((root / "file").unlink(), (root / "file" / "x").mkdir(parents=True)),
        ["changed file", "created file/x"],
    ),
    "a folder becomes a file": (
        lambda root: (shutil.rmtree(root / "folder"), (root / "folder").write_text("")),
        ["changed folder", "deleted folder/inner", "deleted folder/inner/deep"],
    ),
    "a deep folder is made with its file": (
        lambda root: ((root / "a/b/c").mkdir(parents=True), (root / "a/b/c/d").touch()),
        ["created a", "created a/b", "created a/b/c", "created a/b/c/d"],
    ),
    "a folder is deleted": (
        lambda root: shutil.rmtree(root / "folder"),
        ["deleted folder", "deleted folder/inner", "deleted folder/inner/deep"],
    ),
    "a folder is moved": (
        lambda root: (root / "folder").rename(root / "moved"),
        [
            "created moved",
            "created moved/inner",
            "created moved/inner/deep",
            "deleted folder",
            "deleted folder/inner",
            "deleted folder/inner/deep",
        ],
    ),
    "a folder is moved away": (
        lambda root: (root / "folder").rename(root.parent / "away"),
        ["deleted folder", "deleted folder/inner", "deleted folder/inner/deep"],
    ),
    "a folder is moved away and another takes its place": (
        lambda root: (
            (root / "folder").rename(root.parent / "away"),
            (root / "folder" / "other").mkdir(parents=True),
        ),
        ["changed folder", "created folder/other", "deleted folder/inner", "deleted folder/inner/deep"],
    ),
    "a file in a folder is written after that was moved": (
        lambda root: ((root / "folder").rename(root / "moved"), (root / "moved/inner/deep").write_text("2")),
        [
            "created moved",
            "created moved/inner",
            "created moved/inner/deep",
            "deleted folder",
            "deleted folder/inner",
            "deleted folder/inner/deep",
        ],
    ),
    "a link to the root is made": (lambda root: (root / "loop").symlink_to(root), ["created loop"]),
    "a link is led elsewhere": (
        lambda root: ((root / "link").symlink_to("x"), (root / "link").unlink(), (root / "link").symlink_to("y")),
        ["created link"],
    ),
    "a pipe is made": (lambda root: os.mkfifo(root / "pipe"), []),
    "an odd name is used": (
        lambda root: Path(os.fsdecode(os.fsencode(root) + b"/\xff\n")).touch(),
        ["created " + os.fsdecode(b"\xff\n")],
    ),
}


@pytest.mark.proves("WATCH-2", "C111")
@pytest.mark.parametrize(("act", "expected"), HAPPENINGS.values(), ids=HAPPENINGS.keys())
async def test_it_notices_what_happened(tmp_path: Path, act: Callable[[Path], object], expected: list[str]) -> None:
    root = tmp_path / "root"
    lay_out(root)
    async with watched(root, EVERYTHING) as changes:
        act(root)
        assert await changes.found() == sorted(expected)
        assert await changes.found() == []


@pytest.mark.proves("WATCH-2")
@pytest.mark.parametrize(("act", "expected"), HAPPENINGS.values(), ids=HAPPENINGS.keys())
async def test_what_comes_after_it_is_noticed_as_well(
    tmp_path: Path, act: Callable[[Path], object], expected: list[str]
) -> None:
    root = tmp_path / "root"
    lay_out(root)
    async with watched(root, EVERYTHING) as changes:
        act(root)
        await changes.found()
        folders = [Path(folder) for folder, _, _ in os.walk(root)]
        for folder in folders:
            (folder / "later").touch()
        assert await changes.found() == sorted(f"created {changes.named(f'{folder}/later')}" for folder in folders)
        assert changes.health.watched == len(folders)


async def test_waiting_ends_when_something_happens(tmp_path: Path) -> None:
    async with watched(tmp_path, EVERYTHING) as changes, anyio.create_task_group() as tasks:
        tasks.start_soon(changes.watcher.wait_for_changes)
        await anyio.wait_all_tasks_blocked()
        (tmp_path / "new").touch()
    assert tmp_path.exists()


@pytest.mark.proves("C111")
async def test_changes_are_told_in_an_order_that_can_be_followed(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "b" / "c").touch()
        made = [changes.named(found.path) for found in await changes.watcher.drain()]
        shutil.rmtree(tmp_path / "folder")
        gone = [changes.named(found.path) for found in await changes.watcher.drain()]
    assert made == ["a", "a/b", "a/b/c"]
    assert gone == ["folder/inner/deep", "folder/inner", "folder"]


@pytest.mark.proves("WATCH-2", "F59")
async def test_a_folder_that_was_a_file_in_between_is_told_again(tmp_path: Path) -> None:
    """Whoever was told of the folder and looked a moment later has read the file."""
    (tmp_path / "above").mkdir()
    async with watched(tmp_path, EVERYTHING) as changes:
        name = tmp_path / "above" / "name"
        name.mkdir()
        assert await changes.found() == ["created above/name"]
        name.rmdir()
        name.touch()
        name.unlink()
        name.mkdir()
        assert "changed above/name" in await changes.found()


@pytest.mark.proves("WATCH-2", "F59")
async def test_a_polled_folder_that_was_a_file_in_between_is_told_again(tmp_path: Path) -> None:
    """By its inode, which the file system may give to the next folder once this one is gone: then nothing tells."""
    (tmp_path / "above").mkdir()
    async with watched(tmp_path, EVERYTHING, make=lambda: FewWatches(1)) as changes:
        name = tmp_path / "above" / "name"
        name.mkdir()
        assert await changes.found() == ["created above/name"]
        name.rename(tmp_path / "keeps the inode")
        name.touch()
        name.unlink()
        name.mkdir()
        assert "changed above/name" in await changes.found()


@pytest.mark.proves("WATCH-2", "F59")
@WATCHED_AND_POLLED
async def test_a_new_file_whose_folder_was_away_in_between_is_told_again(
    tmp_path: Path, make: Callable[[], Inotify] | None
) -> None:
    """Whoever was told of it and looked a moment later has found nothing."""
    lay_out(tmp_path / "outside")
    (tmp_path / "outside" / "folder").rename(tmp_path / "made")
    root = tmp_path / "root"
    root.mkdir()
    async with watched(root, EVERYTHING, make=make) as changes:
        (tmp_path / "made").rename(root / "new")
        assert "created new/inner/deep" in await changes.found()
        (root / "new").rename(tmp_path / "away")
        (tmp_path / "away").rename(root / "new")
        assert "changed new/inner/deep" in await changes.found()


@pytest.mark.proves("WATCH-2", "F59")
@WATCHED_AND_POLLED
async def test_a_folder_that_gives_way_to_a_link_leaves_the_others_their_watches(
    tmp_path: Path, make: Callable[[], Inotify] | None
) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING, make=make) as changes:
        shutil.rmtree(tmp_path / "folder")
        (tmp_path / "folder").symlink_to(tmp_path)
        assert await changes.found() == ["changed folder", "deleted folder/inner", "deleted folder/inner/deep"]
        (tmp_path / "later").touch()
        assert await changes.found() == ["created later"]


# --- Roots --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-2")
async def test_a_root_that_is_replaced_is_compared_with_the_one_before(tmp_path: Path) -> None:
    root = tmp_path / "root"
    lay_out(root)
    async with watched(root, EVERYTHING) as changes:
        root.rename(tmp_path / "old")
        lay_out(root)
        (root / "folder" / "new").touch()
        (root / "file").unlink()
        assert await changes.found() == [
            "changed folder",
            "changed folder/inner",
            "changed folder/inner/deep",
            "created folder/new",
            "deleted file",
        ]
        (root / "folder" / "later").touch()
        (tmp_path / "old" / "elsewhere").touch()
        assert await changes.found() == ["created folder/later"]


async def test_a_root_goes_with_the_folder_that_it_is_in(tmp_path: Path) -> None:
    """Its own watch tells nothing of that: nobody moved the root itself."""
    root = tmp_path / "outer" / "root"
    lay_out(root)
    async with watched(root, EVERYTHING) as changes:
        root.parent.rename(tmp_path / "away")
        gone = await changes.found()
        assert "deleted folder/inner/deep" in gone
        lay_out(root)
        assert "created folder/inner/deep" in await changes.found()


@pytest.mark.proves("C110")
async def test_a_folder_outside_the_root_is_watched_where_a_server_asks_for_it(tmp_path: Path) -> None:
    root, library = tmp_path / "root", tmp_path / "library"
    lay_out(root)
    (library / "package").mkdir(parents=True)
    async with watched(root) as changes:
        await changes.cover(*registered("**/*.py", base=library))
        (library / "package" / "module.py").touch()
        (root / "file").write_text("2")
        assert await changes.found() == [f"created {library}/package/module.py"]


async def test_a_folder_that_does_not_exist_yet_is_watched_from_its_first_moment(tmp_path: Path) -> None:
    root, later = tmp_path / "root", tmp_path / "later"
    lay_out(root)
    async with watched(root) as changes:
        await changes.cover(*registered("**/*.py", base=later))
        assert await changes.found() == []
        (later / "package").mkdir(parents=True)
        (later / "package" / "module.py").touch()
        found = await changes.found()
        assert f"created {later}/package/module.py" in found
        shutil.rmtree(later)
        assert f"deleted {later}/package/module.py" in await changes.found()


async def test_a_base_behind_a_link_is_watched(tmp_path: Path) -> None:
    root, real = tmp_path / "root", tmp_path / "real"
    lay_out(root)
    real.mkdir()
    (root / "link").symlink_to(real)
    async with watched(root) as changes:
        await changes.cover(*registered(EVERYTHING), *registered("*.py", base=root / "link"))
        (real / "module.py").touch()
        assert await changes.found() == ["created link/module.py"]


# --- What is asked for --------------------------------------------------------------------------------------------


@pytest.mark.proves("F60", "WATCH-4")
async def test_where_nothing_can_match_nothing_is_watched(tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "src" / "deep").mkdir(parents=True)
    async with watched(tmp_path, "src/**/*.ts", "tsconfig.json") as changes:
        assert changes.health.watched == 3
        (tmp_path / "folder" / "x.ts").touch()
        (tmp_path / "src" / "deep" / "x.ts").touch()
        (tmp_path / "tsconfig.json").touch()
        assert await changes.found() == ["created src/deep/x.ts", "created tsconfig.json"]


async def test_what_nobody_asks_for_any_more_is_left(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == 3
        await changes.cover(*registered("*"))
        assert changes.health.watched == 1
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        assert await changes.found() == []
        await changes.cover(*registered(EVERYTHING))
        assert await changes.found() == []
        await changes.cover()
        assert changes.health.watched == 0


async def test_what_was_found_is_not_forgotten_when_something_else_is_asked_for(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, "*") as changes:
        (tmp_path / "new").touch()
        await changes.cover(*registered(EVERYTHING))
        assert await changes.found() == ["created new"]


@pytest.mark.proves("WATCH-5")
async def test_the_folder_of_an_open_document_is_watched_and_nothing_below_it(tmp_path: Path) -> None:
    folder = tmp_path / "node_modules" / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "index.js").write_text("1")
    async with watched(tmp_path, EVERYTHING) as changes:
        await changes.cover(*registered(EVERYTHING), folders=(folder,))
        (folder / "index.js").write_text("2")
        (folder / "inner" / "x").touch()
        assert await changes.found() == ["changed node_modules/package/index.js"]
        shutil.rmtree(folder)
        assert "deleted node_modules/package/index.js" in await changes.found()
        folder.mkdir()
        (folder / "index.js").write_text("3")
        assert "created node_modules/package/index.js" in await changes.found()
        await changes.cover(*registered(EVERYTHING))
        (folder / "index.js").write_text("4")
        assert await changes.found() == []


async def test_the_folder_of_a_document_stays_watched_for_what_is_registered(tmp_path: Path) -> None:
    lay_out(tmp_path)
    folder = tmp_path / "folder"
    async with watched(tmp_path) as changes:
        await changes.cover(folders=(folder,))
        await changes.cover(*registered(EVERYTHING), folders=(folder,))
        (folder / "inner" / "new").touch()
        assert await changes.found() == ["created folder/inner/new"]
        await changes.cover(*registered(EVERYTHING))
        (folder / "new").touch()
        assert await changes.found() == ["created folder/new"]
        await changes.cover(folders=(folder,))
        (folder / "inner" / "newer").touch()
        (folder / "newer").touch()
        assert await changes.found() == ["created folder/newer"]


async def test_a_folder_that_comes_back_as_that_of_a_document_is_entered_for_what_is_registered(tmp_path: Path) -> None:
    lay_out(tmp_path)
    folder = tmp_path / "folder"
    async with watched(tmp_path) as changes:
        await changes.cover(*registered(EVERYTHING), folders=(folder,))
        shutil.rmtree(folder)
        await changes.found()
        lay_out(tmp_path)
        await changes.found()
        (folder / "inner" / "new").touch()
        assert await changes.found() == ["created folder/inner/new"]


async def test_what_is_recent_can_be_asked_for(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        made = (tmp_path / "file").stat().st_ctime - 0.001
        everything = [changes.named(found.path) for found in changes.watcher.recent(made)]
        assert sorted(everything) == ["file", "folder/inner/deep"]
        inner = frozenset({absolute(tmp_path / "folder" / "inner"), absolute("/elsewhere")})
        assert [changes.named(found.path) for found in changes.watcher.recent(made, inner)] == ["folder/inner/deep"]
        assert changes.watcher.recent(made + 1000) == ()


# --- Ignored folders ----------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-4", "F60")
async def test_ignored_folders_cost_nothing_where_there_is_no_room_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_ASIDE", 0)
    for folder in (".git/objects/aa", "node_modules/package", "src/node_modules/x", "build/out", "src/gen", "src/kept"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("/build/\ngen\n*.log\n[\n!\n")
    (tmp_path / "src" / ".gitignore").write_text("!gen/\n# nothing\n")
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == 4  # the root, src, src/gen and src/kept
        for folder in (".git/objects/aa", "node_modules/package", "build/out", "src/kept"):
            (tmp_path / folder / "new").touch()
        (tmp_path / "x.log").touch()
        # A file in a folder that is watched anyway costs nothing, and may be a generated source.
        assert await changes.found() == ["created src/kept/new", "created x.log"]


@pytest.mark.proves("WATCH-4")
async def test_an_ignored_folder_is_watched_for_a_glob_that_means_it_and_for_no_other(tmp_path: Path) -> None:
    for folder in ("node_modules/one/lib", "node_modules/two", "src", ".venv/lib/site/package", ".venv/bin/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "node_modules" / ".bin").mkdir()
    (tmp_path / ".gitignore").write_text(".venv\n")
    async with watched(tmp_path, EVERYTHING) as changes:
        site = tmp_path / ".venv" / "lib" / "site"
        await changes.cover(*registered(EVERYTHING, "node_modules/*/package.json"), *registered("**", base=site))
        watched_folders = {"", "src", "node_modules", "node_modules/one", "node_modules/two"}
        watched_folders |= {".venv", ".venv/lib", ".venv/lib/site", ".venv/lib/site/package"}
        assert changes.health.watched == len(watched_folders)
        for folder in ("node_modules/one/lib", "node_modules/two", ".venv/lib/site/package", ".venv/bin/deep"):
            (tmp_path / folder / "package.json").touch()
        expected = ["created .venv/lib/site/package/package.json", "created node_modules/two/package.json"]
        assert await changes.found() == expected


@pytest.mark.proves("WATCH-4")
async def test_a_change_of_what_is_ignored_counts_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_ASIDE", 0)
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        (tmp_path / ".gitignore").write_text("folder/")
        assert await changes.found() == ["created .gitignore"]
        assert changes.health.watched == 1
        (tmp_path / ".gitignore").write_text("other/")
        assert await changes.found() == ["changed .gitignore"]
        assert changes.health.watched == 3
        (tmp_path / ".gitignore").write_text("folder/")
        await changes.found()
        (tmp_path / ".gitignore").unlink()
        assert await changes.found() == ["deleted .gitignore"]
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        assert await changes.found() == ["changed folder/inner/deep"]


async def test_the_rules_above_the_root_count_up_to_the_top_of_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_ASIDE", 0)
    root = tmp_path / "repository" / "package"
    for folder in (root / "build", root / "src", root.parent / ".git"):
        folder.mkdir(parents=True)
    (root.parent / ".gitignore").write_text("build/\n")
    (tmp_path / ".gitignore").write_text("src/\n")
    async with watched(root, EVERYTHING) as changes:
        assert changes.health.watched == 2


@pytest.mark.proves("F95", "WATCH-4")
async def test_generated_code_in_an_ignored_folder_is_watched_and_dependencies_are_not(tmp_path: Path) -> None:
    for folder in ("src/gen/api", "build", "vendor/x", "env/lib", ".cache/x", "node_modules/x"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("gen/\nbuild\nvendor\nenv\n.cache\n")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == 5  # the root, src, src/gen, src/gen/api and build
        for folder in ("src/gen/api", "build", "vendor/x", "env/lib", ".cache/x", "node_modules/x"):
            (tmp_path / folder / "new").touch()
        assert await changes.found() == ["created build/new", "created src/gen/api/new"]


@pytest.mark.proves("F95", "WATCH-4")
async def test_only_so_much_of_an_ignored_folder_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_ASIDE", 3)
    (tmp_path / "src").mkdir()
    for number in range(10):
        (tmp_path / "build" / str(number)).mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("build\n")
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == 2 + 3
        shutil.rmtree(tmp_path / "build")
        (tmp_path / "build").mkdir()
        await changes.found()
        assert changes.health.watched == 2 + 1, "there is room again"


# --- Installed packages -------------------------------------------------------------------------------------------


@pytest.mark.proves("F95", "WATCH-4")
async def test_the_inside_of_packages_is_watched_without_caches_and_without_the_links_of_package_managers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_SHARED", 1)
    packages, stored = tmp_path / "node_modules", tmp_path / "node_modules/.pnpm/one@1/node_modules/one"
    for folder in (stored / "lib", packages / "two", packages / ".cache/deep", packages / ".bin"):
        folder.mkdir(parents=True)
        (folder / "index.d.ts").write_text("1")
    os.link(stored / "lib/index.d.ts", tmp_path.parent / f"{tmp_path.name}.second")
    for number in range(3):
        (packages / f"linked{number}").symlink_to(stored)
    async with watched(tmp_path, EVERYTHING) as changes:
        await changes.cover(*registered(EVERYTHING), *registered("**", base=packages))
        assert changes.health.behind is None
        for folder in (stored / "lib", packages / "two", packages / ".cache/deep"):
            (folder / "index.d.ts").write_text("2")
        expected = ["changed node_modules/.pnpm/one@1/node_modules/one/lib/index.d.ts"]
        expected.append("changed node_modules/two/index.d.ts")
        assert await changes.found() == expected


# --- Links --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("F95")
async def test_what_is_written_under_another_name_is_noticed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
    for name in ("hard", "soft", "later"):
        (outside / name).write_text("1")
    os.link(outside / "hard", root / "hard")
    (root / "soft").symlink_to(outside / "soft")
    (root / "nowhere").symlink_to(outside / "missing")
    async with watched(root, EVERYTHING) as changes:
        await changes.found()
        (outside / "hard").write_text("2")
        assert "changed hard" in await changes.found()
        (outside / "soft").write_text("2")
        assert "changed soft" in await changes.found()
        (outside / "missing").write_text("2")
        assert "changed nowhere" in await changes.found()
        os.link(outside / "later", root / "later")
        assert "created later" in await changes.found()
        (outside / "later").write_text("2")
        assert "changed later" in await changes.found()
        (root / "later").unlink()
        await changes.found()
        (outside / "later").write_text("3")
        assert not [found for found in await changes.found() if "later" in found]


@pytest.mark.proves("F95")
async def test_a_linked_folder_outside_is_watched_under_the_name_of_the_link(tmp_path: Path) -> None:
    root, outside, other = tmp_path / "root", tmp_path / "outside", tmp_path / "other"
    for folder in (root / "own", outside / "deep", other):
        folder.mkdir(parents=True)
    (root / "linked").symlink_to(outside)
    (root / "inward").symlink_to(root / "own")
    (root / "upward").symlink_to(tmp_path)
    (outside / "loop").symlink_to(outside)
    (outside / "deep" / "file").write_text("1")
    async with watched(root, EVERYTHING) as changes:
        assert changes.health.watched == 4  # the root, own, linked and linked/deep
        (outside / "deep" / "file").write_text("2")
        assert await changes.found() == ["changed linked/deep/file"]
        (root / "own" / "file").write_text("1")
        assert await changes.found() == ["created own/file"]
        (root / "linked").unlink()
        (root / "linked").symlink_to(other)
        found = await changes.found()
        assert "deleted linked/deep/file" in found
        (other / "new").write_text("1")
        assert "created linked/new" in await changes.found()
        (root / "linked").unlink()
        await changes.found()
        (other / "new").write_text("2")
        assert await changes.found() == []
        (root / "again").symlink_to(outside)
        assert "created again/deep/file" in await changes.found()


@pytest.mark.proves("F95", "A14.3")
async def test_what_is_written_through_a_memory_mapping_is_noticed_when_the_mapping_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("fine")
    async with watched(tmp_path, EVERYTHING) as changes:
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
        memory[:] = b"bad1"
        await changes.found()
        # The page is dirty already: this does not change the times of the file.
        memory[:] = b"bad2"
        memory.close()
        assert await changes.found() == ["changed file"]
        assert await changes.found() == []


@pytest.mark.proves("F97")
async def test_more_links_than_can_be_looked_at_each_time_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_SHARED", 3)
    (tmp_path / "target").touch()
    for number in range(5):
        (tmp_path / f"{number}").symlink_to(tmp_path / "target")
    async with watched(tmp_path, EVERYTHING) as changes:
        assert "links" in (changes.health.behind or "")


@pytest.mark.proves("F97")
@pytest.mark.parametrize("folder", [".venv/lib/python3.11/site-packages/package", "node_modules/package"])
async def test_packages_that_lie_in_a_store_too_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setattr(tree, "MAX_SHARED", 3)
    store, packages = tmp_path / "store", tmp_path / "root" / folder
    store.mkdir()
    packages.mkdir(parents=True)
    for number in range(5):
        (store / f"{number}.py").touch()
        os.link(store / f"{number}.py", packages / f"{number}.py")
    async with watched(packages, EVERYTHING) as changes:
        assert changes.health.behind is None
        (store / "new.py").write_text("new")
        (packages / "0.py").unlink()
        os.link(store / "new.py", packages / "0.py")
        assert await changes.found() == ["changed 0.py"]


# --- Trouble ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("F59", "C111", "P25", "A15.8")
async def test_dropped_events_make_it_look_everywhere(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING, make=lambda: TinyQueue(2)) as changes:
        for number in range(20):
            (tmp_path / "folder" / f"{number}").touch()
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        found = await changes.found()
        assert {f"created folder/{number}" for number in range(20)} <= {*found}
        assert "changed folder/inner/deep" in found
        assert changes.health.overflows == 1
        assert changes.health.degraded is None


@pytest.mark.proves("F59", "WATCH-4", "P25", "A14.5")
async def test_without_watches_left_it_polls_and_says_so(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING, make=lambda: FewWatches(1)) as changes:
        assert (changes.health.watched, changes.health.polled) == (1, 2)
        assert changes.health.degraded == "no inotify watch is left (fs.inotify.max_user_watches)"
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        (tmp_path / "folder" / "new").mkdir()
        assert {"changed folder/inner/deep", "created folder/new"} <= {*await changes.found()}
        with anyio.move_on_after(folder_watcher.POLL_SECONDS * 4) as late:
            await changes.watcher.wait_for_changes()
        assert not late.cancelled_caught


@pytest.mark.proves("F59")
async def test_with_watches_left_again_it_is_well_again(tmp_path: Path) -> None:
    lay_out(tmp_path)
    few = FewWatches(1)
    async with watched(tmp_path, EVERYTHING, make=lambda: few) as changes:
        few.limit = 10
        await changes.found()
        assert (changes.health.watched, changes.health.polled, changes.health.degraded) == (3, 0, None)


@pytest.mark.proves("F59", "F61")
async def test_a_folder_that_cannot_be_listed_for_lack_of_descriptors_is_listed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path)
    really = listing._listed  # pyright: ignore[reportPrivateUsage] -- the place where the system may say no
    short: list[int] = [1]

    def listed(descriptor: int, folder: AbsPath) -> listing.Listing:
        if short and os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")) == "inner":
            raise OSError(errno.EMFILE, "")
        return really(descriptor, folder)

    monkeypatch.setattr(listing, "_listed", listed)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert (changes.health.polled, changes.health.degraded) == (1, "too many open files")
        assert await changes.found() == []
        (tmp_path / "folder" / "inner" / "new").touch()
        assert "created folder/inner/new" in await changes.found()
        short.clear()
        assert "created folder/inner/deep" in await changes.found()
        assert (changes.health.polled, changes.health.degraded) == (0, None)


@pytest.mark.proves("F59", "F61")
async def test_without_an_instance_left_it_polls_and_says_so(tmp_path: Path) -> None:
    def none_left() -> FewWatches:
        raise OSError(errno.EMFILE, "")

    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING, make=none_left) as changes:
        assert (changes.health.watched, changes.health.polled) == (0, 3)
        assert changes.health.degraded == "no inotify instance is left (fs.inotify.max_user_instances)"
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        assert "changed folder/inner/deep" in await changes.found()


@pytest.mark.proves("F59", "P25")
async def test_the_folders_of_open_documents_are_polled_however_much_else_there_is_to_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "POLL_SLICE_SECONDS", 0.0)
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING, make=lambda: FewWatches(0)) as changes:
        await changes.cover(*registered(EVERYTHING), folders=(tmp_path / "folder" / "inner",))
        (tmp_path / "file").write_text("2")
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        assert await changes.found() == ["changed folder/inner/deep"]


@pytest.mark.proves("F60", "A14.5")
async def test_too_many_folders_are_not_all_watched_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_FOLDERS", 2)
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == 2
        assert "not watched" in (changes.health.degraded or "")
        await changes.cover(*registered(EVERYTHING), folders=(tmp_path / "folder" / "inner",))
        assert changes.health.watched == 3


@pytest.mark.proves("F64")
async def test_a_network_file_system_is_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "remote_mounts", lambda: (str(tmp_path / "folder"),))
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert (changes.health.watched, changes.health.polled) == (1, 2)
        assert "network file system" in (changes.health.degraded or "")
        (tmp_path / "folder" / "inner" / "deep").write_text("2")
        assert "changed folder/inner/deep" in await changes.found()


@pytest.mark.proves("F64")
def test_network_file_systems_are_found_in_the_table_of_mounts(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n"
        "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        r"40 1 0:50 / /home/my\040files rw shared:9 master:1 - nfs4 server:/x rw" + "\n"
        "50 1 0:51 / /mnt/c rw - 9p drvfs rw\n"
        "broken\n"
    )
    assert remote_mounts(str(table)) == ("/home/my files", "/mnt/c")
    assert remote_mounts(str(tmp_path / "missing")) == ()


async def test_a_folder_that_was_closed_to_us_is_entered_when_it_opens(tmp_path: Path) -> None:
    """The superuser is not kept out, so the folder is one that cannot be listed for another reason."""
    lay_out(tmp_path)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert isinstance(changes.watcher, FolderWatcher)
        inner = absolute(tmp_path / "folder" / "inner")
        changes.watcher._tree._drop(inner)  # pyright: ignore[reportPrivateUsage] -- as if listing it had failed
        os.chmod(inner, 0o700)
        assert await changes.found() == ["created folder/inner/deep"]


async def test_a_deep_tree_does_not_exhaust_the_stack(tmp_path: Path) -> None:
    depth = 600
    deep = tmp_path / "a" / "/".join("b" * depth)
    os.makedirs(deep)
    async with watched(tmp_path, EVERYTHING) as changes:
        assert changes.health.watched == depth + 2
        (tmp_path / "a").rename(tmp_path / "c")
        assert len(await changes.found()) == 2 * (depth + 1)
        shutil.move(tmp_path / "c", tmp_path / "away")
        (tmp_path / "away").rename(tmp_path / "c")
        await changes.found()
        shutil.rmtree(tmp_path / "c")
        assert len(await changes.found()) == depth + 1


@pytest.mark.proves("F89")
async def test_many_events_are_dealt_with_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watcher, "INLINE_BYTES", 0)
    async with watched(tmp_path, EVERYTHING) as changes:
        (tmp_path / "new").touch()
        assert await changes.found() == ["created new"]


@pytest.mark.proves("F89", "T43")
async def test_a_tree_that_comes_or_goes_at_once_is_walked_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event may stand for any number of folders."""
    listed = list[str]()

    def counted(folder: AbsPath, *, follow: bool) -> listing.Listing | listing.Shortage | None:
        listed.append(folder)
        return listing.listing(folder, follow=follow)

    monkeypatch.setattr(tree, "listing", counted)
    beside, root = tmp_path / "beside", tmp_path / "root"
    lay_out(beside)
    root.mkdir()
    async with watched(root, EVERYTHING) as changes:
        for origin, target, change in ((beside, root / "big", "created"), (root / "big", beside, "deleted")):
            listed.clear()
            origin.rename(target)
            assert changes.watcher.drain_now() is None
            assert not listed
            assert f"{change} big/folder/inner/deep" in await changes.found()
        (root / "file").touch()
        assert changes.watcher.drain_now() is not None
