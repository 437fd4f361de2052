"""Texts that a server is to think about and that are not on disk.

While they are there, nobody else talks to that server; however the block ends, by success, failure or cancellation, the
server is put back to what is on disk. Proposed texts are never said to be saved.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from pilotfish.client.session import Session
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.ledger import FileAtHand, Ledger
from pilotfish.service.texts import Texts

PUT_BACK_SECONDS = 2.0
"""Reading a few files from a slow disk. What is not read by then is closed instead: the server reads it itself."""


class Proposal:
    """The proposed texts of one server."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session = session
        self._standing = ledger
        self._languages: dict[AbsPath, str] = {}
        """Of every file whose text is not that of the disk."""

    def put(self, path: AbsPath, language_id: str, text: str) -> None:
        self._languages[path] = language_id
        self._send(path, language_id, text)

    async def put_back(self, texts: Texts) -> None:
        try:
            for path in tuple(self._languages):
                await self._restore(path, texts)
        finally:
            for path in self._languages:
                self._close(path)

    async def _restore(self, path: AbsPath, texts: Texts) -> None:
        try:
            file = await texts.current(path)
        except Refused:
            # It was never on disk, or is not any more.
            self._close(path)
        else:
            self._send(path, self._languages[path], file.text)
        self._languages.pop(path)

    def _send(self, path: AbsPath, language_id: str, text: str) -> None:
        if self._session.failure is None:
            self._standing.send(self._session, FileAtHand(path, language_id, text, saved=False))

    def _close(self, path: AbsPath) -> None:
        if self._session.failure is None:
            self._standing.close(self._session, path)


@asynccontextmanager
async def proposal(session: Session, ledger: Ledger, texts: Texts) -> AsyncGenerator[Proposal]:
    """The server to ourselves, for texts of our own making."""
    async with ledger.alone():
        made = Proposal(session, ledger)
        try:
            yield made
        finally:
            with anyio.move_on_after(PUT_BACK_SECONDS, shield=True):
                await made.put_back(texts)
