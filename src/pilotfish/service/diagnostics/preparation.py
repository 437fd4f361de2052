"""The state of files before an edit may break them, found while nobody waits (DIAG-11).

When a host reads a file, it may be about to edit it. Whatever that edit breaks mentions a name that the file defines,
or imports it: these files are checked one after the other, and are then known when the edit comes. Anything that a
client waits for goes first.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager

import anyio
from msgspec import Struct

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import AffectedFiles, EditedText, searched_roots
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.project_reports import ProjectReports
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.texts import Texts
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
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
"""A check that took longer was of a server that has much to do: the next one would stand in the way of an edit."""


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
                    self._forget(client)


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
