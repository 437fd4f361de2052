"""A folder of our own that shows one worktree after the other: what a server reads that several worktrees share.

It has the files of the worktree whose turn it is, ignored ones too, because sources import generated code; folders of
dependencies are links, and other worktrees inside of it are left out. To go on to another worktree writes the files in
which the two differ, and nothing else. What cannot be shown so that every path still means the same is not shown at
all: `Unshareable`.
"""

import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from struct import Struct as Layout
from sys import intern

from msgspec import Raw, Struct

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS, below, is_inside
from pilotfish.protocol.codec import encode
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system import calls
from pilotfish.system.ownership import is_linked_worktree, is_of_linked_worktree, make_private_folders
from pilotfish.system.real_path import real_path
from pilotfish.system.source_files import REPOSITORIES

MAX_ENTRIES = 10_000
"""Files and folders of a worktree: all are looked at when its turn begins, 5 ms for a thousand."""

MAX_BYTES = 256 * 1024 * 1024
"""Of its files."""

MAX_DIFFERENT = 300
"""Files in which two worktrees may differ: with more, a server would do most of its work anew at every turn."""

DOUBT_NANOSECONDS = 2_000_000_000
"""A file as young as this may change again and look the same: its content is read every time."""

NOT_SHOWN = REPOSITORIES | {"__pycache__"}

LOOKS = Layout("=qqQ")

_FOLDER = b"/"


class Unshareable(Exception):
    """A worktree needs a server of its own; the message says why."""


class Moving(Struct, frozen=True):
    """Where a worktree and the folder of ours are, in the two spellings that messages have."""

    top: AbsPath
    folder: AbsPath

    def there(self, path: str) -> AbsPath:
        """A path of the worktree, in our folder; any other as it is."""
        return AbsPath(self.folder + path[len(self.top) :]) if is_inside(path, self.top) else AbsPath(path)

    def outgoing(self, params: Raw | bytes) -> Raw:
        """A message of the worktree's session, for the server: every string that begins with a path of the worktree."""
        said = bytes(params)
        for one, other in self._spellings():
            said = re.sub(rb'(?<!\\)"' + re.escape(one) + rb'(?=[/"])', lambda _: b'"' + other, said)  # noqa: B023
        return Raw(said)

    def incoming(self, result: Raw | bytes) -> Raw:
        """What the server says, for the session: our folder occurs in no text but as that worktree's place."""
        said = bytes(result)
        for one, other in self._spellings():
            said = said.replace(other, one)
        return Raw(said)

    def _spellings(self) -> tuple[tuple[bytes, bytes], ...]:
        uris = uri_of(self.top).encode(), uri_of(self.folder).encode()
        return uris, (encode(self.top)[1:-1], encode(self.folder)[1:-1])


class Tree:
    """What is known of the files of one worktree."""

    def __init__(self, top: AbsPath) -> None:
        self.top = top
        self._digests: dict[str, bytes] = {}
        """How each file looks (`LOOKS`), and its digest: of 900 files that is 0.2 MB."""

    def entries(self) -> dict[str, bytes]:
        """What is at each relative path: a folder, the aim of a link, or the digest of a file; folders come first."""
        found: dict[str, bytes] = {}
        size, digests, young = 0, self._digests, time.time_ns() - DOUBT_NANOSECONDS
        self._digests = {}
        for name, entry in self._walk():
            if (said := self._link_or_folder(entry)) is None:
                try:
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    looks = LOOKS.pack(status.st_mtime_ns, status.st_size, status.st_ino)
                    known = digests.get(name, b"")
                    said = known[LOOKS.size :] if known.startswith(looks) else _digest(_content(entry.path))
                except FileNotFoundError:
                    continue
                if max(status.st_mtime_ns, status.st_ctime_ns) < young:
                    self._digests[name] = looks + said
                size += status.st_size
            found[name] = said
            if len(found) > MAX_ENTRIES or size > MAX_BYTES:
                raise Unshareable("it has too many files")
        return found

    def look(self, name: str) -> bytes | None:
        """The same for one path; None where nothing is."""
        folder, last = os.path.split(os.path.join(self.top, name))
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            entry = next((one for one in entries if one.name == last), None)
            if entry is not None:
                return self._link_or_folder(entry) or _digest(_content(entry.path))
        return None

    def _walk(self) -> "Iterator[tuple[str, os.DirEntry[str]]]":
        left = [""]
        while left:
            folder = left.pop()
            with suppress(FileNotFoundError), os.scandir(os.path.join(self.top, folder)) as entries:
                for entry in entries:
                    if entry.name in NOT_SHOWN:
                        continue
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder and is_linked_worktree(entry.path):
                        continue
                    name = intern(os.path.join(folder, entry.name))
                    yield name, entry
                    if is_folder and entry.name not in DEPENDENCY_FOLDERS:
                        left.append(name)

    def _link_or_folder(self, entry: "os.DirEntry[str]") -> bytes | None:
        if entry.name in DEPENDENCY_FOLDERS and entry.is_dir():
            return os.fsencode(f"={real_path(entry.path)}")
        if entry.is_symlink():
            aim = os.readlink(entry.path)
            full = os.path.normpath(os.path.join(os.path.dirname(entry.path), aim))
            if is_inside(full, self.top) == os.path.isabs(aim):
                raise Unshareable(f"{entry.path} is a link that would mean something else elsewhere")
            return os.fsencode(f">{aim}")
        return _FOLDER if entry.is_dir(follow_symlinks=False) else None


class Mirror:
    """The only writer of its folder."""

    def __init__(self, folder: AbsPath, tree: Tree) -> None:
        """Raises `Unshareable`; blocking, as all of this."""
        self.folder = folder
        self._shown: dict[str, bytes] = {}
        self._written_at = 0
        wanted = tree.entries()
        make_private_folders(os.path.dirname(folder))
        _remove_abandoned(os.path.dirname(folder))
        shutil.rmtree(folder, ignore_errors=True)
        make_private_folders(folder)
        repository = os.path.join(tree.top, ".git")
        if os.path.isfile(repository):
            # Servers leave out what git ignores, as long as they see a repository.
            shutil.copyfile(repository, os.path.join(folder, ".git"))
        self._show(tree, wanted)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def become(self, tree: Tree) -> list[PathChange]:
        """Show a worktree as it is now; returns what was other. Raises `Unshareable` before anything is written."""
        wanted = tree.entries()
        different = {name for name, _ in wanted.items() ^ self._shown.items()}
        if len(different) > MAX_DIFFERENT:
            raise Unshareable(f"it differs from the others in {len(different)} files")
        for name in different:
            if b"=" in (wanted.get(name, b"")[:1], self._shown.get(name, b"")[:1]):
                raise Unshareable(f"{name} is not the same as in the others")
        return self._show(tree, wanted)

    def follow(self, tree: Tree, paths: Iterable[AbsPath]) -> None:
        """These have changed in the worktree that is shown. What cannot be followed, the next turn says."""
        for path in paths:
            segments = below(path, tree.top) or ()
            if not DEPENDENCY_FOLDERS.union(NOT_SHOWN).isdisjoint(segments) or is_of_linked_worktree(path, tree.top):
                continue
            for name in accumulate(segments, "{}/{}".format):
                with suppress(OSError, Unshareable):
                    said = tree.look(name)
                    if said is not None and said != self._shown.get(name):
                        self._show(tree, {**self._shown, name: said})
                    elif said is None and name in self._shown:
                        self._show(tree, {one: kept for one, kept in self._shown.items() if not is_inside(one, name)})

    def _show(self, tree: Tree, wanted: dict[str, bytes]) -> list[PathChange]:
        changes: list[PathChange] = []
        shown = self._shown
        try:
            # What is inside of a folder goes before it.
            for name in sorted((name for name in shown if name not in wanted), reverse=True):
                self._remove(name)
                changes.append(self._change(name, Change.DELETED))
            for name, said in wanted.items():
                before = shown.get(name)
                if before == said:
                    continue
                if before is not None and (said[:1], before[:1]) != (b"#", b"#"):
                    self._remove(name)
                with suppress(FileNotFoundError):  # Just deleted: the next turn shows that.
                    shown[name] = self._put(tree, name, said)
                changes.append(self._change(name, Change.CREATED if before is None else Change.CHANGED))
        except OSError as error:
            raise Unshareable(str(error)) from error
        return changes

    def _put(self, tree: Tree, name: str, said: bytes) -> bytes:
        path = os.path.join(self.folder, name)
        if said == _FOLDER:
            os.mkdir(path)
        elif said[:1] in {b"=", b">"}:
            os.symlink(said[1:], path)
        else:
            content = _content(os.path.join(tree.top, name))
            beside = os.path.join(self.folder, ".git-new")
            with open(beside, "wb") as file:
                file.write(content)
            # With a time that this file never had: some servers go by it.
            self._written_at = max(time.time_ns(), self._written_at + 1_000)
            os.utime(beside, ns=(self._written_at, self._written_at))
            os.replace(beside, path)
            return _digest(content)
        return said

    def _remove(self, name: str) -> None:
        path = os.path.join(self.folder, name)
        if self._shown.pop(name) == _FOLDER:
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def _change(self, name: str, change: Change) -> PathChange:
        return PathChange(AbsPath(os.path.join(self.folder, name)), change)


def _remove_abandoned(folders: str) -> None:
    """The name of each ends with the process that made it: one that was killed has left its own."""
    from psutil import pid_exists

    for name in os.listdir(folders):
        maker = name.rpartition("-")[2]
        if maker.isdigit() and not pid_exists(int(maker)):
            shutil.rmtree(os.path.join(folders, name), ignore_errors=True)


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | calls.O_NOFOLLOW | calls.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        return file.read()


def _digest(content: bytes) -> bytes:
    return b"#" + hashlib.blake2b(content, digest_size=16).digest()
