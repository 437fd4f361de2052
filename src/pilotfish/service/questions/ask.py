"""Answering one question: find the place, ask every server of the file that offers it, and make one answer of it.

A server that fails becomes an error of the answer, never an empty list; one that is still indexing makes it partial.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import (
    OURSELVES,
    Answer,
    Effort,
    Error,
    Location,
    answer_from,
    error_of,
    with_warnings,
)
from pilotfish.api.questions import Operation, Question
from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Refused, ServerFailed, Unavailable
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.actions import FoundAction, joined_actions, overlapping, with_ids
from pilotfish.operations.fallback import Expected, no_server, no_server_for, not_allowed
from pilotfish.operations.hierarchy import read_items
from pilotfish.operations.names import bare_name, word_at
from pilotfish.operations.results import Reading, RequestContext, ServerResult
from pilotfish.operations.rows import ROWS, Request, at_position
from pilotfish.operations.selection import Backdrop, ResultSelection, best_first, resolved, selected
from pilotfish.policy.boundary import Place, classify
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.diagnostics import Push
from pilotfish.protocol.positions import Text, position_to_wire, range_to_wire
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.protocol.wire import Raw, WireDiagnostic, WireRange
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import PullSupport
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.questions.outlines import EnclosingSymbols, without_locals
from pilotfish.service.questions.project import ProjectFiles, SearchedFiles, symbols_of_projects
from pilotfish.service.questions.subject import Subject, SubjectFinder, not_included
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import is_of_linked_worktree
from pilotfish.system.tasks import side_by_side

INDEXING_SHARE = 0.7
"""The part of a question's time limit that may pass waiting for a server to finish indexing."""

EMPTY_QUERY = "the query is empty: give a name, or a part of one"


class Reply(Struct, frozen=True):
    """One server's answer. `reading` is None when the server does not offer the operation."""

    server: str
    encoding: Encoding = Encoding.UTF16
    reading: Reading[ServerResult] | None = None
    caveat: str | None = None
    failure: Failure | None = None
    searched: SearchedFiles | None = None
    """What the server had read, where the question is about the whole project."""


class QuestionRunner:
    def __init__(self, access: Access, files: ProjectFiles) -> None:
        self._access = access
        self._pool = access.pool
        self._ledgers = access.ledgers
        self._texts = access.texts
        self.files = files
        self.subjects = SubjectFinder(access.texts, files, self.answer)
        self._enclosing = EnclosingSymbols(access.texts)

    async def answer(self, question: Question, visit: Visit) -> Answer[Any]:
        """Raises `Refused` for what the caller got wrong; everything else is in the answer."""
        workspace = visit.workspace
        started = current_time()
        workspace.require_enabled()
        is_wide = ROWS[question.operation].is_wide
        subject = await self.subjects.find(question, visit)
        candidates = await self.candidates(question, subject, workspace)
        ask = partial(self._replies, question, visit)
        replies = await ask(subject, candidates)
        if is_wide:
            name = name_asked_about(question, subject) or ""
            uses, unread = await self.subjects.component_uses(name, subject, candidates, visit)
            replies += [Reply(OURSELVES, caveat=one) for one in unread]
            for use in uses:
                there = await ask(use.subject, use.servers)
                failures = [one.failure.message for one in there if one.failure is not None]
                why = not_included(name, [use.path], " ".join(failures), workspace.root)
                replies += [one for one in there if one.reading is not None] or [Reply(OURSELVES, caveat=why)]
        answer = await self._answer(question, replies, visit, started)
        if question.operation is Operation.CODE_ACTIONS and subject.text is not None and answer.data:
            answer = replace(answer, data=with_ids(answer.data, subject.text.string))
        is_unseen = question.operation is Operation.DEFINITION and answer.ok and not answer.data
        if is_unseen and subject.declared is not None:
            # The server knows the symbol by its outline alone, as in much JavaScript.
            effort = Effort(answer.meta.duration_ms, answer.meta.server_hits, answer.errors, total=1)
            at = subject.declared
            extent = (at.line, at.character, at.end_line, at.end_character)
            answer = answer_from(question.operation, (Location(*extent, path=at.path, text=at.text),), effort)
        about = () if subject.path is None else (subject.path,)
        lacking = workspace.hidden_uses(*about) if is_wide else ()
        # Some servers list everything then, others nothing.
        vain = (EMPTY_QUERY,) if question.query == "" and answer.ok and not answer.data else ()
        return with_warnings(answer, (*workspace.config_notes(*about), *lacking, *vain))

    async def text(self, path: AbsPath) -> Text:
        """The text of a file as it is now; raises `Refused`."""
        return await self._texts.text(path)

    # --- The servers -------------------------------------------------------------------------------------------------

    async def candidates(self, question: Question, subject: Subject, workspace: Workspace) -> tuple[Candidate, ...]:
        if subject.path is None:
            return await self.files.main_servers(workspace, question.query)
        first_line = subject.text.line(0) if subject.text else None
        choice = workspace.servers_for(subject.path, first_line)
        item = question.call_hierarchy_item or question.type_hierarchy_item
        if item is not None and item.server is not None:
            # Only the server that made the item understands its data.
            return tuple(one for one in choice.servers if one.spec.id == item.server)
        if choice.servers:
            return choice.servers
        if choice.expected is None:
            raise no_server_for(subject.path)
        word = word_at(subject.text, subject.position) if subject.text and subject.position else None
        why = workspace.why_unavailable(choice.expected)
        if why.code is Code.UNTRUSTED:
            raise not_allowed(question, why, word)
        install = workspace.install_hint(choice.expected.spec)
        raise no_server(question, Expected(choice.expected.spec.id, install, why.hint), word)

    async def _replies(
        self, question: Question, visit: Visit, subject: Subject, candidates: Sequence[Candidate]
    ) -> list[Reply]:
        workspace = visit.workspace

        async def one(candidate: Candidate) -> Reply:
            timing = workspace.settings(candidate.spec.id).timing
            seconds = (timing.initialize_timeout_ms + timing.request_timeout_ms) / 1000
            work = partial(self._ask, question, subject, workspace, candidate)
            try:
                server = self._access.server(workspace, candidate)
                reply = await self._access.use_server(server, visit.client.id, work, seconds=seconds)
            except Failure as failure:
                reply = Reply(candidate.spec.id, failure=failure)
            blocked = workspace.blockage(candidate.spec, subject.path or workspace.root) if reply.failure else None
            return replace(reply, failure=blocked) if blocked else reply

        return await side_by_side(one, candidates)

    async def _ask(
        self, question: Question, subject: Subject, workspace: Workspace, candidate: Candidate, session: Session
    ) -> Reply:
        row = ROWS[question.operation]
        request = row.request
        if request is None or request.read is None:
            raise ServerFailed(Code.UNSUPPORTED, f"{row.operation} is not a request to a server")
        ledger, path, searched = self._ledgers.of(session), subject.path, None
        await ledger.until_in_step(session.request_seconds * INDEXING_SHARE)
        async with ledger.shared():
            with ExitStack() as held, nullcontext() if path is None else ledger.using(path):
                if path is not None and subject.text is not None:
                    is_old = self._ledgers.is_older(path, session)
                    ledger.send(session, FileToSend(path, candidate.language_id, subject.text.string, is_old=is_old))
                if path is None:
                    # Without a document the server has nothing to index.
                    searched = await self.load(session, candidate, workspace, question, subject, held)
                caveat = await self.wait_for_index(session, candidate)
                if not session.supports(request.prepare or request.method, path):
                    # What a server offers, it may register only when it has loaded the project.
                    failure = caveat and Unavailable(Code.REQUEST_TIMEOUT, caveat, hint="Ask again in a while.")
                    return Reply(session.server, failure=failure or None)
                if row.is_wide and searched is None:
                    searched = await self.load(session, candidate, workspace, question, subject, held)
                contexts = await self.request_contexts(session, request, question, subject)
                answers = [(await self._request(session, candidate, request, asked), asked) for asked in contexts]
            if path is not None and subject.text is not None:
                # The question was about the text that was read first; the server is left with the one on disk.
                known = await self._texts.unchanged(path)
                if known is None or known.string != subject.text.string:
                    await self._ledgers.follow(session, path, gone=False)
            if ledger.behind is not None:
                caveat = f"{session.server}: {ledger.behind}"
            self._ledgers.close_unused(session)
        try:
            reading = _of_worktree(session.root, _merged([request.read(answer, asked) for answer, asked in answers]))
        except Malformed as malformed:
            message = f"{session.server} sent a malformed answer: {malformed}"
            raise ServerFailed(Code.PROTOCOL_ERROR, message) from malformed
        return Reply(session.server, session.encoding, reading, caveat, searched=searched)

    async def load(
        self,
        session: Session,
        candidate: Candidate,
        workspace: Workspace,
        question: Question,
        subject: Subject,
        held: ExitStack,
    ) -> SearchedFiles:
        """Let the server read what mentions the name that a question is about."""
        name = name_asked_about(question, subject)
        searched = await self.files.load(session, candidate, workspace, name, subject.path, held)
        if name is not None and searched.indexed and not searched.mentioning and question.query is not None:
            # Part of a name, perhaps: any file may have it.
            searched = await self.files.load(session, candidate, workspace, None, subject.path, held)
        return searched

    @staticmethod
    async def _request(session: Session, candidate: Candidate, request: Request, asked: RequestContext) -> Raw:
        requests = candidate.spec.completeness.requests
        if requests is not None and asked.question.operation is Operation.WORKSPACE_SYMBOL:
            return await symbols_of_projects(session, requests, asked.query)
        return await session.request(request.method, request.build(asked), about=path_of(asked.uri or ""))

    async def wait_for_index(self, session: Session, candidate: Candidate) -> str | None:
        """Wait until a server that was just started has read the project; an answer before that is partial.

        Its progress notifications tell, where it sends any; else its first diagnostics, which need the whole project.
        """
        ledger = self._ledgers.of(session)
        if ledger.has_loaded(session) and session.readiness.quiescent is not False:
            return None
        with anyio.move_on_after(session.request_seconds * INDEXING_SHARE):
            if not (ledger.answered or ledger.began):
                ledger.began = await self._said_first_diagnostics(session, candidate)
            while session.readiness.busy and not ledger.answered:
                await session.changed.wait()
            ledger.loaded = ledger.began and candidate.spec.freshness.pull is PullSupport.DYNAMIC
            return f"{session.server} is still indexing" if session.readiness.quiescent is False else None
        return f"{session.server} is still indexing"

    @staticmethod
    async def _said_first_diagnostics(session: Session, candidate: Candidate) -> bool:
        """False when no document is open to ask about."""
        if candidate.spec.freshness.pull is not PullSupport.DYNAMIC:
            return True
        while not session.supports("textDocument/diagnostic"):
            await session.changed.wait()
        for path in session.documents.paths[-1:]:
            await session.pull(path)
        return bool(session.documents.paths)

    async def request_contexts(
        self, session: Session, request: Request, question: Question, subject: Subject
    ) -> list[RequestContext]:
        """One for each request that the question takes: some servers offer a fix only at the very diagnostic, so that
        the actions of a whole line are those of the line and of each diagnostic on it."""
        # The further declarations whose uses belong to the answer.
        also = subject.also if question.operation is Operation.REFERENCES else ()
        about = [subject, *(replace(subject, position=position) for position in also)]
        contexts = [await self.request_context(session, request, question, one) for one in about]
        if question.operation is Operation.CODE_ACTIONS and question.character is None:
            whole = contexts[0]
            places = dict.fromkeys(one.range for one in whole.diagnostics if one.range != whole.range)
            narrow = [
                replace(whole, range=place, diagnostics=overlapping(whole.diagnostics, place)) for place in places
            ]
            # First what mends a diagnostic: of a whole line a server may offer only to ignore it.
            contexts = [*narrow, *contexts]
        return contexts

    async def request_context(
        self, session: Session, request: Request, question: Question, subject: Subject
    ) -> RequestContext:
        text = subject.text or Text("")
        place = subject.range if question.operation is Operation.CODE_ACTIONS else None
        asked = RequestContext(
            question,
            uri=None if subject.path is None else uri_of(subject.path),
            position=None if subject.position is None else position_to_wire(subject.position, text, session.encoding),
            range=None if place is None else range_to_wire(place, text, session.encoding),
            item=question.call_hierarchy_item or question.type_hierarchy_item,
        )
        if asked.range is not None and subject.path is not None:
            asked = replace(asked, diagnostics=_diagnostics_at(session, subject.path, asked.range))
        if request.prepare is None or asked.item is not None:
            return asked
        prepared = await session.request(request.prepare, at_position(asked), about=subject.path)
        items = read_items(prepared, asked).found
        if not items:
            raise Refused(Code.NOT_FOUND, f"Nothing at this position has {question.operation}.")
        return replace(asked, item=items[0].raw)

    # --- The answer --------------------------------------------------------------------------------------------------

    async def _answer(self, question: Question, replies: Sequence[Reply], visit: Visit, started: float) -> Answer[Any]:
        workspace, row = visit.workspace, ROWS[question.operation]
        answered = [reply for reply in replies if reply.reading is not None]
        readings = await self._readings(question, answered, visit)
        selection = selected(row, question, readings, workspace.root)
        backdrop = await self._backdrop(selection, answered, workspace)
        errors = [error_of(reply.failure) for reply in replies if reply.failure is not None]
        if not answered and not errors:
            message = f"No server of this file offers {row.operation}."
            errors.append(Error(OURSELVES, message, Code.UNSUPPORTED))
        data = resolved(row, selection, backdrop)
        if question.operation is Operation.REFERENCES and isinstance(data, tuple):
            places = tuple(place for place in data if isinstance(place, Location))
            data = await self._enclosing.added(
                places, backdrop.texts, workspace.root, lambda path: self.subjects.outline(path, visit)
            )
        searched = [_judged(reply, answered, question, workspace) for reply in answered]
        effort = Effort(
            duration_ms=round((current_time() - started) * 1000),
            server_hits=len(answered),
            errors=tuple(errors),
            caveats=(
                *(reply.caveat for reply in replies if reply.caveat),
                *(caveat for caveat in searched if caveat),
                *selection.caveats,
            ),
            truncated=selection.truncated,
            total=selection.total if isinstance(data, tuple) else None,
            offset=selection.offset,
            also_mentioned=_other_mentions(answered) if question.operation is Operation.REFERENCES else 0,
        )
        return answer_from(question.operation, data, effort)

    async def _readings(
        self, question: Question, replies: Sequence[Reply], visit: Visit
    ) -> dict[str, Reading[ServerResult]]:
        """What was found, by server: it may run for several roots. Symbols of the workspace are without locals."""
        readings: dict[str, Reading[ServerResult]] = {}
        for reply in replies:
            if reply.reading is not None:
                known = readings.get(reply.server, Reading())
                found = (*known.found, *reply.reading.found)
                readings[reply.server] = Reading(found, known.skipped + reply.reading.skipped)
        if question.operation is not Operation.WORKSPACE_SYMBOL or question.kinds is not None:
            return readings
        return {
            server: Reading(
                await without_locals(
                    best_first(reading.found, question),
                    visit.workspace.root,
                    lambda path: self.subjects.outline(path, visit),
                ),
                reading.skipped,
            )
            for server, reading in readings.items()
        }

    async def _backdrop(self, selection: ResultSelection, replies: Sequence[Reply], workspace: Workspace) -> Backdrop:
        texts: dict[AbsPath, Text] = {}
        outside: set[AbsPath] = set()
        for path in selection.paths:
            try:
                text = await self._texts.unchanged(path)
                if text is None and classify(path, workspace.boundary) is Place.OUTSIDE:
                    outside.add(path)
                    continue
                texts[path] = await self._texts.text(path) if text is None else text
            except Refused:
                # Without its text a place is shown with the server's own columns.
                continue
        encodings: Mapping[str, Encoding] = {reply.server: reply.encoding for reply in replies}
        return Backdrop(workspace.root, texts, encodings, frozenset(outside))


def name_asked_about(question: Question, subject: Subject) -> str | None:
    """The word whose uses a question asks for, where there is one."""
    item = question.call_hierarchy_item or question.type_hierarchy_item
    if item is not None:
        return bare_name(item.name)
    if subject.text is not None and subject.position is not None:
        return word_at(subject.text, subject.position)
    return bare_name(question.query) if question.query else None


def _merged(readings: Sequence[Reading[ServerResult]]) -> Reading[ServerResult]:
    first = readings[0]
    actions = [[one for one in reading.found if isinstance(one, FoundAction)] for reading in readings]
    if any(actions):
        return Reading(joined_actions(actions), sum(reading.skipped for reading in readings))
    if len(readings) == 1 or not first.found:
        # Where the server does not know the one, it does not know the symbol.
        return first
    found = list[ServerResult]()
    for one in (one for reading in readings for one in reading.found):
        if one not in found:
            found.append(one)
    return Reading(tuple(found), sum(reading.skipped for reading in readings))


def _of_worktree(root: AbsPath, reading: Reading[ServerResult]) -> Reading[ServerResult]:
    """Without what is in other worktrees inside of the root of a server, which has read these, too."""
    paths = {spot.path for one in reading.found for spot in one.spots if spot.path is not None}
    others = {path for path in paths if is_of_linked_worktree(path, root)}
    found = (one for one in reading.found if others.isdisjoint(spot.path for spot in one.spots))
    return replace(reading, found=tuple(found)) if others else reading


def _judged(reply: Reply, answered: Sequence[Reply], question: Question, workspace: Workspace) -> str | None:
    """Why the server's answer may not be whole, unless another one that has answered knows what it does not."""
    is_relayed = workspace.specs[reply.server].relays_to([one.server for one in answered])
    if reply.searched is None or reply.reading is None or is_relayed:
        return None
    if question.operation is Operation.REFERENCES and question.include_declaration and not reply.reading.found:
        # Not even the declaration: its silence says nothing about the files that mention the name.
        return reply.searched.unknown(reply.server, workspace.root)
    return reply.searched.caveat(reply.server, _paths(reply.reading), workspace.root)


def _other_mentions(replies: Sequence[Reply]) -> int:
    """Files beside the answer's that mention the name of a reference: the least of what the servers' files have."""
    counts = [
        reply.searched.other_mentions(_paths(reply.reading))
        for reply in replies
        if reply.searched is not None and reply.reading is not None
    ]
    return min(counts, default=0)


def _paths(reading: Reading[ServerResult]) -> set[AbsPath]:
    return {path for found in reading.found for spot in found.spots if (path := spot.path) is not None}


def _diagnostics_at(session: Session, path: AbsPath, place: WireRange) -> tuple[WireDiagnostic, ...]:
    """The server's own diagnostics in a range: it offers fixes only for those."""
    reports = session.reports.of(path)
    every = [
        item for channel, report in reports.items() for item in report.items if len(reports) == 1 or channel != Push()
    ]
    return overlapping(every, place)
