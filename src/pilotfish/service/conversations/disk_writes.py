"""What was written to disk between two events of a conversation, without what is nobody's work (DIAG-15)."""

import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache

import anyio.lowlevel
import anyio.to_thread

from pilotfish.feedback.conversation import Standing
from pilotfish.feedback.written_files import Written
from pilotfish.model import AbsPath
from pilotfish.paths import is_installed, package_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.conversations.record import ConversationRecord
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.texts_before import committed_text, text_before
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system.git_state import GitMove, brought_by_git, git_move, git_state, moved_paths
from pilotfish.system.ownership import is_in_worktree

MAX_LATE = 1_000
"""Files of one move of git that are looked at although nobody has noticed yet that they were changed."""

MAX_OWN = 20
"""Files of a conversation whose effect on what git brought is looked for."""


class DiskWrites:
    def __init__(self, states: FileStates, texts: Texts) -> None:
        self._states = states
        self._texts = texts

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
        paths = tuple(path for path in record.written.all() if package_folder(path) is None)
        if now is not None and move is not None and program is not None and paths:
            came_back, brought = False, await anyio.to_thread.run_sync(brought_by_git, program, now, move, paths)
            for path in brought:
                record.taken |= path in record.state.own_texts
                came_back |= record.state.has_written(path, await self._text(path))
                record.written.discard(path)
                await self.see(path)
            if came_back:
                record.state.came_back()
            if brought:
                record.state.first = None
                await self._owe_own(record, workspace, but=brought)
        for path, one in record.written.all().items():
            if one.before is None or (move is not None and move.target is not None):
                # Nobody has seen what it was, or what was seen is of another branch.
                record.written.restore({path: Written(one.change, await committed_text(workspace, path, ""))})
        return move

    async def _notice_late(self, record: ConversationRecord, workspace: Workspace, moved: Collection[AbsPath]) -> None:
        """Of the files that git changed, those that have another text than was seen of them, and nobody noticed yet."""
        late = list[PathChange]()
        for path in [path for path in moved if workspace.serves(path)][:MAX_LATE]:
            seen = self._states.latest_text(path)
            if seen is not None and seen != await self._text(path):
                late.append(PathChange(path, Change.CHANGED))
        self._states.note(workspace.root, late)
        record.written.restore({one.path: Written(one.change, None) for one in late})

    async def _owe_own(self, record: ConversationRecord, workspace: Workspace, but: Collection[AbsPath]) -> None:
        """What git put there is nobody's, and what the conversation's own changes break in it is its own: a caller that
        it had adapted, and that git has as it was before."""
        for path in sorted(record.state.changed.intersection(record.state.own_texts).difference(but))[:MAX_OWN]:
            text = await self._text(path)
            before = await committed_text(workspace, path, text) if record.state.has_written(path, text) else None
            if before is not None and before != text:
                record.state.owe_others(path, before, call=record.state.calls)

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

    async def claim(
        self,
        mine: ConversationRecord,
        everyone: Iterable[ConversationRecord],
        workspace: Workspace,
        texts: Mapping[AbsPath, str | None],
        move: GitMove | None,
    ) -> dict[AbsPath, str]:
        """An edit changed these files, and no command did; returns what they were before a command that did so, too."""
        carried = dict[AbsPath, str]()
        has_moved = move is not None and move.target is not None
        for path, said in texts.items():
            written = mine.written.discard(path)
            if said is None and (has_moved or written is not None):
                known = None if has_moved or written is None else written.before
                committed = known if known is not None else await committed_text(workspace, path, "")
                carried |= {} if committed is None else {path: committed}
            elif written is not None and written.before is not None and not has_moved:
                carried[path] = written.before
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
