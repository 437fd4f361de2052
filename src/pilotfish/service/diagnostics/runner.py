"""Checking files: all of them, and all servers of each, side by side under one deadline."""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count

import anyio
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.client.session import Session
from pilotfish.config.values import TimingSettings
from pilotfish.errors import Code, Failure, Refused, Scene, Unavailable
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.policy.boundary import Want, admit
from pilotfish.pool.entry import Recipe
from pilotfish.pool.plan import Key, Rested, Stopping
from pilotfish.pool.pool import Pool
from pilotfish.protocol.diagnostics import merged
from pilotfish.protocol.documents import Documents
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.check import Check, Outcome, no_verdict
from pilotfish.service.diagnostics.habits import Remembering
from pilotfish.service.diagnostics.ledger import FileAtHand, Standing
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Memory
from pilotfish.system.tasks import side_by_side

MAX_OPEN_DOCUMENTS = 200
"""Documents open at one server; the least recently used beyond it are closed."""

GRACE_SECONDS = 0.5
"""A check ends by itself at its deadline and says how far it came; this only ends one that does not."""


class FileVerdict(Struct, frozen=True):
    """One file after a check: what all its servers said, or why the file was not sent to any."""

    path: AbsPath
    text: str
    outcomes: tuple[Outcome, ...]
    refused: Refused | None = None
    """The file is outside, missing, too large or not UTF-8 text. `path` is then as the caller named it."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return merged(outcome.diagnostics for outcome in self.outcomes if outcome.diagnostics is not None)

    @property
    def answered(self) -> int:
        """How many servers gave a verdict."""
        return sum(outcome.diagnostics is not None for outcome in self.outcomes)

    @property
    def is_fresh(self) -> bool:
        return bool(self.outcomes) and all(outcome.is_fresh for outcome in self.outcomes)


class Patience(Struct, frozen=True):
    """How long a check may take in seconds; the first touch of a server has its own limit. None: as configured."""

    first: float | None = None
    later: float | None = None


class Checks:
    """The only keeper of what is known about our dealings with each session."""

    def __init__(
        self,
        pool: Pool,
        texts: Texts,
        started: Callable[[Session], None] = lambda _session: None,
        memory: Memory | None = None,
    ) -> None:
        self._pool = pool
        self._remembering = Remembering(memory)
        self._texts = texts
        self._started = started
        self._standings: dict[Session, Standing] = {}
        self._touched: set[Key] = set()
        self._orders = count(1)

    async def run(
        self,
        client: ClientSession,
        workspace: Workspace,
        paths: Sequence[str],
        *,
        texts: Mapping[str, str] | None = None,
        patience: Patience | None = None,
    ) -> tuple[FileVerdict, ...]:
        """One verdict per file; a file that cannot be read is refused in its own verdict.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace.require_enabled()
        files: dict[AbsPath, FileAtHand] = {}
        refused: dict[AbsPath, FileVerdict] = {}
        for path in paths:
            try:
                file = await self._read(workspace, path, (texts or {}).get(path))
            except Refused as refusal:
                named = AbsPath(os.path.join(workspace.boundary.cwd, path))
                refused[named] = FileVerdict(named, "", (), refusal)
            else:
                files[file.path] = file

        async def one(file: FileAtHand) -> FileVerdict:
            return await self._file(client, workspace, file, patience or Patience())

        return (*await side_by_side(one, tuple(files.values())), *refused.values())

    async def _read(self, workspace: Workspace, path: str, given: str | None) -> FileAtHand:
        """The file with the text to check: the caller's where given, which wins over the disk. Raises `Refused`."""
        if given is not None:
            real, text = admit(path, workspace.boundary, Want.TARGET).path, given
        else:
            real = admit(path, workspace.boundary).path
            text = (await self._texts.current(real)).text
        return FileAtHand(real, "", text, order=next(self._orders), given=given is not None)

    def standing(self, session: Session) -> Standing:
        if session not in self._standings:
            alive = {known: kept for known, kept in self._standings.items() if known.failure is None}
            self._standings = {**alive, session: Standing(habits=self._remembering.recalled(session))}
        return self._standings[session]

    def close_unused(self, session: Session) -> None:
        """What a server keeps of documents does not grow with the number of files that were ever looked at."""
        self.standing(session).close_all_but(MAX_OPEN_DOCUMENTS, session)

    async def restore(self, session: Session, before: Documents | None) -> None:
        """After a restart: open again what was open, with the text that is on disk now."""
        self._started(session)
        if before is None:
            return
        for path in before.paths:
            try:
                file = await self._texts.current(path)
            except Refused:
                # It is gone or no longer text: there is nothing to open.
                continue
            self.standing(session).open_again(session, path, before.language_id(path) or "", file.text)

    async def follow(self, session: Session, path: AbsPath, *, gone: bool) -> bool:
        """A file changed on disk: an open document takes its text or is closed. False: not now, it is being checked."""
        standing, language = self.standing(session), session.documents.language_id(path)
        if language is None:
            if gone:
                session.reports.forget(path)
            return True
        try:
            text = (await self._texts.current(path)).text
        except Refused:
            if standing.is_using(path):
                return False
            standing.close(session, path)
            return True
        if session.documents.is_open(path):
            standing.send(session, FileAtHand(path, language, text, order=next(self._orders)))
        return True

    async def _file(
        self, client: ClientSession, workspace: Workspace, file: FileAtHand, patience: Patience
    ) -> FileVerdict:
        choice = workspace.servers_for(file.path, file.text.partition("\n")[0])

        async def one(candidate: Candidate) -> Outcome:
            named = replace(file, language_id=candidate.language_id)
            return await self._on(client, workspace, candidate, named, patience)

        ordered = await side_by_side(one, choice.servers)
        absent = (*([choice.missing] if choice.missing else []), *choice.withheld)
        ordered += [no_verdict(one.spec.id, workspace.why_unavailable(one), 0.0) for one in absent]
        return FileVerdict(file.path, file.text, tuple(ordered))

    async def _on(
        self,
        client: ClientSession,
        workspace: Workspace,
        candidate: Candidate,
        file: FileAtHand,
        patience: Patience,
    ) -> Outcome:
        started = current_time()
        recipe = workspace.recipe(candidate, self.restore)
        settings = workspace.settings(candidate.spec.id)
        deadline = started + self._seconds(recipe, settings.timing, patience)

        async def work(session: Session) -> Outcome:
            nonlocal file
            if scope.deadline > deadline:
                # The server died under it: what the disk has by now is what the next one should see.
                file = await self._read_again(file)
            scope.deadline = deadline + GRACE_SECONDS
            standing = self.standing(session)
            file = replace(file, is_old=not file.given and self.is_older(file.path, session))
            async with standing.shared():
                outcome = await Check(session, standing, candidate.spec.freshness, file).run(deadline)
            if standing.behind is not None and outcome.is_fresh:
                outcome = replace(outcome, assumed=True, why=standing.behind)
            restricted = workspace.restriction(candidate.spec)
            if restricted is not None and restricted.incomplete and outcome.is_fresh:
                outcome = replace(outcome, assumed=True, why=f"the workspace is not trusted, so {restricted.reason}")
            self.close_unused(session)
            self._remembering.keep(session, standing.habits)
            return outcome

        try:
            with anyio.fail_after(deadline - started) as scope:
                outcome = await self._pool.use(recipe, work, lease=client.id, restart=settings.restart)
        except TimeoutError:
            scene = Scene(server=candidate.spec.id, root=candidate.root)
            late = Unavailable(Code.REQUEST_TIMEOUT, f"{candidate.spec.id} has not started in time", scene=scene)
            outcome = no_verdict(candidate.spec.id, late, current_time() - started)
        except Failure as failure:
            outcome = no_verdict(candidate.spec.id, failure, current_time() - started)
        finally:
            self._touched.add(recipe.key)
        self._count(outcome)
        return outcome

    def is_older(self, path: AbsPath, session: Session) -> bool:
        """Whether the file, as it was last looked at, has been like this since before the server started."""
        age = self._texts.age(path)
        return age is not None and age > current_time() - session.started_at

    async def _read_again(self, file: FileAtHand) -> FileAtHand:
        if file.given:
            return file
        try:
            return replace(file, text=(await self._texts.current(file.path)).text, order=next(self._orders))
        except Refused:
            return file

    def _seconds(self, recipe: Recipe, timing: TimingSettings, patience: Patience) -> float:
        entry = self._pool.entries().get(recipe.key)
        if entry is not None and isinstance(entry.slot, Stopping | Rested):
            # It was sent away and starts anew. One that failed has had its time.
            self._touched.discard(recipe.key)
        if recipe.key not in self._touched:
            return patience.first or timing.first_touch_timeout_ms / 1000
        return patience.later or timing.diagnostics_wait_timeout_ms / 1000

    def _count(self, outcome: Outcome) -> None:
        failure = outcome.failure
        timed_out = outcome.diagnostics is None and (failure is None or failure.code is Code.REQUEST_TIMEOUT)
        found = len(outcome.diagnostics or ())
        self._pool.counters.checked(outcome.server, seconds=outcome.seconds, found=found, timed_out=timed_out)
