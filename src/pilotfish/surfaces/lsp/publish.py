"""What a client is told unasked: diagnostics of the files that it touches, and of those that this breaks.

After each touch the diagnostics of the file are published, all of them, and of every other file those that the client
has brought about since it came: an empty list once they are gone. What is found late is published when it is found.
A file without a verdict is not published: an empty list would say that it is clean.
"""

import logging
import os
from collections.abc import Iterable, Mapping

from pilotfish.api.answers import Diagnostic, State, diagnostic_of, of_severities
from pilotfish.api.questions import Moment, Touch
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.model import Diagnostic as ModelDiagnostic
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WireDiagnostic
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import Notify
from pilotfish.surfaces.lsp.answers import read_places
from pilotfish.surfaces.lsp.shapes import UNSAVED, OpenDocuments, diagnostics
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)

WARNING = 2
"""`MessageType.Warning`."""


class Publisher:
    """One client. `run` does the work, in the order of the touches; those that come meanwhile are taken together."""

    def __init__(self, service: Service, client: ClientSession, documents: OpenDocuments, notify: Notify) -> None:
        self._service = service
        self._client = client
        self._documents = documents
        self._notify = notify
        self._waiting: dict[AbsPath, None] = {}
        self._is_late = False
        self._is_busy = False
        self._wake = Pulse()
        self._done = Pulse()
        self._touched: set[AbsPath] = set()
        """Every file that the client has touched: of these it hears everything."""
        self._left: Mapping[AbsPath, tuple[ModelDiagnostic, ...]] = {}
        self._published: dict[AbsPath, list[WireDiagnostic]] = {}

    def touch(self, *paths: AbsPath) -> None:
        self._waiting |= dict.fromkeys(paths)
        self._wake.notify()

    async def published(self) -> None:
        """Wait until every touch so far is published, as far as it can be."""
        while self._waiting or self._is_busy:
            await self._done.wait()

    async def publish(self) -> None:
        self._service.conversations.on_late(self._client, self._on_late)
        while True:
            if self._waiting:
                paths, self._waiting = tuple(self._waiting), {}
                self._is_busy = True
                await self._take(paths)
                self._is_busy = False
                self._done.notify()
            elif self._is_late:
                self._is_late = False
                await self._service.reached(Moment("call", counts=False), self._client)
                await self._publish(())
            else:
                await self._wake.wait()

    def _on_late(self) -> None:
        self._is_late = True
        self._wake.notify()

    async def _take(self, paths: Iterable[AbsPath]) -> None:
        saved = [path for path in paths if await self._is_saved(path)]
        if not saved:
            return
        self._touched.update(AbsPath(real_path(path)) for path in saved)
        await self._service.touched(Touch(tuple(saved), "edit"), self._client)
        await self._publish(saved)

    async def _is_saved(self, path: AbsPath) -> bool:
        """Whether the client's text is the one on disk; where it is not, the client may be told so."""
        try:
            on_disk = (await self._service.text_of(self._client, path)).string
        except Refused:
            on_disk = None
        if self._documents.compare(path, on_disk):
            return True
        if self._documents.is_to_be_told(path):
            message = UNSAVED.format(name=os.path.basename(path))
            self._notify("window/showMessage", {"type": WARNING, "message": message})
            if self._published.get(path):
                # What was published is about another text. Where nothing was, an empty list would be a verdict.
                self._send(path, [])
        return False

    async def _publish(self, touched: Iterable[AbsPath]) -> None:
        left, before = self._service.conversations.left(self._client), self._left
        self._left = left
        changed = {path for path in {*left, *before} if left.get(path, ()) != before.get(path, ())}
        asked = dict.fromkeys(touched)
        # The touched files come last: a client that waits for these has the others by then.
        for path in [*sorted(changed - {AbsPath(real_path(path)) for path in asked}), *asked]:
            is_whole = path in asked or path in self._touched
            found = await self._all_of(path) if is_whole else self._wanted(left.get(path, ()))
            if found is not None:
                places = await read_places(self._service, self._client, [path])
                listed = diagnostics(path, found, places)
                if path in asked or listed != self._published.get(path, []):
                    self._send(path, listed)

    async def _all_of(self, path: AbsPath) -> tuple[Diagnostic, ...] | None:
        """All diagnostics of a file; None without a verdict."""
        answer = await self._service.check(self._client, (path,))
        if any(error.code is Code.FILE_MISSING for error in answer.errors):
            return ()
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        found = [one for listed in (of_severities(answer, severities).data or {}).values() for one in listed]
        if not found and answer.meta.state is not State.FRESH:
            logger.info("nothing published path=%s reason=%s", path, answer.meta.reason)
            return None
        return tuple(found)

    def _wanted(self, found: Iterable[ModelDiagnostic]) -> tuple[Diagnostic, ...]:
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        return tuple(diagnostic_of(one) for one in found if one.severity in severities)

    def _send(self, path: AbsPath, listed: list[WireDiagnostic]) -> None:
        self._published[path] = listed
        self._notify("textDocument/publishDiagnostics", {"uri": uri_of(path), "diagnostics": listed})
