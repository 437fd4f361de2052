"""Writing several files, all or none, also when the process is killed (T37, F57, F58).

Four phases, each durable before the next:
1. The journal says what will happen.
2. *Prepare*: every file that will change gets a hidden second name (a link to the same file), and the new contents are
   written beside it. A full disk or a read-only folder fails here, before anything has changed.
3. *Commit*: renames only. They need no space, and each file is old or new at every moment.
4. The journal says that it is done, and the hidden names are removed.
A failure before the fourth phase is undone, also by renames; after a kill `recover` undoes it.

A file is replaced only if it is the one that was read. If another program writes to it at that moment, its write is
kept: the hidden name is still that file, and is renamed back.
All state of a transaction is in its plan, so another process can undo it. Paths are walked by descriptors
(`policy.openat`), so that a folder that is replaced by a link does not lead outside.
Everything here blocks: use a worker thread.
"""

import errno
import hashlib
import logging
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum, auto

from msgspec import Struct

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staged import Drop, Put, Regular, Staged
from pilotfish.policy.openat import (
    NEW_FILE_FLAGS,
    NEW_FILE_MODE,
    add_name,
    digest,
    drop_name,
    give_name,
    identity_of,
    parent_of,
    status_of,
    sync_folder,
    write_all,
)
from pilotfish.service.changes.journal import (
    FolderPlace,
    Journal,
    JournalEntry,
    Plan,
    lock_abandoned,
    new_journal,
    remove,
)
from pilotfish.system import calls

logger = logging.getLogger(__name__)

STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
"""Errors for a folder that is not empty, is gone, or is no longer a folder."""


def perform(staged: Staged, home: AbsPath) -> None:
    """Write all files, or none and raise why; `home` is the folder of the journals.

    `Refused`: nothing has changed; with `stale`, because another program changed a file. `Unavailable`: undoing failed
    as well, and the message names the files that have changed; the journal stays, and `recover` tries again.
    """
    if not staged.steps and not staged.emptied:
        return
    try:
        plan = _plan(staged)
        with new_journal(home) as journal:
            _write(journal, plan, staged, home)
    except OSError as error:
        raise Refused(Code.FILE_UNREADABLE, f"{error.filename or home}: {error.strerror}") from error


class Recovery(Struct, frozen=True):
    """The transactions of killed processes."""

    finished: int = 0
    undone: int = 0
    left: tuple[str, ...] = ()
    """Files that another program has changed since; they stay as they are."""


def recover(home: AbsPath) -> Recovery:
    """Finish or undo interrupted transactions; harmless at any time and in any number of processes."""
    finished = undone = 0
    left: list[str] = []
    for journal in lock_abandoned(home):
        try:
            plan = journal.read()
            if plan is not None:
                writing = Writing(journal.token, plan, begun=True)
                if journal.is_done or writing.is_complete():
                    writing.clean()
                    finished += 1
                else:
                    left += writing.undo()
                    writing.forget()
                    undone += 1
            remove(home, journal)
        except (Failure, OSError, ValueError) as error:
            # Its disk may not be mounted now: the next start tries again.
            logger.warning("not recovered journal=%s/%s error=%s", home, journal.token, error)
    return Recovery(finished, undone, tuple(left))


def _write(journal: Journal, plan: Plan, staged: Staged, home: AbsPath) -> None:
    writing = Writing(journal.token, plan)
    try:
        journal.write(plan)
        writing.prepare(staged)
        writing.commit()
        journal.finish()
    except BaseException as cause:
        _undo(writing, cause)
        with _tidying():
            writing.forget()
            remove(home, journal)
        raise
    with _tidying():
        writing.clean()
        remove(home, journal)


def _undo(writing: "Writing", cause: BaseException) -> None:
    try:
        writing.undo()
    except (Failure, OSError) as error:
        changed = ", ".join(path for path, state in writing.states() if state is not EntryState.BEFORE) or "nothing"
        raise Unavailable(
            Code.FILE_UNREADABLE,
            f"{cause}; undoing it failed: {error}. Changed files: {changed}",
            hint="The old contents are kept beside each file; the next start of pilotfish restores them.",
        ) from error


@contextmanager
def _tidying() -> Generator[None]:
    """The outcome is decided: what cannot be removed now is removed by the next start."""
    try:
        yield
    except (Failure, OSError) as error:
        logger.warning("hidden files not removed error=%s", error)


def _plan(staged: Staged) -> Plan:
    places = [step.place for step in staged.steps]
    roots = dict.fromkeys(place.root for place in (*places, *staged.emptied))
    return Plan(
        entries=tuple(_entry(step) for step in staged.steps),
        made=tuple(dict.fromkeys(folder for step in staged.steps for folder in _missing_folders(step))),
        emptied=tuple((place.root, place.segments) for place in staged.emptied),
        roots=tuple((root, os.stat(root).st_ino) for root in roots),
    )


def _entry(step: Put | Drop) -> JournalEntry:
    before = None if step.before is None else step.before.identity
    after = _digest_of(step.content) if isinstance(step, Put) else None
    return JournalEntry(step.place.root, step.place.segments, before, after)


def _digest_of(content: bytes | Regular) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    place = content.place
    with parent_of(place.root, place.segments) as (folder, name):
        found = digest(folder, name)
        status = status_of(folder, name)
        if status is None or identity_of(status) != content.identity:
            raise _stale(place.path)
        return found


def _missing_folders(step: Put | Drop) -> Iterator[FolderPlace]:
    root, segments = step.place.root, step.place.segments
    for depth in range(1, len(segments)):
        if not os.path.lexists(os.path.join(root, *segments[:depth])):
            yield root, segments[:depth]


# --- On the file system --------------------------------------------------------------------------------------------


class EntryState(Enum):
    """A file compared with the plan."""

    BEFORE = auto()
    AFTER = auto()
    OTHER = auto()
    """Another program has changed it."""
    UNKNOWN = auto()
    """It cannot be looked at now."""


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
            with parent_of(root, segments) as (folder, name), suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        for number, (step, entry) in enumerate(zip(staged.steps, self._plan.entries, strict=True)):
            with parent_of(entry.root, entry.segments) as (folder, name):
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
            with parent_of(entry.root, entry.segments) as (folder, name):
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
                if self._undo(number, entry) is EntryState.OTHER:
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
        return not {EntryState.BEFORE, EntryState.UNKNOWN} & {state for _, state in self.states()}

    def states(self) -> Iterator[tuple[str, EntryState]]:
        for number, entry in enumerate(self._reached):
            try:
                yield _shown(entry), self._state(number, entry)
            except (Failure, OSError):
                yield _shown(entry), EntryState.UNKNOWN

    def _undo(self, number: int, entry: JournalEntry) -> EntryState:
        state = self._state(number, entry)
        with _where(entry) as place:
            if place is None:
                return state
            folder, name = place
            if state is EntryState.AFTER and entry.before is None:
                os.unlink(name, dir_fd=folder)
            elif state is EntryState.AFTER and entry.after is None:
                give_name(folder, self._old(number), name)
            elif state is EntryState.AFTER:
                os.replace(self._old(number), name, src_dir_fd=folder, dst_dir_fd=folder)
        return state

    def _state(self, number: int, entry: JournalEntry) -> EntryState:
        with _where(entry) as place:
            if place is None or dict(self._plan.roots)[entry.root] != os.stat(entry.root).st_ino:
                return EntryState.BEFORE if entry.before is None else EntryState.OTHER
            folder, name = place
            status, old = status_of(folder, name), status_of(folder, self._old(number))
            if entry.before is None:
                if status is None:
                    return EntryState.BEFORE
            elif status is None:
                # We remove only what the plan removes: any other missing file was removed by another program.
                return EntryState.OTHER if entry.after is not None or old is None else EntryState.AFTER
            elif identity_of(status) == entry.before or (old is not None and os.path.samestat(status, old)):
                return EntryState.BEFORE
            return (
                EntryState.AFTER
                if entry.after is not None and digest(folder, name) == entry.after
                else EntryState.OTHER
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
                calls.set_mode(descriptor, step.like.mode)
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
