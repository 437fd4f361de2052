"""A check of a file that is not open, where a server judges those rightly: opening many files costs it much.

The text is the one on disk, and the server was told of every change there before. The project is the nearest one, and
a file that is open must be of it: another project may judge a file in another way.
"""

import os

from msgspec import Raw

from pilotfish.client.session import Session
from pilotfish.errors import ServerFailed
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import ancestors
from pilotfish.protocol.codec import Malformed, decode_items
from pilotfish.protocol.diagnostics import Report, diagnostics_of
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

    def __init__(self, session: Session, ledger: Ledger, on_demand: OnDemand, file: FileToSend) -> None:
        self._session = session
        self._ledger = ledger
        self._on_demand = on_demand
        self._file = file

    async def diagnostics(self, deadline: float) -> tuple[Diagnostic, ...] | None:
        """What the server says of the file; None where it must be opened for that. Raises the session's failure."""
        try:
            project = await self._project(deadline)
            if project is None:
                return None
            for _ in range(TRIES):
                changes = self._ledger.changes
                found = await self._ask(project, deadline)
                if self._ledger.changes == changes:
                    return found
        except ServerFailed:
            if self._session.failure is not None:
                raise
        return None

    async def _project(self, deadline: float) -> str | None:
        """The project file nearest to ours, if a file that is open and near it too is of that project."""
        session, nearest = self._session, self._nearest(self._file.path)
        near = (path for path in reversed(session.documents.paths) if self._nearest(path) == nearest)
        opened = next(near, None) if nearest is not None else None
        if opened is None:
            return None
        known = self._ledger.projects
        if opened not in known:
            left = deadline - current_time()
            known[opened] = await project_of(session, self._on_demand, opened, timeout=left)
        return nearest if known[opened] == nearest else None

    async def _ask(self, project: str, deadline: float) -> tuple[Diagnostic, ...] | None:
        left = deadline - current_time()
        answer = await ask_on_demand(self._session, self._on_demand, self._file.path, timeout=left, project=project)
        items = Raw(b"[]") if answer.items is UNSET else answer.items
        try:
            decoded = decode_items(items, WireDiagnostic)
        except Malformed:
            return None
        report = Report(decoded.items, None, 0)
        encoding, server = self._session.encoding, self._session.server
        return diagnostics_of(report, text=Text(self._file.text), encoding=encoding, server=server)

    def _nearest(self, path: AbsPath) -> str | None:
        """The project file nearest to a file, not above the root."""
        for folder in ancestors(os.path.dirname(path), self._session.root):
            for name in self._on_demand.project_files:
                if os.path.isfile(os.path.join(folder, name)):
                    return os.path.join(folder, name)
        return None
