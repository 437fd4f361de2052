"""Checking texts that are not on disk, and files on disk as if they were.

Each server is sent all proposed texts before the first check, so they are checked together. Meanwhile no other check
or question reaches that server, and however the block ends, the server gets back what is on disk before any of them
does. From one preview to the next that waits, it goes straight. It is never told that a proposed text was saved.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from math import inf

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Key
from pilotfish.servers.resolve import ServerChoice
from pilotfish.servers.spec import Freshness
from pilotfish.service.diagnostics.check import Check
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.service.diagnostics.missing_imports import without_components
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome, no_verdict
from pilotfish.service.texts import Texts
from pilotfish.service.use_server import GRACE_SECONDS, Access, ChosenServer
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

PUT_BACK_SECONDS = 2.0
"""Reading a few files from a slow disk. What is not read by then is closed instead: the server reads it itself."""

SAVED_ONLY = "it checks a file only once it is saved"
READS_DISK = "it reads other files from disk"
MORE_WHEN_SAVED = "it checks more once a file is saved"

IMPOSSIBLE = frozenset({SAVED_ONLY, READS_DISK})
"""However long one waits."""


class _Share(Struct):
    """The files of one server."""

    server: ChosenServer
    proposed: list[FileToSend] = field(default_factory=list[FileToSend])
    others: list[FileToSend] = field(default_factory=list[FileToSend])


class ProposalRunner:
    def __init__(self, access: Access) -> None:
        self._access = access

    async def run(
        self,
        visit: Visit,
        proposed: Mapping[AbsPath, str],
        others: Mapping[AbsPath, str],
        seconds: float,
        others_seconds: float = inf,
    ) -> tuple[FileVerdict, ...]:
        """The verdict on every file, the proposed ones first; failures of servers are in it.

        `proposed` texts are not on disk; `others` are, and are checked as if the proposed were, too.

        `seconds` are for all files, `others_seconds` for the others alone: who did not ask for those gives them less.
        """
        workspace = visit.workspace
        # A file may be among both: it is asked about with its proposed text.
        texts = {**proposed, **others, **proposed}
        choices = {path: workspace.servers_for(path, text.partition("\n")[0]) for path, text in texts.items()}
        outcomes: dict[tuple[AbsPath, str], Outcome] = {}

        async def one(share: _Share) -> None:
            for path, outcome in (await self._ask(visit.client, share, seconds, others_seconds)).items():
                outcomes[path, share.server.candidate.spec.id] = outcome

        shares: dict[Key, _Share] = {}
        for path, text in texts.items():
            for candidate in choices[path].servers:
                server = self._access.server(workspace, candidate)
                share = shares.setdefault(server.recipe.key, _Share(server))
                file = FileToSend(path, candidate.language_id, text, saved=False)
                (share.proposed if path in proposed else share.others).append(file)
        async with owned_tasks() as tasks:
            for share in shares.values():
                if share.proposed:
                    tasks.start_soon(one, share)
        return tuple(_verdict(path, text, workspace, choices[path], outcomes) for path, text in texts.items())

    async def _ask(
        self, client: ClientSession, share: _Share, seconds: float, others_seconds: float
    ) -> dict[AbsPath, Outcome]:
        server, started = share.server.candidate.spec.id, current_time()
        deadline = started + seconds

        async def work(session: Session) -> dict[AbsPath, Outcome]:
            ledger = self._access.ledgers.of(session)
            paths = {file.path for file in share.proposed}
            async with propose_texts(session, ledger, self._access.texts, paths) as made:
                others_deadline = min(deadline, current_time() + others_seconds)
                judged = await _judge(session, ledger, share, made, (deadline, others_deadline))
                return {path: replace(one, incarnation=session.started_at) for path, one in judged.items()}

        try:
            return await self._access.use_server(share.server, client.id, work, seconds=seconds, grace=GRACE_SECONDS)
        except Failure as failure:
            took = current_time() - started
            return {file.path: no_verdict(server, failure, took) for file in (*share.proposed, *share.others)}


class ProposedTexts:
    """The texts of one server that are not on disk."""

    def __init__(self, session: Session, ledger: Ledger, texts: Texts) -> None:
        self._session = session
        self._ledger = ledger
        self._texts = texts

    def put(self, path: AbsPath, language_id: str, text: str) -> None:
        self._ledger.proposed[path] = language_id
        self._send(path, language_id, text)

    async def put_back(self, but: Collection[AbsPath] = ()) -> None:
        """Send what is on disk, or close the document where that takes too long or there is nothing."""
        proposed = self._ledger.proposed
        try:
            with anyio.move_on_after(PUT_BACK_SECONDS, shield=True):
                for path in proposed.keys() - set(but):
                    await self._restore(path)
        finally:
            for path in proposed.keys() - set(but):
                self._close(path)
                del proposed[path]

    async def _restore(self, path: AbsPath) -> None:
        try:
            file = await self._texts.current(path)
        except Refused:
            # It is not on disk.
            self._close(path)
        else:
            self._send(path, self._ledger.proposed[path], file.text)
        del self._ledger.proposed[path]

    def _send(self, path: AbsPath, language_id: str, text: str) -> None:
        if self._session.failure is None:
            self._ledger.send(self._session, FileToSend(path, language_id, text, saved=False))

    def _close(self, path: AbsPath) -> None:
        if self._session.failure is None:
            self._ledger.close(self._session, path)


@asynccontextmanager
async def propose_texts(
    session: Session, ledger: Ledger, texts: Texts, paths: Collection[AbsPath] = ()
) -> AsyncGenerator[ProposedTexts]:
    """Use one server alone, for texts that are not on disk; only who waits for the same finds them afterwards.

    At the start of the block the server has what is on disk, except of `paths`: those of the proposed texts, which
    replace what the block before has left there.
    """
    made = ProposedTexts(session, ledger, texts)
    async with ledger.proposing(made.put_back):
        await made.put_back(but=paths)
        yield made


async def _judge(
    session: Session, ledger: Ledger, share: _Share, made: ProposedTexts, deadlines: tuple[float, float]
) -> dict[AbsPath, Outcome]:
    freshness = share.server.candidate.spec.freshness
    if freshness.on_save_only:
        files = (*share.proposed, *share.others)
        return {file.path: Outcome(session.server, None, why=SAVED_ONLY) for file in files}
    outcomes: dict[AbsPath, Outcome] = {}

    async def one(file: FileToSend, deadline: float) -> None:
        check = Check(session, ledger, freshness, file)
        outcomes[file.path] = _as_proposed(await check.run(deadline), freshness)

    async def other(file: FileToSend, deadline: float) -> None:
        if freshness.dependents_after_save and not freshness.opens_with_unsaved:
            outcomes[file.path] = Outcome(session.server, None, why=READS_DISK)
            return
        if freshness.opens_with_unsaved:
            # So it is closed again: in an open file the server would keep what it has read of the proposed texts.
            ledger.let_go(session, file)
        check = Check(session, ledger, freshness, file)
        outcomes[file.path] = _as_proposed(await check.run_anew(deadline), freshness)

    for file in share.proposed:
        made.put(file.path, file.language_id, file.text)
    async with owned_tasks() as tasks:
        for file in share.proposed:
            tasks.start_soon(one, file, deadlines[0])
        for file in share.others:
            tasks.start_soon(other, file, deadlines[1])
    return outcomes


def _as_proposed(outcome: Outcome, freshness: Freshness) -> Outcome:
    """A server that checks again after a save has not reported everything."""
    if freshness.save_progress is None or not outcome.is_fresh:
        return outcome
    return replace(outcome, assumed=True, why=MORE_WHEN_SAVED)


def _verdict(
    path: AbsPath,
    text: str,
    workspace: Workspace,
    choice: ServerChoice,
    outcomes: Mapping[tuple[AbsPath, str], Outcome],
) -> FileVerdict:
    ordered = [outcomes[path, one.spec.id] for one in choice.servers if (path, one.spec.id) in outcomes]
    if choice.missing is not None:
        ordered.append(no_verdict(choice.missing.spec.id, workspace.why_unavailable(choice.missing), 0.0))
    return FileVerdict(path, text, without_components(workspace, path, choice, ordered))
