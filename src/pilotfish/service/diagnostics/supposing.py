"""What servers say of files while some have texts that are not on disk.

All proposed texts of a server are shown to it before the first is judged, so they are judged together; so are the other
files that are to be judged under them. Each server does this on its own, in one block that puts it back.
"""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Key
from pilotfish.servers.resolve import ServerChoice
from pilotfish.servers.spec import Freshness
from pilotfish.service.diagnostics.check import Check, Outcome, no_verdict
from pilotfish.service.diagnostics.ledger import FileAtHand, Ledger
from pilotfish.service.diagnostics.proposals import Proposal, proposal
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.use_server import GRACE_SECONDS, Access, ChosenServer
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

SAVED_ONLY = "it checks a file only once it is saved"
MORE_WHEN_SAVED = "it checks more once a file is saved"


class Supposed(Struct, frozen=True):
    """What is to be judged: `proposed` are not on disk, `others` are, and are judged as if the proposed were."""

    proposed: Mapping[AbsPath, str]
    others: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])


class _Share(Struct):
    """What one server is shown and asked."""

    server: ChosenServer
    proposed: list[FileAtHand] = field(default_factory=list[FileAtHand])
    others: list[FileAtHand] = field(default_factory=list[FileAtHand])


class Time(Struct, frozen=True):
    """Seconds that all of it may take, and the other files in it: nobody waits long for what was not asked for."""

    all: float
    others: float


class Supposing:
    def __init__(self, access: Access) -> None:
        self._access = access

    async def run(
        self, client: ClientSession, workspace: Workspace, supposed: Supposed, time: Time
    ) -> tuple[FileVerdict, ...]:
        """The verdict on every file, the proposed ones first; what a server could not say is in it."""
        files = {**supposed.others, **supposed.proposed}
        choices = {path: workspace.servers_for(path, text.partition("\n")[0]) for path, text in files.items()}
        outcomes: dict[tuple[AbsPath, str], Outcome] = {}

        async def one(share: _Share) -> None:
            for path, outcome in (await self._ask(client, share, time)).items():
                outcomes[path, share.server.candidate.spec.id] = outcome

        async with owned_tasks() as tasks:
            for share in self._shares(workspace, supposed, choices):
                tasks.start_soon(one, share)
        return tuple(
            _verdict(path, files[path], workspace, choices[path], outcomes)
            for path in (*supposed.proposed, *supposed.others)
        )

    def _shares(
        self, workspace: Workspace, supposed: Supposed, choices: Mapping[AbsPath, ServerChoice]
    ) -> list[_Share]:
        shares: dict[Key, _Share] = {}
        for path, text in {**supposed.proposed, **supposed.others}.items():
            for candidate in choices[path].servers:
                server = self._access.server(workspace, candidate)
                share = shares.setdefault(server.recipe.key, _Share(server))
                file = FileAtHand(path, candidate.language_id, text, saved=False)
                (share.proposed if path in supposed.proposed else share.others).append(file)
        return [share for share in shares.values() if share.proposed]

    async def _ask(self, client: ClientSession, share: _Share, time: Time) -> dict[AbsPath, Outcome]:
        server, started = share.server.candidate.spec.id, current_time()
        deadline = started + time.all

        async def work(session: Session) -> dict[AbsPath, Outcome]:
            ledger = self._access.ledgers.of(session)
            async with proposal(session, ledger, self._access.texts) as made:
                others_deadline = min(deadline, current_time() + time.others)
                return await _judge(session, ledger, share, made, (deadline, others_deadline))

        try:
            return await self._access.use_server(share.server, client.id, work, seconds=time.all, grace=GRACE_SECONDS)
        except Failure as failure:
            took = current_time() - started
            return {file.path: no_verdict(server, failure, took) for file in (*share.proposed, *share.others)}


async def _judge(
    session: Session, ledger: Ledger, share: _Share, made: Proposal, deadlines: tuple[float, float]
) -> dict[AbsPath, Outcome]:
    freshness = share.server.candidate.spec.freshness
    if freshness.on_save_only:
        files = (*share.proposed, *share.others)
        return {file.path: Outcome(session.server, None, why=SAVED_ONLY) for file in files}
    outcomes: dict[AbsPath, Outcome] = {}

    async def one(file: FileAtHand, deadline: float) -> None:
        check = Check(session, ledger, freshness, file)
        outcomes[file.path] = _as_proposed(await check.run(deadline), freshness)

    for file in share.proposed:
        made.put(file.path, file.language_id, file.text)
    async with owned_tasks() as tasks:
        for file in share.proposed:
            tasks.start_soon(one, file, deadlines[0])
        for file in share.others:
            tasks.start_soon(one, file, deadlines[1])
    return outcomes


def _as_proposed(outcome: Outcome, freshness: Freshness) -> Outcome:
    """A server that checks a second time after saving has not said everything."""
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
    return FileVerdict(path, text, tuple(ordered))
