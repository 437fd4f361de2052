"""The state of files before an edit may break them, found while nobody waits (DIAG-11).

When a host reads a file, it may be about to edit it. Whatever that edit breaks mentions a name that the file defines,
or imports it: these files are checked one after the other, and are then known when the edit comes. Anything that a
client waits for goes first.
"""

import logging
import os
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import islice

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import AffectedFiles, EditedText, searched_roots
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict
from pilotfish.service.recent import Recent, Remembered
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Memory
from pilotfish.system.source_files import files_below
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

MAX_WAITING = 400
"""Files that wait to be checked; the ones that have waited longest are left out."""

MAX_LIKELY = 30
"""For one file that is read: some seconds of a server that nobody waits for."""

SECONDS = 10.0
"""For the words of the project, and for one file."""

BUDGET_SECONDS = 20.0
"""What servers are used for one client that edits nothing: some hosts read hundreds of files."""

SLOW_SECONDS = 1.0
"""A check that took longer was of a server that has much to do: the next one would stand in the way of an edit. Not so
the first such one of a workspace, with which its servers read what all others need, too."""

KIND = "last used"

MAX_SERVERS = 4
"""That are started for one conversation: the last ones that were used first for this workspace."""

MAX_WORKSPACES = 100

MAX_LISTED = 5_000
"""Files that are looked at for the main language."""


class Prepared(Struct, frozen=True):
    """One file to check, for one client; or one that it has read (`is_read`), to find those that may follow from it."""

    visit: Visit
    path: AbsPath
    is_read: bool = False


class Preparation:
    def __init__(self, prepare: Callable[[Prepared], Awaitable[Sequence[AbsPath]]]) -> None:
        """`prepare` returns further files to check."""
        self._prepare = prepare
        self._waiting: OrderedDict[tuple[str, AbsPath], Prepared] = OrderedDict()
        """The next one last."""
        self._spent: Counter[str] = Counter()
        """Thousandths of seconds by client, since its last edit."""
        self._slow: Recent[AbsPath, float] = Recent(MAX_WORKSPACES)
        """By the root of a client, how long its last slow check took."""
        self._busy = 0
        self._pulse = Pulse()
        self._runs = False
        self._current: anyio.CancelScope | None = None
        """Of the check that is under way."""
        self._again = False
        """Whether one that is interrupted is begun again."""
        self._ahead: dict[str, anyio.CancelScope] = {}
        """By client: the check with which its servers get to know the project."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with owned_tasks() as tasks:
            tasks.start_soon(self._work)
            self._runs = True
            try:
                yield
            finally:
                self._runs = False
                tasks.cancel_scope.cancel()

    def add(self, files: Sequence[Prepared]) -> None:
        """See to these when nobody waits, the first of them first, before all that were added earlier."""
        if not self._runs:
            return
        for one in reversed(files):
            self._waiting[one.visit.client.id, one.path] = one
            self._waiting.move_to_end((one.visit.client.id, one.path))
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
        self._pulse.notify()

    def drop(self, client: ClientSession) -> None:
        """This client is gone, or edits something: from now on it begins anew."""
        del self._spent[client.id]
        self._forget(client.id)
        if client.id in self._ahead:
            self._ahead[client.id].cancel()

    @contextmanager
    def ahead(self, client: ClientSession) -> Generator[None]:
        """Within the block a file is checked for the sake of starting its server: the client's first edit ends that.

        It would wait at the server behind a first check that its own change makes worthless.
        """
        with anyio.CancelScope() as scope:
            self._ahead[client.id] = scope
            try:
                yield
            finally:
                if self._ahead.get(client.id) is scope:
                    del self._ahead[client.id]

    def _forget(self, client: str) -> None:
        for key in [key for key in self._waiting if key[0] == client]:
            del self._waiting[key]

    @contextmanager
    def giving_way(self, *, interrupt: bool = True, again: bool = False) -> Generator[None]:
        """Somebody waits: nothing is begun meanwhile. `interrupt`: what is under way ends, at the server too.

        It is begun again only if `again`: after an edit, what was to be known is computed when it is needed.
        """
        self._busy += 1
        if interrupt and self._current is not None:
            self._again = again
            self._current.cancel()
        try:
            yield
        finally:
            self._busy -= 1
            self._pulse.notify()

    async def _work(self) -> None:
        while True:
            while self._busy or not self._waiting:
                await self._pulse.wait()
            (client, _), next_one = self._waiting.popitem()
            if self._spent[client] > BUDGET_SECONDS * 1000:
                continue
            started = current_time()
            try:
                with anyio.CancelScope() as self._current:
                    following = await self._prepare(next_one)
                    self.add([Prepared(next_one.visit, path) for path in following])
            except Failure as failure:
                logger.debug("not prepared path=%s reason=%s", next_one.path, failure.message)
            except Exception:
                # No call waits for it, so the log is the only place; and an error would end the whole service.
                logger.exception("preparing failed path=%s", next_one.path)
            finally:
                if self._current is not None and self._current.cancelled_caught and self._again:
                    self.add([next_one])
                self._current = None
                seconds = current_time() - started
                self._spent[client] += round(seconds * 1000)
                if seconds > SLOW_SECONDS and not next_one.is_read:
                    root = next_one.visit.client.root
                    if self._slow.get(root) is not None:
                        self._forget(client)
                    self._slow.put(root, seconds)


class LikelyFiles:
    """Files that the next edit may break, and what they have now."""

    def __init__(
        self,
        runner: CheckRunner,
        texts: Texts,
        states: FileStates,
        words: ProjectWords,
        in_step: Callable[[Visit], Awaitable[Visit]],
        reports: ProjectReports,
    ) -> None:
        """`in_step`: read what is noticed by now."""
        self._runner = runner
        self._texts = texts
        self._states = states
        self._affected = AffectedFiles(words)
        self._words = words
        self._in_step = in_step
        self._reports = reports

    async def prepare(self, one: Prepared) -> list[AbsPath]:
        """Check one, or say which to check for one that was read."""
        if one.is_read:
            return await self._likely(one.visit, one.path)
        await self._check(one)
        return []

    async def _likely(self, visit: Visit, path: AbsPath) -> list[AbsPath]:
        """Those that are not known, the likeliest first; none where changes on disk are not noticed."""
        found = list[AbsPath]()
        edit = EditedText(path, None, (await self._texts.current(path)).text)
        for target in searched_roots(visit.workspace, [path]):
            # What a server says of its whole project now is what it is compared with after the edit.
            await self._reports.look(visit, target, path, current_time() + SECONDS)
            if not self._words.is_followed(target.root):
                continue
            affected = await self._affected.of_edits(target.root, [edit], target.extensions, SECONDS)
            found += affected.files
        unknown = [one for one in found if not self._states.is_current(one) and visit.workspace.serves(one)]
        return unknown[:MAX_LIKELY]

    async def _check(self, one: Prepared) -> None:
        """Check one, and keep what it has, unless something changed meanwhile: then it may be broken already."""
        if self._states.is_current(one.path):
            return
        await self._in_step(one.visit)
        world = self._states.world
        verdicts = await self._runner.run(one.visit, [one.path], patience=Patience(SECONDS, SECONDS), anew=True)
        await self._in_step(one.visit)
        for verdict in verdicts:
            if verdict.is_fresh:
                self._states.put(verdict, world)


class WarmStart:
    """Which files to open when a conversation begins, so that its first edit meets servers that run.

    Of each server that a workspace used last, the file is remembered that it was used for: opening that starts it. In a
    workspace that was never used, a file of the language that has most files stands for it, and one of its components.
    """

    def __init__(self, memory: Memory | None) -> None:
        self._known = Remembered(memory, KIND, dict[str, AbsPath], dict[str, AbsPath], MAX_WORKSPACES)

    def used(self, workspace: Workspace, verdicts: Sequence[FileVerdict]) -> None:
        """These files were judged: remember servers that were not used here before."""
        known = self._known.get(workspace.root)
        news = {
            outcome.server: verdict.path
            for verdict in verdicts
            for outcome in verdict.outcomes
            if outcome.diagnostics is not None and not _is_there(known.get(outcome.server))
        }
        if news:
            merged = {**{server: path for server, path in known.items() if server not in news}, **news}
            self._known.put(workspace.root, dict(list(merged.items())[-MAX_SERVERS:]))

    async def files(self, workspace: Workspace) -> tuple[AbsPath, ...]:
        """One file for each server that is worth starting now."""
        if not workspace.config.start_ahead:
            return ()
        found = self._known.get(workspace.root).values()
        known = [path for path in found if _is_there(path) and workspace.serves(path)]
        if not known:
            known = await anyio.to_thread.run_sync(_main_files, workspace)
        return tuple(dict.fromkeys(known))


def _is_there(path: AbsPath | None) -> bool:
    return path is not None and os.path.isfile(path)


def _main_files(workspace: Workspace) -> list[AbsPath]:
    """The first file of the language that has most files and a server, and of components that import such files:
    these have a server of their own. Blocking: for a thread.
    """
    firsts: dict[str, AbsPath] = {}
    counts: Counter[str] = Counter()
    for path in islice(files_below(workspace.root), MAX_LISTED):
        ending = os.path.splitext(path)[1]
        if ending and (ending in firsts or workspace.serves(path)):
            firsts.setdefault(ending, path)
            counts[ending] += 1
    for main, _ in counts.most_common():
        if any(one.spec.serves_code for one in workspace.servers_for(firsts[main]).servers):
            beside = component_servers(workspace, [main])
            return [
                firsts[main],
                *(firsts[one] for one in firsts if any(one in each.files.extensions for each in beside)),
            ]
    return []
