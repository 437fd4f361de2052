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
Everything here blocks: use a worker thread.
"""

import hashlib
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from msgspec import Struct

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staged import Drop, Put, Regular, Staged
from pilotfish.policy.openat import digest, explained, identity_of, parent_of, status_of
from pilotfish.service.changes.journal import (
    FolderPlace,
    Journal,
    JournalEntry,
    Plan,
    lock_abandoned,
    new_journal,
    remove,
)
from pilotfish.service.changes.writing import Writing

logger = logging.getLogger(__name__)


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
            writing = Writing(journal.token, plan or Plan(), begun=True)
            if plan is not None and not journal.is_done and not writing.is_complete():
                left += writing.undo()
                writing.forget()
                undone += 1
            else:
                writing.clean()
                finished += plan is not None
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


def _undo(writing: Writing, cause: BaseException) -> None:
    try:
        writing.undo()
    except (Failure, OSError) as error:
        changed = ", ".join(writing.changed()) or "nothing"
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
    with parent_of(place.root, place.segments) as (folder, name), explained(place.segments):
        found = digest(folder, name)
        status = status_of(folder, name)
        if status is None or identity_of(status) != content.identity:
            raise Refused(Code.STALE, f"{place.path} has changed since it was read")
        return found


def _missing_folders(step: Put | Drop) -> Iterator[FolderPlace]:
    root, segments = step.place.root, step.place.segments
    for depth in range(1, len(segments)):
        if not os.path.lexists(os.path.join(root, *segments[:depth])):
            yield root, segments[:depth]
