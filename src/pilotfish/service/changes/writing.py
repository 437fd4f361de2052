"""One transaction on the file system: what each phase does, and how it is undone.

All its state is in the plan, so another process can undo it. Paths are walked by descriptors (`policy.openat`), so that
a folder that is replaced by a link does not lead outside.
"""

import errno
import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum, auto

from pilotfish.errors import Code, Failure, Refused
from pilotfish.operations.edits.staged import Put, Regular, Staged
from pilotfish.policy.openat import (
    NEW_FILE_FLAGS,
    NEW_FILE_MODE,
    add_name,
    digest,
    drop_name,
    explained,
    give_name,
    identity_of,
    parent_of,
    status_of,
    sync_folder,
    write_all,
)
from pilotfish.service.changes.journal import FolderPlace, JournalEntry, Plan

STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
"""Errors for a folder that is not empty, is gone, or is no longer a folder."""


class FileState(Enum):
    """A file compared with the plan."""

    BEFORE = auto()
    AFTER = auto()
    OTHER = auto()
    """Another program has changed it."""


class Writing:
    def __init__(self, token: str, plan: Plan, *, begun: bool = False) -> None:
        """`begun`: by a process that is gone, so any entry may have been written."""
        self._token = token
        self._plan = plan
        self._reached = plan.entries if begun else ()
        """The entries that may have been written: only these are undone."""

    # --- Doing -------------------------------------------------------------------------------------------------------

    def prepare(self, staged: Staged) -> None:
        """Give every file a hidden second name, and write the new contents beside it; raises `Refused`."""
        for root, segments in self._plan.made:
            with parent_of(root, segments) as (folder, name), explained(segments), suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        for number, (step, entry) in enumerate(zip(staged.steps, self._plan.entries, strict=True)):
            with parent_of(entry.root, entry.segments) as (folder, name), explained(entry.segments):
                self._reached = self._plan.entries[: number + 1]
                if entry.before is not None:
                    add_name(folder, name, folder, self._old(number))
                    self._expect_old(folder, name, number, entry)
                if isinstance(step, Put):
                    self._write_new(folder, self._new(number), step)
        self._sync()

    def commit(self) -> None:
        """Raises `Refused`, as `stale` when a file is not the one that was read."""
        for number, entry in enumerate(self._plan.entries):
            with parent_of(entry.root, entry.segments) as (folder, name), explained(entry.segments):
                if entry.before is not None:
                    self._expect_old(folder, name, number, entry)
                if entry.after is None:
                    os.unlink(name, dir_fd=folder)
                elif entry.before is None:
                    give_name(folder, self._new(number), name)
                else:
                    os.replace(self._new(number), name, src_dir_fd=folder, dst_dir_fd=folder)
        for number, entry in enumerate(self._plan.entries):
            if entry.before is not None:
                with parent_of(entry.root, entry.segments) as (folder, _):
                    self._expect_old(folder, None, number, entry)
        self._sync()

    def clean(self) -> None:
        """After the commit: remove the hidden names, and the folders that were moved away."""
        self._drop_hidden()
        _remove_folders(self._plan.emptied)

    # --- Undoing -----------------------------------------------------------------------------------------------------

    def undo(self) -> tuple[str, ...]:
        """Restore every file; returns those that another program has changed, which stay.

        A file that cannot be restored does not stop the others: the first failure is raised at the end.
        """
        left: list[str] = []
        failures: list[Failure | OSError] = []
        for number, entry in enumerate(self._reached):
            try:
                if self._undo(number, entry) is FileState.OTHER:
                    left.append(_shown(entry))
            except (Failure, OSError) as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        return tuple(left)

    def forget(self) -> None:
        """After the undo: remove the hidden names, and the folders that were created."""
        self._sync()
        self._drop_hidden()
        _remove_folders(self._plan.made)

    def is_complete(self) -> bool:
        """Whether no file is known to be in its old state: then the last step was taken."""
        return not {FileState.BEFORE, None} & {*self._states()}

    def changed(self) -> tuple[str, ...]:
        """The files that are not in their old state, or may not be."""
        states = zip(self._reached, self._states(), strict=True)
        return tuple(_shown(entry) for entry, state in states if state is not FileState.BEFORE)

    def _states(self) -> list[FileState | None]:
        return [self._maybe_state(number, entry) for number, entry in enumerate(self._reached)]

    def _maybe_state(self, number: int, entry: JournalEntry) -> FileState | None:
        try:
            return self._state(number, entry)
        except (Failure, OSError):
            return None

    def _undo(self, number: int, entry: JournalEntry) -> FileState:
        state = self._state(number, entry)
        with _where(entry) as place:
            if place is None:
                return state
            folder, name = place
            if state is FileState.AFTER and entry.before is None:
                os.unlink(name, dir_fd=folder)
            elif state is FileState.AFTER and entry.after is None:
                give_name(folder, self._old(number), name)
            elif state is FileState.AFTER:
                os.replace(self._old(number), name, src_dir_fd=folder, dst_dir_fd=folder)
        return state

    def _state(self, number: int, entry: JournalEntry) -> FileState:
        with _where(entry) as place:
            if place is None or dict(self._plan.roots)[entry.root] != os.stat(entry.root).st_ino:
                return FileState.BEFORE if entry.before is None else FileState.OTHER
            folder, name = place
            status, old = status_of(folder, name), status_of(folder, self._old(number))
            if entry.before is None:
                if status is None:
                    return FileState.BEFORE
            elif status is None:
                # We remove only what the plan removes: any other missing file was removed by another program.
                return FileState.OTHER if entry.after is not None or old is None else FileState.AFTER
            elif identity_of(status) == entry.before or (old is not None and os.path.samestat(status, old)):
                return FileState.BEFORE
            return (
                FileState.AFTER if entry.after is not None and digest(folder, name) == entry.after else FileState.OTHER
            )

    # --- The files beside --------------------------------------------------------------------------------------------

    def _new(self, number: int) -> str:
        return f".pilotfish-{self._token}-{number}.new"

    def _old(self, number: int) -> str:
        return f".pilotfish-{self._token}-{number}.old"

    def _write_new(self, folder: int, new: str, step: Put) -> None:
        if isinstance(step.content, Regular):
            source = step.content
            with parent_of(source.place.root, source.place.segments) as (source_folder, name):
                add_name(source_folder, name, folder, new)
                status = status_of(source_folder, name)
            if status is None or identity_of(status) != source.identity:
                raise _stale(source.place.path)
            return
        descriptor = os.open(new, NEW_FILE_FLAGS, NEW_FILE_MODE if step.like is None else 0o600, dir_fd=folder)
        try:
            if step.like is not None:
                os.fchmod(descriptor, step.like.mode)
            write_all(descriptor, step.content)
        finally:
            os.close(descriptor)

    def _expect_old(self, folder: int, name: str | None, number: int, entry: JournalEntry) -> None:
        """Raise unless the file is the one that was read and has not been written since.

        By its name, and by its second name where that is the same file and not a copy.
        """
        old = status_of(folder, self._old(number))
        linked = old is not None and entry.before is not None and old.st_ino == entry.before.inode
        statuses = ([status_of(folder, name)] if name is not None else []) + ([old] if linked else [])
        if any(status is None or identity_of(status) != entry.before for status in statuses):
            raise _stale(_shown(entry))

    def _drop_hidden(self) -> None:
        for number, entry in enumerate(self._reached):
            with _where(entry) as place:
                if place is not None:
                    drop_name(place[0], self._new(number))
                    drop_name(place[0], self._old(number))

    def _sync(self) -> None:
        folders = {(entry.root, entry.segments[:-1]): entry for entry in self._reached}
        for entry in folders.values():
            with _where(entry) as place:
                if place is not None:
                    with explained(entry.segments):
                        sync_folder(place[0])


@contextmanager
def _where(entry: JournalEntry) -> Generator[tuple[int, str] | None]:
    """The open folder of a file and its name in it; None when there is no folder. Raises `Refused`."""
    with ExitStack() as stack:
        place: tuple[int, str] | None = None
        try:
            place = stack.enter_context(parent_of(entry.root, entry.segments))
        except Refused as refusal:
            if refusal.code is not Code.FILE_MISSING:
                raise
        yield place


def _remove_folders(folders: Iterable[FolderPlace]) -> None:
    """The last first; one that is not empty stays."""
    for root, segments in reversed(tuple(folders)):
        with _where(JournalEntry(root, segments, None, None)) as place:
            if place is not None:
                try:
                    os.rmdir(place[1], dir_fd=place[0])
                except OSError as error:
                    if error.errno not in STAYS:
                        raise


def _stale(path: str) -> Refused:
    return Refused(Code.STALE, f"{path} has changed since the edit was computed", hint="Try again.")


def _shown(entry: JournalEntry) -> str:
    return os.path.join(entry.root, *entry.segments)
