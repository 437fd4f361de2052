"""What is known of all files of a project, so that a check of everything is warm (DIAG-13).

A fresh verdict stands as long as the file is the one that was judged, the same processes would judge it, and nothing
was noticed on disk that may concern it. What was noticed concerns the changed files, those that mention a word which
came or went or a name which they define, and whoever names one of these files, and so on: a type that is inferred
goes through files that are themselves as right as before. All else is as it was, and no server is asked. Without a
watcher nothing stands.
"""

from array import array
from collections.abc import Callable, Collection, Sequence

import anyio
from msgspec import Struct

from pilotfish.errors import Refused
from pilotfish.feedback.changed_names import defined_names
from pilotfish.feedback.word_index import checksum, checksums
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import admit
from pilotfish.pool.plan import Key
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.affected import stem_of
from pilotfish.service.diagnostics.check import Outcome
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.recent import Recent
from pilotfish.service.texts import Texts
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time
from pilotfish.system.ports import FileText, Identity

MAX_FILES = 20_000
"""Files whose verdict is kept."""

MAX_ROOTS = 64
"""Roots of which it is known how far their changes were followed."""

INDEX_SECONDS = 30.0
"""For the words of a project."""

SLACK_SECONDS = 0.1
"""A file that was changed after what was noticed was read, or so shortly before, is not kept."""

PROSE = (".md", ".rst", ".txt", ".adoc")
"""No server that judges code reads these."""

Judges = tuple[tuple[Key, float], ...]
"""The processes that judge a file: which server, and when it was started."""


_Processes = dict[tuple[str, AbsPath], tuple[Key, float] | None]
"""By server and root, during one look at many files; None: it does not run, or nobody would notice a change."""


class _Known(Struct, frozen=True):
    """The verdict on one file."""

    identity: Identity
    judges: Judges
    outcomes: tuple[Outcome, ...]
    listed: tuple[Diagnostic, ...]
    words: "array[int]"
    """Of its text: what comes and goes with the next one."""


class Picture:
    def __init__(
        self,
        access: Access,
        runner: CheckRunner,
        words: ProjectWords,
        is_followed: Callable[[AbsPath], bool],
    ) -> None:
        """`is_followed`: whether changes below a root are noticed."""
        self._access = access
        self._texts: Texts = access.texts
        self._runner = runner
        self._words = words
        self._is_followed = is_followed
        self._known: Recent[AbsPath, _Known] = Recent(MAX_FILES)
        self._followed: Recent[AbsPath, tuple[int, int]] = Recent(MAX_ROOTS)
        """By root: up to where its changes were followed, and how often servers had taken answers back by then."""
        self._following = anyio.Lock()

    async def check(
        self,
        client: ClientSession,
        workspace: Workspace,
        paths: Sequence[str],
        patience: Patience,
        *,
        anew: bool = False,
    ) -> tuple[FileVerdict, ...]:
        """One verdict per file, from what is known where it stands; the workspace is in step with the disk.

        `anew`: what is not known is checked as after a change of other files, see `CheckRunner.run`.
        """
        found = await self.standing(workspace, paths)
        left = [path for path in paths if path not in found]
        checked = await self._check(client, workspace, left, patience, anew=anew) if left else ()
        return (*found.values(), *checked)

    def knows(self, path: str) -> bool:
        """Whether there is a verdict on this file, which may stand."""
        return self._known.get(AbsPath(path)) is not None

    async def standing(self, workspace: Workspace, paths: Sequence[str]) -> dict[str, FileVerdict]:
        """What is known of these files, by the names that were given, and stands."""
        await self._follow(workspace)
        workspace.look_again()
        processes = _Processes()
        return {path: one for path in paths if (one := await self._standing(workspace, path, processes)) is not None}

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep nothing of these files and roots any longer."""
        self._known.drop(is_meant)
        self._followed.drop(is_meant)

    async def _standing(self, workspace: Workspace, path: str, processes: _Processes) -> FileVerdict | None:
        try:
            file = await self._current(workspace, path)
        except Refused:
            return None
        known = None if file is None else self._known.get(file.path)
        if file is None or known is None or file.identity != known.identity:
            return None
        if self._judges(workspace, file, processes) != known.judges:
            return None
        return FileVerdict(file.path, file.text, known.outcomes, listed=known.listed)

    async def _current(self, workspace: Workspace, path: str) -> FileText | None:
        """The file that is meant, as it is now; None where nothing is known of it. Raises `Refused`."""
        named = AbsPath(path)
        if is_inside(path, workspace.root) and self._known.get(named) is not None:
            file = await self._texts.unchanged_file(named)
            if file is not None:
                # It was admitted when it was checked, and is still the same file.
                return file
        real = admit(path, workspace.boundary).path
        return None if self._known.get(real) is None else await self._texts.current(real)

    async def _check(
        self, client: ClientSession, workspace: Workspace, paths: Sequence[str], patience: Patience, *, anew: bool
    ) -> tuple[FileVerdict, ...]:
        """Check these files, and keep what is fresh unless something changed meanwhile."""
        started = current_time()
        verdicts = await self._runner.run(client, workspace, paths, patience=patience, anew=anew)
        doubtful = [verdict.path for verdict in verdicts if verdict.is_unsignalled]
        if doubtful:
            # Others were changed, and of a file that is open already a server says nothing when nothing is new.
            again = await self._runner.run(client, workspace, doubtful, patience=patience, anew=True)
            verdicts = tuple({**{one.path: one for one in verdicts}, **{one.path: one for one in again}}.values())
        for verdict in verdicts:
            if verdict.is_fresh and self._is_followed_to_the_end(workspace):
                await self._keep(workspace, verdict, started)
        return verdicts

    async def _keep(self, workspace: Workspace, verdict: FileVerdict, started: float) -> None:
        try:
            file = await self._texts.current(verdict.path)
        except Refused:
            return
        workspace.look_again()
        judges, age = self._judges(workspace, file, {}), self._texts.age(verdict.path)
        if age is None or age < current_time() - started + SLACK_SECONDS:
            return
        # What is known of another text of the file tells what came and went: it stays until that was followed.
        if judges and file.text == verdict.text and self._known.get(verdict.path) is None:
            known = _Known(file.identity, judges, verdict.outcomes, verdict.diagnostics, checksums(file.content))
            self._known.put(verdict.path, known)

    def _judges(self, workspace: Workspace, file: FileText, processes: _Processes) -> Judges:
        """Empty where one is none. `processes`: those found so far; the workspace has looked for programs."""
        found = list[tuple[Key, float]]()
        first_line = file.text.partition("\n")[0]
        for candidate in workspace.servers_for(file.path, first_line, looked=True).servers:
            named = candidate.spec.id, candidate.root
            if named not in processes:
                processes[named] = self._process(workspace, candidate)
            process = processes[named]
            if process is None:
                return ()
            found.append(process)
        return tuple(found)

    def _process(self, workspace: Workspace, candidate: Candidate) -> tuple[Key, float] | None:
        """Where it does not run, or changes on disk would not be noticed, None."""
        # It looks at all that the server reads besides sources.
        key = self._access.server(workspace, candidate).recipe.key
        entry = self._access.pool.entries().get(key)
        session = entry.session if entry is not None and entry.usable else None
        return (key, session.started_at) if session is not None and self._is_followed(candidate.root) else None

    # --- What was noticed --------------------------------------------------------------------------------------------

    def _roots(self, workspace: Workspace) -> list[AbsPath]:
        return sorted({key.root for key in self._access.pool.entries() if workspace.holds(key.root)})

    def _noticed(self, root: AbsPath) -> tuple[int, int]:
        entries = self._access.pool.entries()
        sessions = [entry.session for key, entry in entries.items() if key.root == root]
        refreshes = sum(session.reports.refreshes for session in sessions if session is not None)
        return self._words.changes(root), refreshes

    def _is_followed_to_the_end(self, workspace: Workspace) -> bool:
        return all(self._noticed(root) == self._followed.get(root) for root in self._roots(workspace))

    async def _follow(self, workspace: Workspace) -> None:
        """Drop what may not stand any more."""
        async with self._following:
            for root in self._roots(workspace):
                self._words.follow(root)
                now, before = self._noticed(root), self._followed.get(root)
                if now == before:
                    continue
                self._followed.put(root, now)
                # A server takes its answers back after a change; without one, nobody knows why.
                changed = None if before is None else self._words.changed_since(root, before[0])
                affected = await self._affected(workspace, root, changed) if changed else None
                if affected is None:
                    self._known.drop(lambda path, root=root: is_inside(path, root))
                else:
                    self._known.drop(affected.__contains__)

    async def _affected(
        self, workspace: Workspace, root: AbsPath, changed: Collection[AbsPath]
    ) -> frozenset[AbsPath] | None:
        """The files that the changes may concern; None: any."""
        words, found = set[int](), set(changed)
        for path in changed:
            known = self._known.get(path)
            self._known.drop(lambda one, path=path: one == path)
            if path.endswith(PROSE):
                continue
            if known is None or not workspace.serves(path):
                return None
            text = await self._content(path)
            words |= set(known.words) ^ set(checksums(text))
            words |= {checksum(name) for name in (stem_of(path), *defined_names(text.decode(errors="replace")))}
        while words:
            holding = await self._words.holding(root, words, INDEX_SECONDS)
            if holding is None or not holding.complete:
                return None
            words = {checksum(stem_of(path)) for path in holding.files.keys() - found}
            found |= holding.files.keys()
        return frozenset(found)

    async def _content(self, path: AbsPath) -> bytes:
        try:
            return (await self._texts.current(path)).content
        except Refused:
            return b""
