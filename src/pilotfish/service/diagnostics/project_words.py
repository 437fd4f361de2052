"""The words of each project, for finding the files that an edit may have broken.

An index is built in a worker thread when a root is first asked about, and asked about while it is being built it says
so: nobody waits for it longer than they can. Afterwards it follows what the watcher of the root tells (`changed`), a
file at a time; where the watcher has lost something (`lost`), the disk is looked at again, and only files that look
different are read.
"""

import os
import stat
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping

import anyio
import anyio.to_thread
from msgspec import Struct, field

from pilotfish.feedback.word_index import MAX_FILE_BYTES, WordIndex, checksums
from pilotfish.model import AbsPath
from pilotfish.protocol.notebooks import code_bytes
from pilotfish.service.project_shapes import Look, ShapeCache
from pilotfish.service.recent import Recent
from pilotfish.system import calls
from pilotfish.system.source_files import files_below

MAX_ROOTS = 16
"""Roots whose words are kept, some 500 bytes for each file."""

MAX_FILES = 50_000
"""Of one root. A project that has more is searched in these only, and what is said about it is said to be partial."""

MAX_DIRTY = 2_000
"""Changed files that are read again one by one; after more, the whole root is looked at."""

BINARY_PREFIX = 8 * 1024
"""A file with a zero byte in its first ones is no text, and mentions nothing."""


class Found(Struct, frozen=True):
    """The files that mention something, with how many of the words; `complete` when every file was searched."""

    files: Mapping[AbsPath, int]
    complete: bool


class _Root(Struct):
    index: WordIndex = field(default_factory=WordIndex)
    looks: dict[AbsPath, Look] = field(default_factory=dict[AbsPath, Look])
    dirty: set[AbsPath] = field(default_factory=set[AbsPath])
    outdated: bool = True
    """Something was not followed: the whole root has to be looked at."""
    complete: bool = False
    scanning: anyio.Lock = field(default_factory=anyio.Lock)


class ProjectWords:
    def __init__(self, is_followed: Callable[[AbsPath], bool] = lambda _root: True) -> None:
        self.is_followed = is_followed
        """Whether every change below a root is noticed; where not, the disk is looked at for each question."""
        self._roots: Recent[AbsPath, _Root] = Recent(MAX_ROOTS)
        self.shapes = ShapeCache()

    def changed(self, root: AbsPath, paths: Iterable[AbsPath]) -> None:
        """These files below a root were written, created or deleted."""
        known = self._roots.get(root)
        if known is not None and not known.outdated:
            known.dirty.update(paths)
            if len(known.dirty) > MAX_DIRTY:
                self.lost(root)

    def lost(self, root: AbsPath) -> None:
        """Changes below a root may have been missed."""
        known = self._roots.get(root)
        if known is not None:
            known.outdated = True
            known.dirty.clear()

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep the words of these roots no longer."""
        self._roots.drop(is_meant)

    async def mentions(
        self, root: AbsPath, words: Collection[str], extensions: Collection[str], seconds: float
    ) -> Found | None:
        """The files below a root, with one of these extensions, that mention any of the words.

        None when the index is not there in time; it is then still being built.
        """
        known = await self._up_to_date(root, seconds)
        if known is None:
            return None
        wanted = tuple(extensions)
        files = known.index.mentions(words)
        return Found({path: count for path, count in files.items() if path.endswith(wanted)}, known.complete)

    async def index(self, root: AbsPath, seconds: float) -> tuple[WordIndex, bool] | None:
        """The words of a root as they are now, for another thread, and whether they are of all files."""
        known = await self._up_to_date(root, seconds)
        return None if known is None else (known.index.copy(), known.complete)

    async def files(self, root: AbsPath, seconds: float) -> Found | None:
        """Every source file below a root, as `mentions` has them."""
        known = await self._up_to_date(root, seconds)
        return None if known is None else Found(dict.fromkeys(known.index, 0), known.complete)

    async def _up_to_date(self, root: AbsPath, seconds: float) -> _Root | None:
        known = self._roots.get(root)
        if known is None:
            known = _Root()
            self._roots.put(root, known)
        if not self.is_followed(root):
            self.lost(root)
        with anyio.move_on_after(seconds) as scope:
            await self._bring_up_to_date(root, known)
        return None if scope.cancelled_caught else known

    async def _bring_up_to_date(self, root: AbsPath, known: _Root) -> None:
        async with known.scanning:
            if known.outdated:
                # What changes from here on is told by `changed`, or is seen by the scan itself.
                known.outdated = False
                try:
                    scan = await anyio.to_thread.run_sync(_scan, root, dict(known.looks), abandon_on_cancel=True)
                except BaseException:
                    known.outdated = True
                    raise
                _take(known, scan)
            if known.dirty:
                dirty, known.dirty = known.dirty, set()
                try:
                    scan = await anyio.to_thread.run_sync(_read_all, dirty, dict[AbsPath, Look]())
                except BaseException:
                    known.dirty |= dirty
                    raise
                _take(known, scan)


class _Scan(Struct):
    read: dict[AbsPath, "tuple[Look, array[int] | None]"] = field(
        default_factory=dict[AbsPath, "tuple[Look, array[int] | None]"]
    )
    gone: set[AbsPath] = field(default_factory=set[AbsPath])
    complete: bool | None = None
    """None when only some files were looked at."""


def _take(known: _Root, scan: _Scan) -> None:
    for path, (look, words) in scan.read.items():
        known.looks[path] = look
        known.index.put_words(path, words)
    for path in scan.gone:
        known.looks.pop(path, None)
        known.index.remove(path)
    if scan.complete is not None:
        known.complete = scan.complete


def _scan(root: AbsPath, looks: Mapping[AbsPath, Look]) -> _Scan:
    """Look at every source file below the root, and read those that look different. Blocking."""
    paths = list[AbsPath]()
    for path in files_below(root):
        if len(paths) == MAX_FILES:
            break
        paths.append(path)
    else:
        scan = _read_all(paths, looks)
        scan.gone |= looks.keys() - set(paths)
        scan.complete = True
        return scan
    scan = _read_all(paths, looks)
    scan.complete = False
    return scan


def _read_all(paths: Iterable[AbsPath], looks: Mapping[AbsPath, Look]) -> _Scan:
    scan = _Scan()
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | calls.O_NONBLOCK | calls.O_NOFOLLOW)
        except OSError:
            scan.gone.add(path)
            continue
        try:
            status = os.fstat(descriptor)
            look = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            if not stat.S_ISREG(status.st_mode):
                scan.gone.add(path)
            elif looks.get(path) != look:
                with open(descriptor, "rb", closefd=False) as file:  # which a folder would refuse
                    scan.read[path] = look, _words(path, file.read(MAX_FILE_BYTES + 1))
        finally:
            os.close(descriptor)
    return scan


def _words(path: AbsPath, content: bytes) -> "array[int] | None":
    if b"\0" in content[:BINARY_PREFIX]:
        return array("I")
    return checksums(content if len(content) > MAX_FILE_BYTES else code_bytes(path, content))
