"""Random operations on files, and what a reader who is told of changes believes, against what is there."""

import os
import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from pilotfish.protocol.watching import Change, PathChange

NAMES = tuple("abcdef")
"""Few, so that names are used again and again for other things."""


class Churn:
    """Changes a folder at random. Every content is written once only, so that a change that was missed shows."""

    def __init__(self, root: Path, outside: Path, seed: int) -> None:
        self._root = root
        self._outside = outside
        self._random = random.Random(seed)
        self._writes = 0
        self._operations: tuple[Callable[[], None], ...] = (
            self._write,
            self._write,
            self._append,
            self._replace,
            self._delete,
            self._make_folders,
            self._move_file,
            self._move_folder,
            self._move_folder,
            self._remove_folder,
            self._move_out,
            self._move_in,
            self._link,
            self._swap_kinds,
            self._replace_folder,
        )

    def step(self) -> None:
        # What was chosen may not fit what is there: then the disk is as it was, or half changed, which is as good.
        with suppress(OSError):
            self._random.choice(self._operations)()

    def drains(self) -> bool:
        """Whether to look at the changes now."""
        return self._random.random() < 0.05

    # --- Where -------------------------------------------------------------------------------------------------------

    def _folder(self) -> Path:
        folder = self._root
        while self._random.random() < 0.6:
            inside = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
            if not inside:
                break
            folder = self._random.choice(inside)
        return folder

    def _somewhere(self) -> Path:
        return self._folder() / self._random.choice(NAMES)

    def _text(self) -> str:
        self._writes += 1
        return str(self._writes)

    # --- What --------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        self._somewhere().write_text(self._text())

    def _append(self) -> None:
        with self._somewhere().open("a") as file:
            file.write(self._text())

    def _replace(self) -> None:
        """As careful editors save."""
        target = self._somewhere()
        new = target.with_name("new~")
        new.write_text(self._text())
        new.replace(target)

    def _delete(self) -> None:
        self._somewhere().unlink()

    def _make_folders(self) -> None:
        folder = self._somewhere() / self._random.choice(NAMES) / self._random.choice(NAMES)
        folder.mkdir(parents=True)
        for name in self._random.sample(NAMES, 2):
            (folder / name).write_text(self._text())

    def _move_file(self) -> None:
        self._somewhere().rename(self._somewhere())

    def _move_folder(self) -> None:
        self._folder().rename(self._somewhere())

    def _remove_folder(self) -> None:
        folder = self._somewhere()
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)

    def _move_out(self) -> None:
        self._somewhere().rename(self._outside / self._random.choice(NAMES))

    def _move_in(self) -> None:
        (self._outside / self._random.choice(NAMES)).rename(self._somewhere())

    def _link(self) -> None:
        self._somewhere().symlink_to(self._random.choice([".", "..", "a", "b/c", "missing", str(self._root)]))

    def _swap_kinds(self) -> None:
        path = self._somewhere()
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
            path.write_text(self._text())
        else:
            path.unlink()
            path.mkdir()

    def _replace_folder(self) -> None:
        """Another folder under the same name, as a generator makes it."""
        folder = self._somewhere()
        new = folder.with_name("new~")
        new.mkdir()
        (new / "a").write_text(self._text())
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def picture(root: Path) -> dict[str, str]:
    """Every file below `root` and its content, by walking; the content of a link is where it leads."""
    return {
        os.path.join(folder, name): content(os.path.join(folder, name))
        for folder, folders, files in os.walk(root)
        for name in (*files, *(name for name in folders if os.path.islink(os.path.join(folder, name))))
    }


def content(path: str) -> str:
    """Of a file, or of a link; raises `OSError` for anything else, also when it changes while it is looked at."""
    with suppress(OSError):
        return f"→ {os.readlink(path)}"
    with open(path, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
        return file.read()


class Reader:
    """Believes what it is told: it reads a file when told that it was made or changed, and never otherwise."""

    def __init__(self, root: Path) -> None:
        self.believed = picture(root)

    def told(self, changes: Iterable[PathChange]) -> None:
        for found in changes:
            if found.change is Change.DELETED:
                self.believed.pop(found.path, None)
                continue
            try:
                self.believed[found.path] = content(found.path)
            except OSError:
                self.believed.pop(found.path, None)
