"""What was written to disk between two events of a conversation, without what is nobody's work (DIAG-15).

A root is watched for the servers that run in it. Until the first one runs, which takes some a minute, and where none
ever does, the files of the working tree that differ from the last commit and were changed since the last look count as
changed by a command. A file's time of change is the kernel's; of a deleted file it is that of its folder, and a file
that was gone when the conversation began is known by then. What git does not know of, or ignores, is not seen.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

import anyio.lowlevel
import anyio.to_thread

from pilotfish.feedback.conversation import Standing, TextsBefore
from pilotfish.feedback.written_files import Written
from pilotfish.model import AbsPath
from pilotfish.paths import is_installed, package_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.conversations.record import ConversationRecord
from pilotfish.service.diagnostics.file_states import FileStates, committed_text, text_before
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system import calls
from pilotfish.system.clock import current_time
from pilotfish.system.git import differing
from pilotfish.system.git_state import GitMove, brought_by_git, git_move, git_state, moved_paths
from pilotfish.system.ownership import is_in_worktree
from pilotfish.system.ports import Clock

MAX_LATE = 1_000
"""Files of one move of git that are looked at although nobody has noticed yet that they were changed."""

MAX_OWN = 20
"""Files of a conversation whose effect on what git brought is looked for."""

MAX_UNCOMMITTED = 100
"""Files that a conversation finds changed when it begins; of more, the others are compared with the last commit."""

MAX_SECONDS = 0.5
"""A look that took longer, in a very large tree, is the last one of the conversation."""

SLACK_SECONDS = 0.02
"""File times may be behind the clock by this much."""


class DiskWrites:
    def __init__(
        self,
        states: FileStates,
        texts: Texts,
        clock: Clock,
        is_watched: Callable[[AbsPath], bool],
        noticed: Callable[[AbsPath, Sequence[PathChange]], None],
    ) -> None:
        self._states = states
        self._texts = texts
        self._clock = clock
        self._is_watched = is_watched
        self._noticed = noticed

    # --- What is noticed --------------------------------------------------------------------------------------------

    def note(
        self, records: Collection[ConversationRecord], changes: Iterable[PathChange], place: AbsPath | None
    ) -> None:
        """Conversations learn of changes on disk, each of those in its own worktree."""
        # It asks the disk: of thousands of files only once for each folder.
        holds = cache(is_in_worktree)
        for found in changes:
            folder = place or os.path.dirname(found.path)
            for record in records if not found.is_alias and not is_installed(found.path) else ():
                if record.written.takes(found.path) and holds(folder, record.client.root):
                    seen = self._states.latest_text(found.path)
                    record.written.add(found, "" if seen is None and found.change is Change.CREATED else seen)

    async def remember(self, workspace: Workspace, began: float) -> None:
        """Look at the files that differ from the last commit: what they have was there before the conversation."""
        changed = [path for several in await _differing(workspace) for path in several]
        known = [path for path in changed if workspace.serves(path) and self._states.latest_text(path) is None]
        for path in known[:MAX_UNCOMMITTED]:
            if _changed_at(path) < began and (text := await self._text_if_any(path)) is not None:
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
                text = await self._text_if_any(path)
                if text is not None and text != self._states.latest_text(path):
                    found.append(PathChange(path, kinds[path] if _is_there(path) else Change.DELETED))
        self._noticed(workspace.root, found)
        record.is_watched = is_watched or current_time() - started > MAX_SECONDS

    # --- What is nobody's -------------------------------------------------------------------------------------------

    async def leave_to_git(self, record: ConversationRecord, workspace: Workspace) -> GitMove | None:
        """Take what git brought out of what commands changed: a checkout, a pull or a stash is nobody's edit."""
        await self._leave_unchanged(record)
        before, now = record.git, git_state(workspace.root)
        record.git, program = now, workspace.program("git")
        move = None if now is None or program is None else git_move(before, now)
        if now is not None and move is not None and program is not None:
            moved = await anyio.to_thread.run_sync(moved_paths, program, now, move)
            await self._notice_late(record, workspace, moved)
            for folder in {AbsPath(one) for path in moved if (one := package_folder(path)) is not None}:
                record.written.discard(folder)
            if paths := tuple(path for path in record.written.all() if package_folder(path) is None):
                brought = await anyio.to_thread.run_sync(brought_by_git, program, now, move, paths)
                await self._leave_brought(record, workspace, brought)
        for path, one in record.written.all().items():
            if one.before is None or (move is not None and move.target is not None):
                # Nobody has seen what it was, or what was seen is of another branch.
                record.written.restore({path: Written(one.change, await committed_text(workspace, path, ""))})
        return move

    async def _leave_unchanged(self, record: ConversationRecord) -> None:
        """Take out what has the text again that it had before: a stash and its pop, a formatter with nothing to do.

        Nor is anything owed of it.
        """
        for path, one in record.written.all().items():
            # There may be thousands, and their texts may all be known: others have their turn.
            await anyio.lowlevel.checkpoint()
            if one.before is not None and await self._text(path) == one.before:
                record.written.discard(path)
        texts = {path: await self._text(path) for path in record.state.standing(Standing.PENDING)}
        record.state.drop_undone(texts)

    async def _notice_late(self, record: ConversationRecord, workspace: Workspace, moved: Collection[AbsPath]) -> None:
        """Of the files that git changed, those that have another text than was seen of them, and nobody noticed yet."""
        late = list[PathChange]()
        for path in [path for path in moved if workspace.serves(path)][:MAX_LATE]:
            seen = self._states.latest_text(path)
            if seen is not None and seen != await self._text(path):
                late.append(PathChange(path, Change.CHANGED))
        self._states.note(workspace.root, late)
        record.written.restore({one.path: Written(one.change, None) for one in late})

    async def _leave_brought(
        self, record: ConversationRecord, workspace: Workspace, brought: Collection[AbsPath]
    ) -> None:
        """What git put there is nobody's, and what the conversation's own changes break in it is its own: a caller that
        it had adapted, and that git has as it was before."""
        state, came_back = record.state, False
        for path in brought:
            record.taken |= path in state.own_texts
            came_back |= state.has_written(path, await self._text(path))
            record.written.discard(path)
            await self.see(path)
        if came_back:
            state.came_back()
        if not brought:
            return
        state.first = state.original = None
        for path in sorted(state.changed.intersection(state.own_texts).difference(brought))[:MAX_OWN]:
            text = await self._text(path)
            before = await committed_text(workspace, path, text) if state.has_written(path, text) else None
            if before is not None and before != text:
                state.owe_others(path, before, call=state.calls)

    async def claim(
        self,
        mine: ConversationRecord,
        everyone: Iterable[ConversationRecord],
        workspace: Workspace,
        texts: TextsBefore,
        move: GitMove | None,
    ) -> dict[AbsPath, str]:
        """An edit changed these files, and no command did; returns what they were before a command that did so, too."""
        carried = dict[AbsPath, str]()
        has_moved = move is not None and move.target is not None
        for path, said in texts.items():
            written = mine.written.discard(path)
            known = None if has_moved or written is None else written.before
            if said is None and known is None and (has_moved or written is not None):
                known = await committed_text(workspace, path, "")
            carried |= {} if known is None else {path: known}
            for record in everyone:
                record.written.discard(path)
        return carried

    async def note_own(self, record: ConversationRecord, before: Mapping[AbsPath, str | None]) -> None:
        """The conversation, or a command of it, gave these files the texts that they have now, in place of others."""
        for path, text in before.items():
            record.state.wrote(path, await self._text(path), text)

    async def take_for_granted(self, record: ConversationRecord) -> None:
        """Somebody else changed these files while the agent was idle: what they have now is older than its turn."""
        for path in record.written.all():
            await self.see(path)
        record.written.clear()

    async def see(self, path: AbsPath) -> None:
        """What the file has now is what the next change of it starts from."""
        self._states.saw(path, await self._text(path))

    async def text_before(self, path: AbsPath, workspace: Workspace) -> str | None:
        """What the file was before its last change; None where nobody knows it."""
        return await text_before(self._states, workspace, path, await self._text(path))

    async def _text(self, path: AbsPath) -> str:
        """Empty where there is no file, or none that can be read."""
        return await self._texts.readable(path) or ""

    async def _text_if_any(self, path: AbsPath) -> str | None:
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
