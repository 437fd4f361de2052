"""A check of a file that is not open, where a server judges those rightly: opening many files costs it much.

The text is the one on disk, and the server was told of every change there before. The project is the nearest one, and
a file that is open must be of it: another project may judge a file in another way.
"""

import os
from collections.abc import Awaitable, Callable

from msgspec import Raw, UnsetType

from pilotfish.client.session import Session
from pilotfish.errors import ServerFailed
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import ancestors
from pilotfish.protocol.codec import Malformed, decode_items
from pilotfish.protocol.diagnostics import Report, diagnostics_of, merged
from pilotfish.protocol.positions import Text
from pilotfish.protocol.wire import UNSET, WireDiagnostic
from pilotfish.servers.spec import OnDemand
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.service.diagnostics.on_demand import ask_on_demand, project_of
from pilotfish.system.clock import current_time

TRIES = 3
"""An answer during which something was sent may be of two states."""


class Unopened:
    """One file that is not open at one server."""

    def __init__(self, session: Session, ledger: Ledger, file: FileToSend) -> None:
        self._session = session
        self._ledger = ledger
        self._file = file

    async def pulled(self, deadline: float) -> tuple[Diagnostic, ...] | None:
        """What the server answers to a pull; None where the file must be opened. Raises the session's failure."""

        async def ask() -> tuple[Diagnostic, ...] | None:
            reports = await self._session.pull_unopened(self._file.path, timeout=deadline - current_time())
            lists = [self._diagnostics(report.items) for report in reports]
            found = [one for one in lists if one is not None]
            return merged(found) if reports and len(found) == len(lists) else None

        return await self._answered(ask)

    async def commanded(self, on_demand: OnDemand, deadline: float) -> tuple[Diagnostic, ...] | None:
        """What the server answers to a command; None where the file must be opened. Raises the session's failure."""
        if on_demand.project is None:
            return None

        async def ask() -> tuple[Diagnostic, ...] | None:
            project = await self._project(on_demand, deadline)
            if project is None:
                return None
            left = deadline - current_time()
            answer = await ask_on_demand(self._session, on_demand, self._file.path, timeout=left, project=project)
            return self._diagnostics(Raw(b"[]") if answer.items is UNSET else answer.items)

        return await self._answered(ask)

    async def _answered(
        self, ask: Callable[[], Awaitable[tuple[Diagnostic, ...] | None]]
    ) -> tuple[Diagnostic, ...] | None:
        try:
            for _ in range(TRIES):
                changes = self._ledger.changes
                found = await ask()
                if await self._ledger.is_as_before(changes):
                    return found
        except ServerFailed:
            if self._session.failure is not None:
                raise
        return None

    async def _project(self, on_demand: OnDemand, deadline: float) -> str | None:
        """The project file nearest to ours, if a file that is open and near it too is of that project."""
        session, nearest = self._session, self._nearest(on_demand, self._file.path)
        near = (path for path in reversed(session.documents.paths) if self._nearest(on_demand, path) == nearest)
        opened = next(near, None) if nearest is not None else None
        if opened is None:
            return None
        known = self._ledger.projects
        if opened not in known:
            left = deadline - current_time()
            known[opened] = await project_of(session, on_demand, opened, timeout=left)
        return nearest if known[opened] == nearest else None

    def _diagnostics(self, items: Raw | UnsetType) -> tuple[Diagnostic, ...] | None:
        try:
            decoded = decode_items(items, WireDiagnostic) if items is not UNSET else None
        except Malformed:
            return None
        if decoded is None:
            return None
        report = Report(decoded.items, None, 0)
        encoding, server = self._session.encoding, self._session.server
        text, path = Text(self._file.text), self._file.path
        return diagnostics_of(report, text=text, encoding=encoding, server=server, path=path)

    def _nearest(self, on_demand: OnDemand, path: AbsPath) -> str | None:
        """The project file nearest to a file, not above the root."""
        for folder in ancestors(os.path.dirname(path), self._session.root):
            for name in on_demand.project_files:
                if os.path.isfile(os.path.join(folder, name)):
                    return os.path.join(folder, name)
        return None
