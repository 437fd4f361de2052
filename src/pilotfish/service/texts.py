"""The texts of files on disk, each read once for all servers.

A file that has not changed is not read again. Size and modification time do not tell: `cp -p`, `rsync` and `touch -r`
leave both as they were; the time of the last change of status does, because no program can set it. `stat` cannot tell
two writes within one tick of the clock apart, so a file that was read soon after its last change is read again the next
time.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.protocol.notebooks import NotANotebook, code_of, is_notebook
from pilotfish.protocol.positions import Text
from pilotfish.system.ports import Clock, Files, FileText

MAX_KEPT_BYTES = 32 * 1024 * 1024
"""Texts that are kept: thousands of ordinary files."""

DOUBT_SECONDS = 0.1
"""File systems' clocks tick every 4 to 10 ms, those of networked ones more slowly."""

BINARY_PROBE = 8192
"""Where a NUL makes a text binary: as of files."""

TICK_SECONDS, COARSE_SECONDS = 0.02, 2.0
"""Steps of file times: of nearly all file systems, and of coarse ones."""


class Given(Struct, frozen=True):
    """A text that a caller gave; it stands in the place of a file's until somebody writes the file after that."""

    text: str
    at: float
    """The time of day."""
    on_disk: str | None
    """The text of the file at that moment; None: it could not be read. Where the clock of the file system is too coarse
    to say which came first, this does."""
    order: float
    """Its order among all texts, see `Ledgers.next_order`."""


class _Kept(Struct, frozen=True):
    file: FileText
    text: Text
    """The same text with the index of its lines."""
    certain: bool


class Texts:
    def __init__(self, files: Files, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._kept: OrderedDict[AbsPath, _Kept] = OrderedDict()
        self._bytes = 0

    async def current(self, path: AbsPath) -> FileText:
        """The file as it is now; raises `Refused` when it cannot be read as text."""
        return (await self._current(path)).file

    async def text(self, path: AbsPath) -> Text:
        """Its text with an index of its lines; raises as `current` does."""
        return (await self._current(path)).text

    async def readable(self, path: AbsPath) -> str | None:
        """Its text; None where there is no file, or none that can be read as text."""
        try:
            return (await self._current(path)).file.text
        except Refused:
            return None

    async def unchanged(self, path: AbsPath) -> Text | None:
        """Its text if that is kept and `stat` says that the file is the same."""
        kept = await self._unchanged(path)
        return None if kept is None else kept.text

    async def unchanged_file(self, path: AbsPath) -> FileText | None:
        """The same for the whole file."""
        kept = await self._unchanged(path)
        return None if kept is None else kept.file

    def age(self, path: AbsPath) -> float | None:
        """Seconds since the file was changed or moved, or a little less; None: not known."""
        kept = self._kept.get(path)
        if kept is None:
            return None
        return self._clock.wall() - _changed_ns(kept.file) / 1e9 - _step(kept.file)

    async def given(self, path: AbsPath, text: str, order: float) -> Given:
        """A text that a caller gives now, with what is on disk beside it."""
        at = self._clock.wall()
        return Given(text, at, await self.readable(path), order)

    @staticmethod
    def was_written_since(given: Given, file: FileText) -> bool:
        """Whether somebody wrote the file, as it was read by now, after that text was given."""
        after = _changed_ns(file) / 1e9 - given.at
        return file.text != given.on_disk if abs(after) <= _step(file) else after > 0

    def doubt(self, paths: Iterable[AbsPath]) -> None:
        """Read these files again when they are needed, whatever `stat` says: they were written.

        A write through a memory mapping changes the times of a file at its first store alone.
        """
        for path in paths:
            kept = self._kept.get(path)
            if kept is not None:
                self._kept[path] = replace(kept, certain=False)

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep these files no longer; they are read again when they are needed."""
        for path in tuple(filter(is_meant, self._kept)):
            self._drop(path)

    async def _unchanged(self, path: AbsPath) -> _Kept | None:
        kept = self._kept.get(path)
        if kept is None or not kept.certain or not await self._is_same(kept.file):
            return None
        self._kept.move_to_end(path)
        return kept

    async def _current(self, path: AbsPath) -> _Kept:
        kept = await self._unchanged(path)
        if kept is not None:
            return kept
        kept = self._kept.get(path)
        self._drop(path)
        file = await self._files.read_text(path)
        if is_notebook(path):
            sent = await anyio.to_thread.run_sync(text_to_send, path, file.text)
            file = dataclasses.replace(file, text=sent)
        changed_at = _changed_ns(file) / 1e9
        text = kept.text if kept is not None and kept.text.string == file.text else Text(file.text)
        kept = _Kept(file, text, certain=self._clock.wall() - changed_at > DOUBT_SECONDS)
        self._keep(path, kept)
        return kept

    async def _is_same(self, known: FileText) -> bool:
        found = await self._files.identity(known.path)
        return found is not None and found == known.identity and found.ctime_ns == known.identity.ctime_ns

    def _keep(self, path: AbsPath, kept: _Kept) -> None:
        self._kept[path] = kept
        self._bytes += len(kept.file.content)
        while self._bytes > MAX_KEPT_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, path: AbsPath) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._bytes -= len(kept.file.content)


def text_to_send(path: str, text: str) -> str:
    """The text that servers are sent of a file with this one; raises `Refused` for a notebook that cannot be."""
    try:
        return code_of(text) if is_notebook(path) else text
    except NotANotebook as why:
        raise Refused(Code.UNSUPPORTED, f"{path} cannot be checked as a notebook: {why}") from why


def old_text_to_send(path: str, text: str) -> str | None:
    """The same of the text before an edit, which nobody needs to have; None where it cannot be sent."""
    try:
        return text_to_send(path, text)
    except Refused:
        return None


def refuse_binary(path: AbsPath, text: str) -> None:
    """Raise `Refused` for a text that is none, handed over or not, as for such a file."""
    if "\0" in text[:BINARY_PROBE]:
        raise Refused(Code.UNSUPPORTED, f"binary file: {path}")


def _step(file: FileText) -> float:
    """Times of its file system that are not further apart than this may be in either order."""
    return COARSE_SECONDS if _changed_ns(file) % 1_000_000_000 == 0 else TICK_SECONDS


def _changed_ns(file: FileText) -> int:
    return max(file.identity.mtime_ns, file.identity.ctime_ns)
