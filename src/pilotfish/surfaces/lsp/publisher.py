"""Diagnostics that a client is told unasked: those of the files that it touches, and of those that this breaks.

After each touch the diagnostics of the file are published, all of them, and of every other file those that the client
has brought about since it came: an empty list once they are gone. What is found late is published when it is found. A
file without a verdict is not published: an empty list would say that it is clean.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from pilotfish.api.answers import Diagnostic, State, diagnostic_of, of_severities
from pilotfish.api.questions import Moment, Touch
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath, Severity
from pilotfish.model import Diagnostic as ModelDiagnostic
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WireDiagnostic
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import Notify
from pilotfish.surfaces.lsp.shapes import UNSAVED, FilePlaces, OpenDocuments, diagnostics
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)

WARNING = 2
"""`MessageType.Warning`."""


async def read_places(service: Service, client: ClientSession, paths: Iterable[str]) -> FilePlaces:
    """By path as given; relative ones count from the root of the workspace, and what may not be read is left out."""
    texts = dict[str, Text]()
    for path in dict.fromkeys(paths):
        with suppress(Refused):
            texts[path] = await service.text_of(client, os.path.join(client.root, path))
    return FilePlaces(client.root, texts)


class Publisher:
    """One client. `publish` does the work, in the order of the touches; those that come meanwhile are one."""

    def __init__(self, service: Service, client: ClientSession, documents: OpenDocuments, notify: Notify) -> None:
        self._service = service
        self.client = client
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
        self._service.conversations.on_late(self.client, self._on_late)
        while True:
            if self._waiting:
                paths, self._waiting = tuple(self._waiting), {}
                self._is_busy = True
                if saved := [path for path in paths if await self._is_saved(path)]:
                    self._touched.update(AbsPath(real_path(path)) for path in saved)
                    await self._service.touched(Touch(tuple(saved), "edit"), self.client)
                    await self._publish(saved)
                self._is_busy = False
                self._done.notify()
            elif self._is_late:
                self._is_late = False
                await self._service.reached(Moment("call", counts=False), self.client)
                await self._publish(())
            else:
                await self._wake.wait()

    def _on_late(self) -> None:
        self._is_late = True
        self._wake.notify()

    async def _is_saved(self, path: AbsPath) -> bool:
        """Whether the client's text is the one on disk; where it is not, the client may be told so."""
        try:
            on_disk = (await self._service.text_of(self.client, path)).string
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
        left, before = self._service.conversations.left(self.client), self._left
        self._left = left
        changed = {path for path in {*left, *before} if left.get(path, ()) != before.get(path, ())}
        asked = dict.fromkeys(touched)
        # The touched files come last: a client that waits for these has the others by then.
        for path in [*sorted(changed - {AbsPath(real_path(path)) for path in asked}), *asked]:
            if path in asked or path in self._touched:
                found = await self._all_of(path)
            else:
                severities = self._severities  # one look at the configuration for all of them
                found = [diagnostic_of(one) for one in left.get(path, ()) if one.severity in severities]
            if found is not None:
                listed = diagnostics(path, found, await read_places(self._service, self.client, [path]))
                if path in asked or listed != self._published.get(path, []):
                    self._send(path, listed)

    async def _all_of(self, path: AbsPath) -> list[Diagnostic] | None:
        """All diagnostics of a file; None without a verdict."""
        answer = await self._service.check(self.client, (path,))
        if any(error.code is Code.FILE_MISSING for error in answer.errors):
            return []
        found = [one for listed in (of_severities(answer, self._severities).data or {}).values() for one in listed]
        if not found and answer.meta.state is not State.FRESH:
            logger.info("nothing published path=%s reason=%s", path, answer.meta.reason)
            return None
        return found

    @property
    def _severities(self) -> frozenset[Severity]:
        return self._service.workspaces.of(self.client).config.feedback.severities

    def _send(self, path: AbsPath, listed: list[WireDiagnostic]) -> None:
        self._published[path] = listed
        self._notify("textDocument/publishDiagnostics", {"uri": uri_of(path), "diagnostics": listed})
