"""Writing several files, all or none, whatever happens in between (T37, F57, F58).

Four phases, each durable before the next:
1. The journal says what will happen.
2. *Prepare*: beside every file that will change stands its old self under a hidden name (the same file, by a link), and
   beside every file to come its new content. Full disks and read-only folders show here; nothing has changed yet.
3. *Commit*: renames only. They need no space, and each file is its old or its new self at every moment.
4. The journal says that it is done, and the hidden names go.
What fails before the fourth phase is undone, by renames too; what is killed before it is undone by `recover`.

A file is written over only if it is the one that was read. One that somebody writes into at that very moment keeps what
was written: its old self is still the file that they hold, and comes back.
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
    """Do all of it, or nothing and raise why; `home` is the folder of the journals.

    `Refused`: nothing has changed; with `stale`, because somebody else changed a file. `Unavailable`: undoing failed as
    well, and the message says which files have changed; the journal stays, and `recover` tries again.
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
    """What was found of processes that were killed."""

    finished: int = 0
    undone: int = 0
    left: tuple[str, ...] = ()
    """Files that somebody else has changed since; they stay as they are."""


def recover(home: AbsPath) -> Recovery:
    """Finish or undo what was left half done; harmless at any time, any number of times, in any number of processes."""
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
            # Its files may be on a disk that is not there now: the next start tries again.
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
            f"{cause}; and putting things back failed: {error}. Not as before: {changed}",
            hint="The old content is kept beside each file, and the next start of pilotfish puts it back.",
        ) from error


@contextmanager
def _tidying() -> Generator[None]:
    """What is decided is decided: what cannot be taken away now is taken away by the next start."""
    try:
        yield
    except (Failure, OSError) as error:
        logger.warning("not tidied up error=%s", error)


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
            raise Refused(Code.STALE, f"{place.path} has changed since it was looked at")
        return found


def _missing_folders(step: Put | Drop) -> Iterator[FolderPlace]:
    root, segments = step.place.root, step.place.segments
    for depth in range(1, len(segments)):
        if not os.path.lexists(os.path.join(root, *segments[:depth])):
            yield root, segments[:depth]
