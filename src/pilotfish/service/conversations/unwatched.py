"""What is changed where nobody watches yet, by git's account (DIAG-15).

A root is watched for the servers that run in it. Until the first one runs, which takes some a minute, and where none
ever does, the files of the working tree that differ from the last commit and were changed since the last look count as
changed by a command. A file's time of change is the kernel's; of a deleted file it is that of its folder, and a file
that was gone when the conversation began is known by then. What git does not know of, or ignores, is not seen.
"""

import os
from collections.abc import Callable, Collection

import anyio.to_thread

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.conversations.record import ConversationRecord
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system import calls
from pilotfish.system.clock import current_time
from pilotfish.system.git import differing
from pilotfish.system.ports import Clock

MAX_UNCOMMITTED = 100
"""Files that a conversation finds changed when it begins; of more, the others are compared with the last commit."""

MAX_SECONDS = 0.5
"""A look that took longer, in a very large tree, is the last one of the conversation."""

SLACK_SECONDS = 0.02
"""File times may be behind the clock by this much."""


class UnwatchedChanges:
    def __init__(
        self,
        states: FileStates,
        texts: Texts,
        clock: Clock,
        is_watched: Callable[[AbsPath], bool],
        noticed: Callable[[AbsPath, list[PathChange]], None],
    ) -> None:
        self._states = states
        self._texts = texts
        self._clock = clock
        self._is_watched = is_watched
        self._noticed = noticed

    def begin(self, record: ConversationRecord) -> None:
        """What is on disk now was there before."""
        record.looked_at = self._clock.wall()

    async def remember(self, workspace: Workspace, began: float) -> None:
        """Look at the files that differ from the last commit: what they have was there before the conversation."""
        changed = [path for several in await _differing(workspace) for path in several]
        known = [path for path in changed if workspace.serves(path) and self._states.latest_text(path) is None]
        for path in known[:MAX_UNCOMMITTED]:
            if _changed_at(path) < began and (text := await self._text(path)) is not None:
                self._states.saw(path, text)

    async def look(self, record: ConversationRecord, workspace: Workspace, but: Collection[AbsPath] = ()) -> None:
        """Notice what was changed since the last look, once more after the workspace is watched, and then never.

        `but`: files that an event speaks of, whose texts before it are known.
        """
        if record.is_watched:
            return
        since, started = record.looked_at - SLACK_SECONDS, current_time()
        record.looked_at, is_watched = self._clock.wall(), self._is_watched(workspace.root)
        tracked, untracked = await _differing(workspace)
        kinds = dict.fromkeys(tracked, Change.CHANGED) | dict.fromkeys(untracked, Change.CREATED)
        found = list[PathChange]()
        for path in kinds.keys() - record.written.all().keys() - set(but):
            if workspace.serves(path) and _changed_at(path) >= since:
                text = await self._text(path)
                if text is not None and text != self._states.latest_text(path):
                    found.append(PathChange(path, kinds[path] if _is_there(path) else Change.DELETED))
        self._noticed(workspace.root, found)
        record.is_watched = is_watched or current_time() - started > MAX_SECONDS

    async def _text(self, path: AbsPath) -> str | None:
        """Empty where there is no file, None where it cannot be read: it is binary, or too large."""
        text = await self._texts.readable(path)
        return "" if text is None and not _is_there(path) else text


async def _differing(workspace: Workspace) -> tuple[tuple[AbsPath, ...], tuple[AbsPath, ...]]:
    git = workspace.program("git")
    found = None if git is None else await anyio.to_thread.run_sync(differing, git, workspace.root)
    return found or ((), ())


def _is_there(path: AbsPath) -> bool:
    return os.path.lexists(path)


def _changed_at(path: str) -> float:
    """When the kernel last changed a file, or the nearest folder that is left of its path."""
    while True:
        try:
            return calls.changed_ns(os.lstat(path)) / 1e9
        except OSError:
            if path == os.path.dirname(path):
                return 0.0
            path = os.path.dirname(path)
