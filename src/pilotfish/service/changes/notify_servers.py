"""Notifying servers of files that we wrote, before the next question about them.

Documents whose file is gone are closed; the others are sent by the next check. A server that watches files, or asks for
`didRenameFiles`, is notified.
"""

import logging
from collections.abc import Iterable, Sequence

import anyio
from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staged import FileEffect
from pilotfish.pool.pool import Pool
from pilotfish.protocol.capabilities import wants_file_operation
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.protocol.wire import FileRename
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.workspace import Workspace
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

TELL_SECONDS = 5.0
"""How long a server may be busy with other checks. After that it is not notified: its next check sends the texts."""


class Moved(Struct, frozen=True):
    """A file or folder with its old and new path."""

    old: AbsPath
    new: AbsPath
    is_folder: bool = False


def moved_by(effects: Iterable[FileEffect]) -> tuple[Moved, ...]:
    return tuple(
        Moved(effect.old, effect.new)
        for effect in effects
        if effect.old is not None and effect.new is not None and effect.old != effect.new
    )


class ServerNotifier:
    def __init__(self, pool: Pool, ledgers: Ledgers) -> None:
        self._pool = pool
        self._ledgers = ledgers

    async def notify(self, workspace: Workspace, effects: Sequence[FileEffect], moved: Sequence[Moved]) -> None:
        """Notify every server of the workspace, all at the same time; harmless for one that has died."""
        entries = self._pool.entries().items()
        sessions = [entry.session for key, entry in entries if entry.session is not None and workspace.holds(key.root)]
        with anyio.move_on_after(TELL_SECONDS, shield=True):
            async with owned_tasks() as tasks:
                for session in sessions:
                    tasks.start_soon(self._notify, session, effects, moved)

    async def _notify(self, session: Session, effects: Sequence[FileEffect], moved: Sequence[Moved]) -> None:
        ledger = self._ledgers.of(session)
        try:
            async with ledger.alone():
                for path in _gone(effects):
                    if session.documents.is_open(path):
                        ledger.close(session, path)
                if session.tell_changes(change for effect in effects for change in _changes(effect)):
                    ledger.note_disk_change()
                _notify_moved(session, moved)
        except Failure as failure:
            logger.info("not notified server=%s error=%s", session.server, failure.message)


def _gone(effects: Sequence[FileEffect]) -> list[AbsPath]:
    return [effect.old for effect in effects if effect.old is not None and effect.old != effect.new]


def _changes(effect: FileEffect) -> Iterable[PathChange]:
    if effect.old == effect.new and effect.old is not None:
        yield PathChange(effect.old, Change.CHANGED)
        return
    if effect.old is not None:
        yield PathChange(effect.old, Change.DELETED)
    if effect.new is not None:
        yield PathChange(effect.new, Change.CREATED)


def _notify_moved(session: Session, moved: Sequence[Moved]) -> None:
    files = [
        FileRename(uri_of(one.old), uri_of(one.new))
        for one in moved
        if wants(session, "workspace/didRenameFiles", one.old, is_folder=one.is_folder)
    ]
    if files:
        session.notify("workspace/didRenameFiles", {"files": files})


def wants(session: Session, method: str, path: AbsPath, *, is_folder: bool) -> bool:
    """Whether the server registered for `method` of such a file or folder."""
    return any(
        wants_file_operation(options, path, is_folder=is_folder) for options in session.capabilities.options(method)
    )
