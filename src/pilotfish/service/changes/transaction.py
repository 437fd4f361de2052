"""Writing several files, all or none, also when the process is killed (T37, F57, F58).

Four phases, each durable before the next:
1. The journal says what will happen.
2. *Prepare*: the new contents are written beside the files. A full disk or a read-only folder fails here, before
   anything has changed.
3. *Commit*: every file gets a hidden second name (a link to the same file), and is replaced by a rename: it is old or
   new at every moment. Where a file system has no links, the file is moved to that name, and missing for an instant.
4. The journal says that it is done, and the hidden names are removed.
A failure before the fourth phase is undone by renames, which need no space; after a kill `recover` undoes it.

A file is replaced only if it is the one that was read. If another program writes to it at that moment, its write is
kept: the hidden name is still that file, and is renamed back.
All state of a transaction is in its journal, so another process can undo it. Paths are walked by descriptors
(`policy.openat`), so that a folder that is replaced by a link does not lead outside.
Everything here blocks: use a worker thread.
"""

import errno
import logging
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from msgspec import Struct

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import Put, Staged
from pilotfish.policy.boundary import Admitted
from pilotfish.policy.openat import (
    NEW_FILE_FLAGS,
    NEW_FILE_MODE,
    NO_LINKS,
    drop_name,
    give_name,
    identity_of,
    open_beneath,
    parent_of,
    status_of,
    sync_folder,
    write_all,
)
from pilotfish.service.changes.journal import (
    DONE,
    PLAN,
    READY,
    Journal,
    JournalPlace,
    Plan,
    Ready,
    lock_abandoned,
    new_journal,
)
from pilotfish.system import calls
from pilotfish.system.ports import Identity

logger = logging.getLogger(__name__)

STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
"""Errors for a folder that is not empty, is gone, or is no longer a folder."""

COPY_BYTES = 1024 * 1024


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
            _write(journal, plan, staged)
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
            plan = journal.read(PLAN, Plan)
            if plan is None:
                journal.remove()
                continue
            is_done = journal.read(DONE, Ready) is not None
            writing = Writing(journal.token, plan, prepared=len(plan.files))
            if not is_done:
                changed, failed = writing.undo(journal.read(READY, Ready) or ())
                for failure in failed.values():
                    raise failure
                left += changed
            _tidy_up(journal, writing, plan.emptied if is_done else plan.made)
            finished, undone = finished + is_done, undone + (not is_done)
        except (Failure, OSError, ValueError) as error:
            # Its disk may not be mounted now: the next start tries again.
            logger.warning("not recovered journal=%s/%s error=%s", home, journal.token, error)
    return Recovery(finished, undone, tuple(left))


def _write(journal: Journal, plan: Plan, staged: Staged) -> None:
    writing, ready = Writing(journal.token, plan), Ready()
    try:
        journal.write(PLAN, plan)
        ready = writing.prepare(staged)
        journal.write(READY, ready)
        writing.commit(ready)
        journal.finish()
    except BaseException as cause:
        _, failed = writing.undo(ready)
        for failure in failed.values():
            raise Unavailable(
                Code.FILE_UNREADABLE,
                f"{cause}; undoing it failed: {failure}. Changed files: {', '.join(failed)}",
                hint="The old contents are kept beside each file; the next start of pilotfish restores them.",
            ) from failure
        with _later():
            _tidy_up(journal, writing, plan.made)
        raise
    with _later():
        _tidy_up(journal, writing, plan.emptied)


def _tidy_up(journal: Journal, writing: "Writing", folders: Iterable[JournalPlace]) -> None:
    # What was decided must last before that is removed which could undo it.
    sync_folder(journal.folder)
    writing.tidy_up(folders)
    journal.remove()


@contextmanager
def _later() -> Generator[None]:
    """The outcome is decided: what cannot be removed now is removed by the next start."""
    try:
        yield
    except (Failure, OSError) as error:
        logger.warning("hidden files not removed error=%s", error)


def _plan(staged: Staged) -> Plan:
    def place(admitted: Admitted, depth: int | None = None) -> JournalPlace:
        return JournalPlace(admitted.root, os.stat(admitted.root).st_ino, admitted.segments[:depth])

    def missing(admitted: Admitted) -> Iterator[JournalPlace]:
        folders = (place(admitted, depth) for depth in range(1, len(admitted.segments)))
        return (folder for folder in folders if not os.path.lexists(str(folder)))

    return Plan(
        files=tuple((place(step.place), step.before and step.before.identity) for step in staged.steps),
        made=tuple(dict.fromkeys(folder for step in staged.steps for folder in missing(step.place))),
        emptied=tuple(map(place, staged.emptied)),
    )


# --- On the file system --------------------------------------------------------------------------------------------


class Writing:
    """The files of a transaction. Beside each, with its number: `.new`, what it will be, and `.old`, what it was."""

    def __init__(self, token: str, plan: Plan, *, prepared: int = 0) -> None:
        self._hidden = f".pilotfish-{token}-"
        self._plan = plan
        self._prepared = prepared
        """How many files may have hidden names."""

    def prepare(self, staged: Staged) -> Ready:
        """Write the new contents; raises `Refused`."""
        for made in self._plan.made:
            with parent_of(made.root, made.segments) as (folder, name), suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        ready: list[Identity | None] = []
        for number, (step, (place, before)) in enumerate(zip(staged.steps, self._plan.files, strict=True)):
            with parent_of(place.root, place.segments) as (folder, name):
                self._prepared = number + 1
                _expect(before, folder, name, str(place))
                new = f"{self._hidden}{number}.new"
                ready.append(_write_new(folder, new, step) if isinstance(step, Put) else None)
        self._sync()
        return tuple(ready)

    def commit(self, ready: Ready) -> None:
        """Raises `Refused`, as `stale` when a file is not the one that was read."""
        for number, ((place, before), after) in enumerate(zip(self._plan.files, ready, strict=True)):
            with parent_of(place.root, place.segments) as (folder, name):
                old, new = f"{self._hidden}{number}.old", f"{self._hidden}{number}.new"
                if before is not None:
                    give_name(folder, name, old)
                    _expect(before, folder, old if status_of(folder, name) is None else name, str(place))
                if after is None:
                    drop_name(folder, name)
                elif before is None:
                    give_name(folder, new, name)
                else:
                    os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        # Who had a file open may have written into the old one.
        for number, (place, before) in enumerate(self._plan.files):
            with parent_of(place.root, place.segments) as (folder, _):
                _expect(before, folder, f"{self._hidden}{number}.old", str(place), same_inode=False)
        self._sync()

    def undo(self, ready: Ready) -> tuple[list[str], dict[str, Failure | OSError]]:
        """Restore every file; returns those that another program has changed, which stay, and those that failed."""
        left: list[str] = []
        failed: dict[str, Failure | OSError] = {}
        for number, ((place, before), after) in enumerate(zip(self._plan.files, ready, strict=False)):
            try:
                with _where(place) as where:
                    if not (before is None if where is None else self._restore(*where, number, before, after)):
                        left.append(str(place))
            except (Failure, OSError) as failure:
                failed[str(place)] = failure
        return left, failed

    def tidy_up(self, folders: Iterable[JournalPlace]) -> None:
        """Remove the hidden names and these folders, the last first; one that is not empty stays."""
        self._sync()
        for number, (place, _) in enumerate(self._plan.files[: self._prepared]):
            with _where(place) as where:
                if where is not None:
                    drop_name(where[0], f"{self._hidden}{number}.new")
                    drop_name(where[0], f"{self._hidden}{number}.old")
        for place in reversed(tuple(folders)):
            with _where(place) as where:
                try:
                    if where is not None:
                        os.rmdir(where[1], dir_fd=where[0])
                except OSError as error:
                    if error.errno not in STAYS:
                        raise

    def _restore(self, folder: int, name: str, number: int, before: Identity | None, after: Identity | None) -> bool:
        """False when another program has changed the file."""
        kept, new = f"{self._hidden}{number}.old", f"{self._hidden}{number}.new"
        now, old = status_of(folder, name), status_of(folder, kept)
        if now is None and before is not None:
            # We take a name away that is to go, or for the instant in which its new file is still beside it.
            if old is None or (after is not None and status_of(folder, new) is None):
                return False
            give_name(folder, kept, name)
        elif now is not None and not (_is(now, before) or (old is not None and os.path.samestat(now, old))):
            if not _is(now, after, same_inode=False):
                return False
            if before is None:
                os.unlink(name, dir_fd=folder)
            else:
                os.replace(kept, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True

    def _sync(self) -> None:
        folders = {(place.root, place.segments[:-1]): place for place, _ in self._plan.files[: self._prepared]}
        for place in folders.values():
            with _where(place) as where:
                if where is not None:
                    sync_folder(where[0])


@contextmanager
def _where(place: JournalPlace) -> Generator[tuple[int, str] | None]:
    """The open folder of a file and its name in it; None when that folder is gone, or the root is another one.

    Raises `Refused`.
    """
    with ExitStack() as stack:
        where: tuple[int, str] | None = None
        try:
            where = stack.enter_context(parent_of(place.root, place.segments))
        except Refused as refusal:
            if refusal.code is not Code.FILE_MISSING:
                raise
        yield where if os.stat(place.root).st_ino == place.inode else None


def _write_new(folder: int, new: str, step: Put) -> Identity:
    """A file that only moves gets another name; where a file system has no second names, it is copied."""
    if isinstance(step.content, bytes):
        return _write_parts(folder, new, step, (step.content,))
    place, identity = step.content.place, step.content.identity
    with parent_of(place.root, place.segments) as (source, name):
        try:
            os.link(name, new, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            with os.fdopen(open_beneath(place.root, place.segments), "rb") as content:
                identity = _write_parts(folder, new, step, iter(partial(content.read, COPY_BYTES), b""))
        _expect(step.content.identity, source, name, place.path)
    return identity


def _write_parts(folder: int, new: str, step: Put, parts: Iterable[bytes]) -> Identity:
    descriptor = os.open(new, NEW_FILE_FLAGS, NEW_FILE_MODE if step.like is None else 0o600, dir_fd=folder)
    try:
        if step.like is not None:
            calls.set_mode(descriptor, step.like.mode)
        for part in parts:
            write_all(descriptor, part)
        return identity_of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _expect(expected: Identity | None, folder: int, name: str, path: str, *, same_inode: bool = True) -> None:
    """Raise unless the file is the one that was read and has not been written since."""
    if expected is not None and not _is(status_of(folder, name), expected, same_inode=same_inode):
        raise Refused(Code.STALE, f"{path} has changed since the edit was computed", hint="Try again.")


def _is(status: os.stat_result | None, expected: Identity | None, *, same_inode: bool = True) -> bool:
    """Whether this is that file, unchanged. Some systems number their disks anew at every start.

    Not `same_inode` for a name that we gave: some file systems (sshfs) number names and not files, or number them anew.
    """
    if status is None or expected is None:
        return False
    found = identity_of(status)
    if same_inode and found.inode != expected.inode:
        return False
    return (found.mtime_ns, found.size) == (expected.mtime_ns, expected.size)
