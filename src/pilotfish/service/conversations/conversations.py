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
from pilotfish.feedback.conversation_text import Group, groups_text
from pilotfish.feedback.text import Form, appended
from pilotfish.feedback.written_files import Written, WrittenFiles
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.conversations.disk_writes import DiskWrites
from pilotfish.service.conversations.kept import KeptConversations
from pilotfish.service.conversations.late_checks import LateChecks
from pilotfish.service.conversations.news import (
    NOTHING_NEW,
    TOLD_TOGETHER,
    News,
    ToldEdit,
    bytes_left,
    command_groups,
    compared,
    conflict_line,
    cut_off,
    edited_files,
    form_at,
    introduced_in,
    late_groups,
    note_judged,
    patience_until,
    scope_of,
    told_files,
    touch_of,
    what_is_left,
    without_older,
)
from pilotfish.service.conversations.record import ConversationRecord, EditUnderWay, row_of
from pilotfish.service.conversations.together import (
    gathered,
    is_held,
    is_quiet,
    note_batches,
    owe_held,
    owe_written,
    texts_before,
)
from pilotfish.service.conversations.unwatched import UnwatchedChanges
from pilotfish.service.diagnostics.edit_feedback import EditFeedback, Scope
from pilotfish.service.diagnostics.effort import milliseconds_since
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.runner import FileVerdict, Patience
from pilotfish.service.recent import Recent
from pilotfish.service.texts import Given, Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.git_state import GitMove, git_state

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
        texts: Texts,
        unwatched: UnwatchedChanges,
        kept: KeptConversations,
        in_step: Callable[[ClientSession], Awaitable[Visit]],
        used: Callable[[Workspace, Sequence[FileVerdict]], None],
    ) -> None:
        self._edit_feedback = edit_feedback
        self._states = states
        self._disk_writes = DiskWrites(states, texts)
        self._unwatched = unwatched
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
            # The next conversation starts from what is there now.
            self._late_checks.run_soon(self._disk_writes.take_for_granted, record)

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
        self._disk_writes.note(self._all(), changes, place)

    @contextmanager
    def editing(self, touch: Touch, workspace: Workspace) -> Generator[None]:
        """Within the block, no other event takes what is noticed of these files for the work of a command.

        Nor does any check in the background stand in the way: what such a one had found so far is found again.
        """
        paths = () if touch.kind == "read" else tuple(texts_before(touch, workspace))
        interrupted = [record for record in self._all() if paths and workspace.holds(record.client.root)]
        for record in interrupted:
            self._late_checks.stop(record)
        self._edited.update(paths)
        try:
            yield
        finally:
            self._edited -= Counter(paths)
            for record in interrupted:
                self._late_checks.go_on(record)

    async def touched(
        self,
        touch: Touch,
        visit: Visit,
        started: float,
        given: Mapping[str, Given],
    ) -> ToldEdit:
        """Feedback after an edit, with what else is to be told; when the time of the visit is over, with what it has.

        `given`: the texts of the touch, as `CheckRunner.take` took them.
        """
        if touch.kind == "read":
            return await self._read(touch, visit, started, given)
        with self._event(visit) as record:
            return await self._judge_and_tell(record, touch, visit, started, given)

    async def _judge_and_tell(
        self,
        record: ConversationRecord,
        touch: Touch,
        visit: Visit,
        started: float,
        given: Mapping[str, Given],
    ) -> ToldEdit:
        workspace = visit.workspace
        record.idle = False
        note_batches(record, touch)
        call = record.call(counts=touch.counts)
        texts = texts_before(touch, workspace)
        await self._unwatched.look(record, workspace, but=texts)
        move = await self._disk_writes.leave_to_git(record, workspace)
        if record.git is not None and record.git.unfinished is not None:
            record.held.clear()
            return await self._without_blame(record, tuple(texts), visit, started)
        await self._disk_writes.note_own(record, texts)
        if is_held(record, touch, workspace.config.feedback):
            texts |= await self._disk_writes.claim(record, self._all(), workspace, texts, move)
            return await self._hold(record, texts, visit, started)
        touch, texts = gathered(record, touch, texts, self._states.last_text)
        judgement = EditUnderWay(anyio.CancelScope(deadline=visit.until), texts, call)
        news = await self._judge_edit(record, touch, visit, given, judgement, move, started)
        if judgement.taken_over:
            feedback = Feedback("", State.UNAVAILABLE, milliseconds_since(started), TOLD_TOGETHER)
        else:
            feedback = self._tell_edit(record, touch, visit, news, judgement, started)
        form = workspace.form(plain=touch.plain, max_bytes=bytes_left(touch.max_bytes, workspace, feedback.text))
        text = self._tell(record, news, visit, form)
        return ToldEdit(replace(feedback, text=appended(feedback.text, text)), edited_files(news.edit))

    async def _judge_edit(
        self,
        record: ConversationRecord,
        touch: Touch,
        visit: Visit,
        given: Mapping[str, Given],
        judgement: EditUnderWay,
        move: GitMove | None,
        started: float,
    ) -> News:
        """What there is to tell after an edit, as far as it is known when its time is over or another takes it over."""
        news, state = News(), record.state
        if touch.batch is not None:
            record.judgement = judgement
        try:
            with judgement.scope:
                claimed = await self._disk_writes.claim(record, self._all(), visit.workspace, judgement.texts, move)
                # What a command did to a file between two edits of a batch belongs to the batch.
                carried = state.unjudged | ({} if touch.batch == "end" else claimed)
                judgement.texts |= {path: text for path, text in carried.items() if path in judgement.texts}
                until = visit.until - LAST_SECONDS
                scope = replace(scope_of(state), given=given, carried=carried, settled=(), heard=(), until=until)
                news.edit = without_older(state, await self._edit_feedback.judge(touch, visit, started, scope))
                known = {*judgement.texts, *compared(news.edit.others.changes)}
                await self._look(record, visit, news, known, started)
        except anyio.get_cancelled_exc_class():
            if not judgement.taken_over:
                self._owe(record, judgement)
            raise
        finally:
            if record.judgement is judgement:
                record.judgement = None
        return news

    async def _hold(
        self, record: ConversationRecord, texts: Mapping[AbsPath, str | None], visit: Visit, started: float
    ) -> ToldEdit:
        """Note the edit for the event that tells of it, and let the servers begin; that event may be the stop."""
        for path, said in texts.items():
            if path not in record.held and len(record.held) < MAX_FILES:
                record.held[path] = (
                    said if said is not None else await self._disk_writes.text_before(path, visit.workspace)
                )
            if path in record.held:
                await self._disk_writes.see(path)
        match visit.workspace.config.feedback.after:
            case "stop":
                owe_held(record)
                self._late_checks.go_on(record)
            case "ask":
                record.held.clear()
            case _:
                self._late_checks.warm(record, visit, tuple(texts))
        return ToldEdit(Feedback("", State.UNAVAILABLE, milliseconds_since(started), TOLD_TOGETHER))

    async def _read(self, touch: Touch, visit: Visit, started: float, given: Mapping[str, Given]) -> ToldEdit:
        for path in texts_before(touch, visit.workspace):
            # An edit may come before the check has ended, and this is what it starts from.
            await self._disk_writes.see(path)
        judged = await self._edit_feedback.judge(touch, visit, started, Scope(given=given))
        self._used(visit.workspace, judged.edited)
        return ToldEdit(self._edit_feedback.tell(judged, touch, visit, started))

    def _tell_edit(
        self,
        record: ConversationRecord,
        touch: Touch,
        visit: Visit,
        news: News,
        judgement: EditUnderWay,
        started: float,
    ) -> Feedback:
        if news.edit is None:
            self._owe(record, judgement)
            return cut_off(visit.workspace, tuple(judgement.texts), started)
        state = record.state
        feedback = self._edit_feedback.tell(news.edit, touch, visit, started, state.introduced)
        note_judged(state, news.edit, judgement.call)
        state.told += told_files(news.edit) if feedback.text else 0
        self._used(visit.workspace, news.edit.edited)
        return feedback

    async def reached(self, moment: Moment, visit: Visit, started: float) -> Feedback:
        """What is to be told at a moment of a conversation that changed no file itself."""
        with self._event(visit) as record:
            return await self._reached(record, moment, visit, started)

    async def _reached(self, record: ConversationRecord, moment: Moment, visit: Visit, started: float) -> Feedback:
        workspace = visit.workspace
        if moment.waits:
            await self._unwatched.look(record, workspace)
        await self._disk_writes.leave_to_git(record, workspace)
        if record.git is not None and record.git.unfinished is not None:
            record.written.clear()
            return Feedback("", State.UNAVAILABLE, milliseconds_since(started), conflict_line(record.git.unfinished))
        if moment.kind == "prompt" and record.idle:
            # Some hosts report a prompt in the middle of a turn, too: then the turn goes on.
            await self._disk_writes.take_for_granted(record)
        note_batches(record, moment)
        if moment.kind == "prompt":
            owe_held(record)
            record.state.prompted()
        if is_quiet(record, moment, workspace.config.feedback):
            text = ""
        elif moment.kind == "stop":
            text = await self._before_stop(record, moment, visit, started)
        else:
            record.idle = False
            record.call(counts=moment.counts and moment.kind == "call")
            news = News()
            if moment.waits:
                await self._look(record, visit, news, (), started)
            else:
                news.late = self._edit_feedback.known(record.state.standing(Standing.LATE))
            text = self._tell(record, news, visit, form_at(moment, workspace))
        state, reason = (State.FRESH, None) if text else (State.UNAVAILABLE, NOTHING_NEW)
        return Feedback(text, state, milliseconds_since(started), reason)

    async def _before_stop(self, record: ConversationRecord, moment: Moment, visit: Visit, started: float) -> str:
        workspace = visit.workspace
        state, feedback, text, is_known = record.state, workspace.config.feedback, "", False
        may_tell = feedback.before_stop and state.may_tell_before_stop(moment.agent, again=moment.again)
        if may_tell and not record.held and not any(map(workspace.serves, record.written.all())):
            # What goes on in the background would take longer if it were begun anew.
            await self._late_checks.wait(record, started + STOP_SECONDS - LOOK_SECONDS - current_time())
        if moment.tentative:
            return await self._glance(record, moment, visit, started) if may_tell else ""
        if may_tell:
            news = await self._look_for_what_is_left(record, visit, started)
            owe_written(record, workspace)
            text, is_known = what_is_left(state, news, form_at(moment, workspace), feedback, moment.agent)
            # That nobody knows is said once: whoever goes on because of it can do nothing more about it.
            text = "" if moment.again and not is_known else text
            self._late_checks.go_on(record)
        if text:
            state.stop_told(moment.agent, is_known=is_known)
        elif not moment.agent:
            state.turn_ended()
            record.idle = True
        return text

    async def _glance(self, record: ConversationRecord, moment: Moment, visit: Visit, started: float) -> str:
        """What would be told before a stop. What is known and what is owed stay as they are."""
        feedback, written = visit.workspace.config.feedback, WrittenFiles(record.written.all())
        apart = replace(record, state=record.state.copied(), written=written, held=dict(record.held))
        news = await self._look_for_what_is_left(apart, visit, started)
        return what_is_left(apart.state, news, form_at(moment, visit.workspace), feedback, moment.agent)[0]

    # --- Judging ----------------------------------------------------------------------------------------------------

    async def _look(
        self,
        record: ConversationRecord,
        visit: Visit,
        news: News,
        without: Iterable[AbsPath],
        started: float,
        *,
        last: bool = False,
    ) -> None:
        """Judge what commands changed and what came late; before a stop (`last`) also what is still pending."""
        async with record.telling:
            if last:
                owe_held(record)
            deadline = max(started + visit.workspace.wait_seconds, current_time() + LOOK_SECONDS)
            deadline = started + STOP_SECONDS - 2 * LAST_SECONDS if last else deadline
            until, known = 0.0 if last else visit.until - LAST_SECONDS, set(without)
            written = self._take_written(record, visit.workspace, known)
            pending = self._late_checks.unattended(record, anyhow=bool(written)) if last else {}
            try:
                paths = dict.fromkeys((*written, *pending))
                if paths:
                    await self._disk_writes.note_own(record, {path: one.before for path, one in written.items()})
                    # What it finds from now on would be settled by this check, which knows nothing of it.
                    self._late_checks.stop(record)
                    touch = touch_of(paths, written)
                    gone = [path for path, one in written.items() if one.change is Change.DELETED]
                    patience = patience_until(deadline - LOOK_SECONDS if last else deadline, until)
                    scope = scope_of(record.state, patience, others_seconds=LOOK_SECONDS, gone=gone, until=until)
                    began = max(current_time(), deadline - visit.workspace.wait_seconds)
                    found = await self._edit_feedback.judge(touch, visit, began, scope)
                    news.written = without_older(record.state, found)
                    known.update(paths, compared(news.written.others.changes))
                if late := [path for path in record.told_late if path not in known]:
                    news.late = await self._edit_feedback.look(visit, late, patience_until(deadline))
                record.taken = False
            except BaseException:
                # Nothing of it was told: it is judged again with the next event.
                record.written.restore(written)
                raise

    async def _look_for_what_is_left(self, record: ConversationRecord, visit: Visit, started: float) -> News:
        """Judge everything that is not judged yet, and look once more at what was changed or broken in this turn."""
        news, deadline = News(unchecked=record.left), started + STOP_SECONDS
        with anyio.CancelScope(deadline=deadline):
            await self._look(record, visit, news, (), started, last=True)
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

        What other events edit at this time is left to them.
        """
        matters, written = self._edit_feedback.settings.configures, record.written.all().items()
        found = {path: change for path, change in written if workspace.serves(path) or matters(path)}
        others = [path for path in found if self._is_edited(path) and path not in without]
        for path in (*without, *others):
            found.pop(path, None)
        taken = dict(list(found.items())[:MAX_JUDGED])
        record.written.clear(but={*others, *(path for path in found if path not in taken)})
        return taken

    def _is_edited(self, path: AbsPath) -> bool:
        """Whether an edit of the file is under way, or held."""
        records = self._all()
        running = (record.judgement.texts for record in records if record.judgement is not None)
        return path in self._edited or any(path in one for one in (*running, *(record.held for record in records)))

    # --- Telling ----------------------------------------------------------------------------------------------------

    def _tell(self, record: ConversationRecord, news: News, visit: Visit, form: Form) -> str:
        """The text of what was judged beside an edit. It is known from now on."""
        groups: list[Group] = []
        notes: list[str] = []
        wanted = visit.workspace.config.feedback.severities
        if news.written is not None:
            judged, call = news.written, record.state.calls
            note_judged(record.state, judged, call)
            groups += command_groups(judged, form, wanted)
            notes += self._edit_feedback.notes(judged, visit)
        groups += late_groups(record.state, news.late, form, wanted)
        record.state.told += sum(len(group.files) for group in groups)
        self._late_checks.go_on(record)
        return groups_text(groups, form, notes)

    # --- What is known ----------------------------------------------------------------------------------------------

    def _owe(self, record: ConversationRecord, judgement: EditUnderWay) -> None:
        for path, text in judgement.texts.items():
            record.state.owe(path, text, call=judgement.call)
        self._late_checks.go_on(record)

    async def _without_blame(
        self, record: ConversationRecord, paths: Sequence[AbsPath], visit: Visit, started: float
    ) -> ToldEdit:
        """In the middle of a merge the files are broken by what git has put into them: nothing is told of them."""
        await self._edit_feedback.look(visit, paths, Patience())
        assert record.git is not None  # the caller looked
        reason = conflict_line(record.git.unfinished)
        is_new, record.conflicted = record.conflicted != record.git.unfinished, record.git.unfinished
        text = reason if is_new and visit.workspace.config.feedback.no_verdict == "say" else ""
        return ToldEdit(Feedback(text, State.UNAVAILABLE, milliseconds_since(started), reason))

    def _record(self, client: ClientSession, *, idle: bool = False) -> ConversationRecord:
        record = self._records.get(client.id)
        if record is None:
            record = ConversationRecord(client, idle=idle, git=git_state(client.root))
            self._unwatched.begin(record)
            self.kept.restore(record)
            self._records.put(client.id, record)
        record.client = client
        return record

    @contextmanager
    def _event(self, visit: Visit) -> Generator[ConversationRecord]:
        """Within the block, the conversation is told something: what it knows and is owed is kept after that."""
        record = self._record(visit.client)
        self._late_checks.listen(self._all(), visit)
        try:
            yield record
        finally:
            self.kept.keep(record)

    def rows(self, root: AbsPath) -> tuple[ConversationRow, ...]:
        """The conversations in a workspace, for people."""
        return tuple(row_of(record) for record in self._all() if record.client.root == root)

    def _all(self) -> list[ConversationRecord]:
        return [record for key in self._records if (record := self._records.get(key)) is not None]
