"""All conversations at work: what `feedback.conversation` decides is carried out here.

An event of a conversation is answered in two steps. First everything is judged, which waits and may be cancelled: then
nothing has been told, and what was to be judged is owed. Then, without a wait, the text is made and what it says is
known. What is owed is judged in the background, and told with the next event.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

import anyio
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Moment, Touch
from pilotfish.api.status import ConversationRow
from pilotfish.feedback.conversation import MAX_FILES, Standing
from pilotfish.feedback.text import Form, Group, appended, groups_text, named
from pilotfish.feedback.written_files import Written, WrittenFiles
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.conversations.disk_writes import DiskWrites
from pilotfish.service.conversations.late_checks import LateChecks
from pilotfish.service.conversations.news import (
    CONFLICT,
    NOTHING_NEW,
    TOLD_TOGETHER,
    News,
    command_groups,
    compared,
    edited_files,
    form_at,
    introduced_in,
    late_groups,
    note_judged,
    patience_until,
    scope_of,
    told_files,
    what_is_left,
    without_older,
    without_verdict,
)
from pilotfish.service.conversations.record import ConversationRecord, EditUnderWay, KeptConversations, texts_before
from pilotfish.service.diagnostics.edit_feedback import EditFeedback, Judged, Scope
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict, milliseconds_since
from pilotfish.service.recent import Recent
from pilotfish.service.status.recent_feedback import EditedFile
from pilotfish.service.texts import Given
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.git_state import git_state

MAX_CONVERSATIONS = 256
"""As many as there are client sessions."""

MAX_JUDGED = 100
"""Files changed by commands that one event judges; the next one judges the next."""

LOOK_SECONDS = 1.5
"""What looking for news gets at least, after an edit that has used up its time; servers are warm by then."""

LAST_SECONDS = 1.0
"""Of the time of an edit, for what follows its search for other files: when the time is over, nothing is told."""

STOP_SECONDS = 6.0
"""For the check before a stop, all in all: the hook program waits for eight."""


class Conversations:
    def __init__(
        self,
        edit_feedback: EditFeedback,
        states: FileStates,
        disk_writes: DiskWrites,
        kept: KeptConversations,
        in_step: Callable[[ClientSession], Awaitable[Visit]],
        used: Callable[[Workspace, Sequence[FileVerdict]], None],
    ) -> None:
        self._edit_feedback = edit_feedback
        self._states = states
        self._disk_writes = disk_writes
        self.kept = kept
        self._late_checks = LateChecks(edit_feedback, in_step)
        self._used = used
        """Told of every file that was judged for an event."""
        self._records: Recent[str, ConversationRecord] = Recent(MAX_CONVERSATIONS)
        self._edited: Counter[AbsPath] = Counter()
        """Files of edits that are under way."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Within the block, checks go on in the background."""
        return self._late_checks.running()

    # --- Events -----------------------------------------------------------------------------------------------------

    def begin(self, client: ClientSession) -> None:
        """A conversation has begun: from now on, what its commands change is noticed."""
        self._record(client, idle=True)

    def end(self, client: ClientSession) -> None:
        """It is over, and nothing is owed any more."""
        record = self._records.get(client.id)
        if record is not None:
            self._late_checks.stop(record)
            self._records.drop(lambda key: key == client.id)
            if self._late_checks.tasks is not None:
                # The next conversation starts from what is there now.
                self._late_checks.tasks.start_soon(self._disk_writes.take_for_granted, record)

    def on_late(self, client: ClientSession, call: Callable[[], None]) -> None:
        """Call this whenever a check in the background has ended: the next event may have something to tell."""
        self._record(client).on_late = call

    def left(self, client: ClientSession) -> Mapping[AbsPath, tuple[Diagnostic, ...]]:
        """The files that it changed or broke, with what it introduced there, as they were judged last."""
        return {path: known.diagnostics for path, known in self._record(client).state.introduced.items()}

    def noticed(self, changes: Iterable[PathChange], place: AbsPath | None = None) -> None:
        """These files were changed on disk, by whomever; what was last seen of them is what they had before.

        `place`: the root to which folders of packages count, wherever they are.
        """
        self._disk_writes.note(self._records.values(), changes, place)

    @contextmanager
    def editing(self, touch: Touch, workspace: Workspace) -> Generator[None]:
        """Within the block, no other event takes what is noticed of these files for the work of a command.

        Nor does any check in the background stand in the way: what such a one had found so far is found again.
        """
        paths = () if touch.kind == "read" else tuple(texts_before(touch, workspace))
        interrupted = [record for record in self._records.values() if paths and workspace.holds(record.client.root)]
        for record in interrupted:
            self._late_checks.stop(record)
        self._edited.update(paths)
        try:
            yield
        finally:
            self._edited -= Counter(paths)
            for record in interrupted:
                self._late_checks.go_on(record)

    async def read(self, touch: Touch, visit: Visit, given: Mapping[str, Given]) -> Feedback:
        """`given`: the texts of the touch, as `CheckRunner.take` took them."""
        for path in texts_before(touch, visit.workspace):
            # An edit may come before the check has ended, and this is what it starts from.
            await self._disk_writes.see(path)
        judged = await self._edit_feedback.judge(touch, visit, Scope(given=given))
        self._used(visit.workspace, judged.edited)
        return self._edit_feedback.tell(judged, touch, visit)

    async def edited(
        self, touch: Touch, visit: Visit, given: Mapping[str, Given]
    ) -> tuple[Feedback, tuple[EditedFile, ...]]:
        """Feedback after an edit, with what else is to be told; when the time of the visit is over, with what it has.

        With it what the edit changed, where the text before it is known.
        """
        with self._event(visit) as record:
            workspace, record.idle = visit.workspace, False
            record.note_batches(touch)
            call, texts = record.call(counts=touch.counts), texts_before(touch, workspace)
            await self._disk_writes.look(record, workspace, but=texts)
            move = await self._disk_writes.leave_to_git(record, workspace)
            if record.git is not None and record.git.unfinished is not None:
                record.held.clear()
                return await self._without_blame(record, record.git.unfinished, visit, tuple(texts)), ()
            await self._disk_writes.note_own(record, texts)
            if record.holds(touch, workspace.config.feedback):
                texts |= await self._disk_writes.claim(record, self._records.values(), workspace, texts, move)
                await self._hold(record, texts, workspace)
                return without_verdict(visit, TOLD_TOGETHER), ()
            touch, texts = record.gathered(touch, texts, self._states.last_text)
            scope = anyio.CancelScope(deadline=visit.until)
            edit = EditUnderWay(touch, visit, given, texts, call, move, scope)
            news = await self._judge_edit(record, edit)
            return self._tell_edit(record, edit, news), edited_files(news.edit)

    async def _judge_edit(self, record: ConversationRecord, edit: EditUnderWay) -> News:
        """What there is to tell after an edit, as far as it is known when its time is over or another takes it over."""
        news, state, visit = News(), record.state, edit.visit
        if edit.touch.batch is not None:
            record.judgement = edit
        try:
            with edit.scope:
                everyone, workspace = self._records.values(), visit.workspace
                claimed = await self._disk_writes.claim(record, everyone, workspace, edit.texts, edit.move)
                # What a command did to a file between two edits of a batch belongs to the batch.
                carried = state.unjudged | ({} if edit.touch.batch == "end" else claimed)
                edit.texts |= {path: text for path, text in carried.items() if path in edit.texts}
                until = visit.until - LAST_SECONDS
                scope = replace(scope_of(state), given=edit.given, carried=carried, settled=(), heard=(), until=until)
                news.edit = without_older(state, await self._edit_feedback.judge(edit.touch, visit, scope))
                await self._look(record, visit, news, {*edit.texts, *compared(news.edit.others.changes)})
        except anyio.get_cancelled_exc_class():
            if not edit.taken_over:
                self._owe(record, edit)
            raise
        finally:
            if record.judgement is edit:
                record.judgement = None
        return news

    def _tell_edit(self, record: ConversationRecord, edit: EditUnderWay, news: News) -> Feedback:
        touch, visit, state = edit.touch, edit.visit, record.state
        workspace = visit.workspace
        if edit.taken_over:
            feedback = without_verdict(visit, TOLD_TOGETHER)
        elif news.edit is None:
            self._owe(record, edit)
            names = ", ".join(named(path, workspace.root) for path in edit.texts)
            are = "is" if len(edit.texts) == 1 else "are"
            reason = f"{names} {are} not checked yet: the time is over. The result follows."
            feedback = without_verdict(visit, reason, say=True)
        else:
            feedback = self._edit_feedback.tell(news.edit, touch, visit, state.introduced)
            note_judged(state, news.edit, edit.call)
            state.told += told_files(news.edit) if feedback.text else 0
            self._used(workspace, news.edit.edited)
        text = self._tell(record, news, visit, form_at(touch, workspace, feedback.text))
        return replace(feedback, text=appended(feedback.text, text))

    async def _hold(
        self, record: ConversationRecord, texts: Mapping[AbsPath, str | None], workspace: Workspace
    ) -> None:
        """Note the edit for the event that tells of it, and let the servers begin; that event may be the stop."""
        for path, said in texts.items():
            if path not in record.held and len(record.held) < MAX_FILES:
                record.held[path] = said if said is not None else await self._disk_writes.text_before(path, workspace)
            if path in record.held:
                await self._disk_writes.see(path)
        match workspace.config.feedback.after:
            case "stop":
                record.owe_held()
                self._late_checks.go_on(record)
            case "ask":
                record.held.clear()
            case _:
                self._late_checks.go_on(record, tuple(texts))

    async def _without_blame(
        self, record: ConversationRecord, unfinished: str, visit: Visit, paths: Sequence[AbsPath]
    ) -> Feedback:
        """In the middle of a merge the files are broken by what git has put into them: nothing is told of them."""
        await self._edit_feedback.look(visit, paths, Patience())
        is_new, record.conflicted = record.conflicted != unfinished, unfinished
        return without_verdict(visit, CONFLICT.format(unfinished), say=is_new)

    async def reached(self, moment: Moment, visit: Visit) -> Feedback:
        """What is to be told at a moment of a conversation that changed no file itself."""
        with self._event(visit) as record:
            workspace = visit.workspace
            if moment.waits:
                await self._disk_writes.look(record, workspace)
            await self._disk_writes.leave_to_git(record, workspace)
            if record.git is not None and record.git.unfinished is not None:
                record.written.clear()
                return without_verdict(visit, CONFLICT.format(record.git.unfinished))
            if moment.kind == "prompt" and record.idle:
                # Some hosts report a prompt in the middle of a turn, too: then the turn goes on.
                await self._disk_writes.take_for_granted(record)
            record.note_batches(moment)
            if moment.kind == "prompt":
                record.owe_held()
                record.state.prompted()
            if record.is_quiet(moment, workspace.config.feedback):
                text = ""
            elif moment.kind == "stop":
                text = await self._before_stop(record, moment, visit)
            else:
                record.idle = False
                record.call(counts=moment.counts and moment.kind == "call")
                news = News()
                if moment.waits:
                    await self._look(record, visit, news, ())
                else:
                    news.late = self._edit_feedback.known(record.state.standing(Standing.LATE))
                text = self._tell(record, news, visit, form_at(moment, workspace))
            state, reason = (State.FRESH, None) if text else (State.UNAVAILABLE, NOTHING_NEW)
            return Feedback(text, state, milliseconds_since(visit.started), reason)

    async def _before_stop(self, record: ConversationRecord, moment: Moment, visit: Visit) -> str:
        workspace, state, text, is_known = visit.workspace, record.state, "", False
        settings, form = workspace.config.feedback, form_at(moment, workspace)
        may_tell = settings.before_stop and state.may_tell_before_stop(moment.agent, again=moment.again)
        if may_tell and not record.held and not any(map(workspace.serves, record.written.all())):
            # What goes on in the background would take longer if it were begun anew.
            await self._late_checks.wait(record, visit.started + STOP_SECONDS - LOOK_SECONDS - current_time())
        if moment.tentative:
            # What is known and what is owed stay as they are.
            written = WrittenFiles(record.written.all())
            apart = replace(record, state=state.copied(), written=written, held=dict(record.held))
            news = await self._look_for_what_is_left(apart, visit) if may_tell else News()
            return what_is_left(apart.state, news, form, settings, moment.agent)[0] if may_tell else ""
        if may_tell:
            news = await self._look_for_what_is_left(record, visit)
            for path, one in record.written.all().items():
                if workspace.serves(path):
                    # There was no time for it: it is judged in the background, because the turn may be over.
                    state.owe(path, one.before, call=state.calls)
            record.written.clear()
            text, is_known = what_is_left(state, news, form, settings, moment.agent)
            # That nobody knows is said once: whoever goes on because of it can do nothing more about it.
            text = "" if moment.again and not is_known else text
            self._late_checks.go_on(record)
        if text:
            state.stop_told(moment.agent, is_known=is_known)
        elif not moment.agent:
            state.turn_ended()
            record.idle = True
        return text

    # --- Judging ----------------------------------------------------------------------------------------------------

    async def _look(
        self, record: ConversationRecord, visit: Visit, news: News, without: Iterable[AbsPath], *, last: bool = False
    ) -> None:
        """Judge what commands changed and what came late; before a stop (`last`) also what is still pending."""
        async with record.telling:
            if last:
                record.owe_held()
            state, known = record.state, set(without)
            deadline = max(visit.started + visit.workspace.wait_seconds, current_time() + LOOK_SECONDS)
            deadline = visit.started + STOP_SECONDS - 2 * LAST_SECONDS if last else deadline
            written = self._take_written(record, visit.workspace, known)
            paths = dict.fromkeys(written)
            if last and (written or not self._late_checks.is_judging(record)):
                paths |= dict.fromkeys(state.standing(Standing.PENDING))
            try:
                if paths:
                    until = 0.0 if last else visit.until - LAST_SECONDS
                    limits = deadline, deadline - LOOK_SECONDS if last else deadline, until
                    news.written = await self._judge_written(record, visit, tuple(paths), written, limits)
                    known.update(paths, compared(news.written.others.changes))
                # Something was found late, or was told and may be gone.
                late = dict.fromkeys((*state.standing(Standing.LATE), *(state.introduced if record.taken else ())))
                if looked_at := [path for path in late if path not in known]:
                    news.late = await self._edit_feedback.look(visit, looked_at, patience_until(deadline))
                record.taken = False
            except BaseException:
                # Nothing of it was told: it is judged again with the next event.
                record.written.restore(written)
                raise

    async def _judge_written(
        self,
        record: ConversationRecord,
        visit: Visit,
        paths: tuple[AbsPath, ...],
        written: Mapping[AbsPath, Written],
        limits: tuple[float, float, float],
    ) -> Judged:
        """Files that were changed without an edit, and others that are pending.

        `limits`: the end of the whole, of the first look, and of this look while servers load.
        """
        deadline, looked_at, until = limits
        before = {path: one.before for path, one in written.items()}
        gone = [path for path, one in written.items() if one.change is Change.DELETED]
        await self._disk_writes.note_own(record, before)
        # What it finds from now on would be settled by this check, which knows nothing of it.
        self._late_checks.stop(record)
        # Looking at many files takes time of its own: what is left of it counts from here.
        patience = patience_until(looked_at, until)
        visit = replace(visit, started=max(current_time(), deadline - visit.workspace.wait_seconds))
        told = {str(path): text for path, text in before.items() if text is not None}
        touch = Touch(paths, "patch", only_new=True, before=told or None)
        scope = replace(scope_of(record.state), patience=patience, others_seconds=LOOK_SECONDS, gone=gone, until=until)
        return without_older(record.state, await self._edit_feedback.judge(touch, visit, scope))

    async def _look_for_what_is_left(self, record: ConversationRecord, visit: Visit) -> News:
        """Judge everything that is not judged yet, and look once more at what was changed or broken in this turn."""
        news, deadline = News(unchecked=record.left), visit.started + STOP_SECONDS
        with anyio.CancelScope(deadline=deadline):
            await self._look(record, visit, news, (), last=True)
            changed = {*record.state.changed, *news.late}
            if news.written is not None:
                changed |= {one.path for one in news.written.edited} | introduced_in(news.written.others.changes).keys()
            if changed:
                news.left = await self._edit_feedback.look(visit, sorted(changed), patience_until(deadline))
        return news

    def _take_written(
        self, record: ConversationRecord, workspace: Workspace, without: Collection[AbsPath]
    ) -> dict[AbsPath, Written]:
        """The files that commands changed since the last event; of very many, the first ones now and the others later.

        What other events edit at this time, or hold, is left to them.
        """
        matters, written = self._edit_feedback.settings.configures, record.written.all().items()
        found = {
            path: one for path, one in written if path not in without and (workspace.serves(path) or matters(path))
        }
        busy = {*self._edited}
        for one in self._records.values():
            busy.update(one.held, one.judgement.texts if one.judgement is not None else ())
        taken = dict([(path, one) for path, one in found.items() if path not in busy][:MAX_JUDGED])
        record.written.clear(but=found.keys() - taken.keys())
        return taken

    # --- Telling ----------------------------------------------------------------------------------------------------

    def _tell(self, record: ConversationRecord, news: News, visit: Visit, form: Form) -> str:
        """The text of what was judged beside an edit. It is known from now on."""
        groups, notes = list[Group](), list[str]()
        wanted = visit.workspace.config.feedback.severities
        if news.written is not None:
            note_judged(record.state, news.written, record.state.calls)
            groups += command_groups(news.written, form, wanted)
            notes += self._edit_feedback.notes(news.written, visit)
        groups += late_groups(record.state, news.late, form, wanted)
        record.state.told += sum(len(group.files) for group in groups)
        self._late_checks.go_on(record)
        return groups_text(groups, form, notes)

    # --- What is known ----------------------------------------------------------------------------------------------

    def _owe(self, record: ConversationRecord, edit: EditUnderWay) -> None:
        for path, text in edit.texts.items():
            record.state.owe(path, text, call=edit.call)
        self._late_checks.go_on(record)

    def _record(self, client: ClientSession, *, idle: bool = False) -> ConversationRecord:
        record = self._records.get(client.id)
        if record is None:
            record = ConversationRecord(client, idle=idle, git=git_state(client.root))
            self.kept.restore(record)
            self._records.put(client.id, record)
        record.client = client
        return record

    @contextmanager
    def _event(self, visit: Visit) -> Generator[ConversationRecord]:
        """Within the block, the conversation is told something: what it knows and is owed is kept after that."""
        record = self._record(visit.client)
        self._late_checks.listen(self._records.values(), visit)
        try:
            yield record
        finally:
            self.kept.keep(record)

    def rows(self, root: AbsPath) -> tuple[ConversationRow, ...]:
        """The conversations in a workspace, for people."""
        return tuple(record.row for record in self._records.values() if record.client.root == root)
