"""The workspaces of a client: the folders that it names as its roots, or the one that it was started in.

A connection is bound to these (T24): each is one client session, and a call goes to the one whose folder holds its
file. A client that has no roots, or does not answer, works in the folder that it was started in.
"""

import logging
import os
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsRequest, ListRootsResult
from pydantic import ValidationError

from pilotfish.ipc.client_sessions import OpenSession
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.uris import path_of
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)

MAX_ROOTS = 16
"""Folders of one client; more than a person opens at once."""

ROOTS_SECONDS = 3.0
"""For the client to name its roots. One that announces roots and does not answer costs this once."""


class ClientRoots:
    """The client sessions of one connection."""

    def __init__(self, service: Service, open_session: OpenSession) -> None:
        self._service = service
        self._open = open_session
        self._sessions: dict[AbsPath | None, ClientSession] = {}
        self._known = False
        self._asking = anyio.Lock()

    async def of(self, context: ServerRequestContext[Any], path: str | None = None) -> ClientSession:
        """The client session that a call about `path` belongs to."""
        if not self._known:
            async with self._asking:
                if not self._known:
                    await self._load(context.session)
        return self._nearest(path)

    def forget_roots(self) -> None:
        """The client's roots have changed: ask for them again on the next call."""
        self._known = False

    def end(self) -> None:
        """The connection is over."""
        for session in self._sessions.values():
            self._service.end(session)
        self._sessions.clear()

    async def _load(self, session: ServerSession) -> None:
        roots: list[AbsPath | None] = [*await _roots(session)] or [None]
        before, self._sessions = self._sessions, {root: self._sessions.get(root) or self._open(root) for root in roots}
        for gone in before.keys() - self._sessions.keys():
            self._service.end(before[gone])
        self._known = True

    def _nearest(self, path: str | None) -> ClientSession:
        """The session of the deepest root that holds the file; the first one if none does."""
        sessions = list(self._sessions.values())
        named = (path or "").removeprefix("@")
        if not named or len(sessions) == 1:
            return sessions[0]
        if os.path.isabs(named):
            real = real_path(named)
            holding = [session for session in sessions if is_inside(real, real_path(session.root))]
            return max(holding, key=lambda session: len(session.root), default=sessions[0])
        here = (session for session in sessions if os.path.lexists(os.path.join(session.cwd, named)))
        return next(here, sessions[0])


async def _roots(session: ServerSession) -> list[AbsPath]:
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None or not session.can_send_request:
        return []
    try:
        named = await session.send_request(ListRootsRequest(), ListRootsResult, ROOTS_SECONDS)
    except (MCPError, ValidationError) as error:
        logger.warning("the client did not name its roots: %s", error)
        return []
    return _folders([str(root.uri) for root in named.roots[:MAX_ROOTS]])


def _folders(uris: list[str]) -> list[AbsPath]:
    """The existing folders among those named."""
    paths = [path_of(uri) for uri in uris]
    return list(dict.fromkeys(path for path in paths if path is not None and os.path.isdir(path)))
