"""Checks that go on when the event that caused them has been answered. What they find is told with the next event."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from pilotfish.api.questions import Touch
from pilotfish.errors import Failure
from pilotfish.feedback.conversation import Debt, Fate, Standing, untold
from pilotfish.feedback.delta import CheckedText, Delta
from pilotfish.model import AbsPath
from pilotfish.service.conversations.news import scope_of, without_told
from pilotfish.service.conversations.record import Background, ConversationRecord
from pilotfish.service.diagnostics.edit_feedback import EditFeedback, Judged
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.diagnostics.verdicts import BrokenFiles
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

BACKGROUND_SECONDS = 60.0
BACKGROUND = Patience(first=BACKGROUND_SECONDS, later=30.0)
"""For a check that nobody waits for: what any cold server needs."""


class LateChecks:
    def __init__(self, edit_feedback: EditFeedback, in_step: Callable[[ClientSession], Awaitable[Visit]]) -> None:
        """`in_step`: tells the servers what was noticed on disk, or they would be asked about texts of before."""
        self._edit_feedback = edit_feedback
        self._in_step = in_step
        self.tasks: TaskGroup | None = None
        """For what nobody waits for."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Within the block, checks go on in the background."""
        async with owned_tasks() as tasks:
            self.tasks = tasks
            try:
                yield
            finally:
                self.tasks = None
                tasks.cancel_scope.cancel()

    def listen(self, records: Iterable[ConversationRecord], visit: Visit) -> None:
        """What servers have published of files that nobody had asked about, since the last edits were answered."""
        concerned = [one for one in records if one.state.finished and visit.workspace.holds(one.client.root)]
        spoken = self._edit_feedback.spoken_of(visit.workspace) if concerned else ()
        for record in concerned if spoken else ():
            record.state.hear(spoken, self._edit_feedback.latest_text)

    def stop(self, record: ConversationRecord) -> None:
        if record.background is not None:
            record.background.scope.cancel()
            _end(record, record.background)

    async def wait(self, record: ConversationRecord, seconds: float) -> None:
        """Until all that is pending was judged in the background, or so long."""
        self.go_on(record)
        with anyio.move_on_after(seconds):
            while record.background is not None:
                await record.background.ended.wait()

    def go_on(self, record: ConversationRecord, shown: Sequence[AbsPath] = ()) -> None:
        """Judge what is pending, without anyone waiting for it.

        `shown`: files that are judged with a later event; until that comes, the servers look at them.
        """
        if self.is_judging(record) and not shown:
            return
        self.stop(record)
        pending = record.state.standing(Standing.PENDING)
        if (pending or shown) and self.tasks is not None:
            record.background, record.left = Background(pending), ()
            self.tasks.start_soon(self._judge, record, record.background, shown)

    @staticmethod
    def is_judging(record: ConversationRecord) -> bool:
        """Whether all that is pending is being judged."""
        pending = record.state.standing(Standing.PENDING)
        return record.background is not None and record.background.pending == pending

    async def _judge(self, record: ConversationRecord, background: Background, shown: Sequence[AbsPath]) -> None:
        judged, pending = None, background.pending
        try:
            with background.scope:
                visit = await self._in_step(record.client)
                if shown:
                    await self._show(visit, shown)
                if pending:
                    touch, hear = Touch(tuple(pending), "patch", only_new=True), partial(_note_broken, record, pending)
                    scope = replace(
                        scope_of(record.state), patience=BACKGROUND, others_seconds=BACKGROUND_SECONDS, hear=hear
                    )
                    visit = replace(visit, started=current_time())
                    judged = without_told(record.state, await self._edit_feedback.judge(touch, visit, scope))
        except Failure as failure:
            logger.info("late check failed session=%s message=%s", record.client.id, failure.message)
        except Exception:
            # No call waits for it, so the log is the only place; and an error would cancel the shared task group.
            logger.exception("late check failed session=%s", record.client.id)
        if not background.scope.cancelled_caught:
            _found(record, judged, pending)
        _end(record, background)
        if pending and not background.scope.cancelled_caught and record.on_late is not None:
            record.on_late()

    async def _show(self, visit: Visit, paths: Sequence[AbsPath]) -> None:
        """Let the servers look at these. What goes wrong is met again when they are judged; what is owed goes on."""
        try:
            await self._edit_feedback.look(visit, paths, BACKGROUND)
        except Exception:
            logger.exception("warming failed session=%s", visit.client.id)


def _end(record: ConversationRecord, background: Background) -> None:
    if record.background is background:
        record.background = None
        background.ended.set()


def _found(record: ConversationRecord, judged: Judged | None, pending: Mapping[AbsPath, Debt]) -> None:
    """What the background knows now, about files that no event has judged meanwhile."""
    state, verdicts = record.state, {} if judged is None else {one.path: one for one in judged.edited}
    others = BrokenFiles() if judged is None else judged.others
    for path, debt in pending.items():
        if state.debts.get(path) != debt:
            continue
        verdict = verdicts.get(path)
        # The next event tries again: whatever is in those files, nobody has heard of it.
        is_left = others.unchecked > len(others.unjudged) and (verdict is None or verdict.text != debt.unfinished)
        owed = debt.unfinished if is_left else None
        if judged is not None and path in judged.deleted:
            state.settle(path, Fate.CLEAN)
        elif verdict is not None and verdict.refused is not None:
            state.settle(path, Fate.OVER)
        elif verdict is not None and verdict.is_late:
            # A stop looks once more, and says what it does not know.
            continue
        elif judged is None or verdict is None or not verdict.is_final:
            state.settle(path, Fate.NO_VERDICT)
        else:
            if owed is None:
                state.finish(path, debt.unfinished)
            now, change, before = verdict.checked, judged.changes[path], judged.before
            if found := untold(now, change, debt.heard):
                known, certain = CheckedText(now.text, found), isinstance(change, Delta)
                state.found(path, known, call=debt.call, edited=True, certain=certain, unfinished=owed)
            else:
                state.settle(path, Fate.CLEAN)
                state.judged(path, now, change, edited=True, before=before.get(path), causes=before)
        if owed is not None and path not in state.debts:
            state.owe_others(path, owed, call=debt.call)
    state.heard.difference_update(one.path for one in others.verdicts)
    _note_broken(record, pending, others)
    for verdict in others.verdicts:
        # Of files with nothing to be told, what is left there may have gone.
        change = others.changes.get(verdict.path)
        if change is not None and verdict.path in state.introduced and verdict.path not in state.untold:
            state.judged(verdict.path, verdict.checked, change, edited=False, before=verdict.text)


def _note_broken(record: ConversationRecord, pending: Mapping[AbsPath, Debt], others: BrokenFiles) -> None:
    """The next event tells of what is known by then: the rest of a search may take long, or never come."""
    state, call = record.state, max((debt.call for debt in pending.values()), default=0)
    record.left = others.left
    for verdict in others.verdicts:
        change = others.changes.get(verdict.path)
        if change is None or verdict.path in state.debts:
            continue
        news = state.without_older(verdict.path, now := verdict.checked, state.without_told(verdict.path, now, change))
        if news.introduced:
            state.mend(verdict.path, now.text, change, {path: debt.unfinished for path, debt in pending.items()})
            state.found(verdict.path, CheckedText(verdict.text, news.introduced), call=call, edited=False)
