"""MCP over streamable HTTP: the SDK's own transport around the tools of `mcp_server`, for what the guard let in.

A client with a session of the protocol is one connection, as over standard input; of one that sends every request by
itself, each is a connection. Only `http_mcp` imports this module, when the first client is there.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from msgspec import Struct, field
from sse_starlette.sse import AppStatus
from starlette.requests import Request

from pilotfish.ipc.client_sessions import KEPT_SECONDS, Caller, ClientSessions
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.http.admission import MAX_BODY
from pilotfish.surfaces.http.guard import AsgiMessage, AsgiReceive, AsgiScope, AsgiSend
from pilotfish.surfaces.mcp.options import McpOptions
from pilotfish.surfaces.mcp.server import Context, McpClient, sdk_server

MAX_SESSIONS = 64
"""Clients with a session of the protocol; one person has a handful."""

HOST = "mcp"
"""The host's name of a client session that came this way."""

Home = Callable[[str | None], AbsPath]
"""The folder of a client that names no roots: that of a conversation, or of `pilotfish serve`. May raise `Refused`."""


class _Client(Struct):
    """One connection, and the client sessions that it has made."""

    connection: McpClient
    sessions: set[str] = field(default_factory=set[str])


class McpOverHttp:
    """`running()` must be under way while requests come."""

    def __init__(self, service: Service, sessions: ClientSessions, home: Home, names: tuple[str, ...]) -> None:
        self._service = service
        self._sessions = sessions
        self._home = home
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        # The guard has checked all this; the SDK checks nothing unless it is told to.
        settings = TransportSecuritySettings(
            allowed_hosts=list(names), allowed_origins=[f"http://{name}" for name in names]
        )
        self._manager = StreamableHTTPSessionManager(
            sdk_server(self._connection),
            security_settings=settings,
            session_idle_timeout=KEPT_SECONDS,
            max_request_body_size=MAX_BODY,
            max_sessions=MAX_SESSIONS,
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While this lasts, requests are answered; at its end, all clients have left."""
        # What the SDK streams with keeps a task of its own in the loop, twice a second, until it is told of an end.
        AppStatus.should_exit = False
        try:
            async with self._manager.run():
                yield
        finally:
            AppStatus.should_exit = True
            for named in tuple(self._clients):
                self._end(named)

    async def handle(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """One request."""
        named = Request(scope).headers.get(MCP_SESSION_ID_HEADER)
        client = self._clients.get(named or "")
        if client is not None:
            self._sessions.used(*client.sessions)
        statuses: list[int] = []

        async def noted(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        await self._manager.handle_request(scope, receive, noted)
        if scope["method"] == "DELETE" and statuses == [200] and named is not None:
            self._end(named)

    def _connection(self, context: Context) -> McpClient:
        """Whose call it is: the SDK has made sure that there is such a session."""
        request: Request | None = context.request
        named = None if request is None else request.headers.get(MCP_SESSION_ID_HEADER)
        conversation = None if request is None else request.query_params.get("conversation")
        if named is None:
            return self._made(conversation, conversation or "").connection
        if named not in self._clients:
            while len(self._clients) >= MAX_SESSIONS:
                self._end(next(iter(self._clients)))
            self._clients[named] = self._made(conversation, named)
        self._clients.move_to_end(named)
        return self._clients[named].connection

    def _made(self, conversation: str | None, name: str) -> _Client:
        def session(root: AbsPath | None) -> ClientSession:
            made = self._sessions.keep(Caller(root or self._home(conversation), HOST, name, root))
            client.sessions.add(made.id)
            return made

        client = _Client(McpClient(self._service, session, McpOptions()))
        return client

    def _end(self, named: str) -> None:
        client = self._clients.pop(named, None)
        if client is not None:
            client.connection.end()
            for session in client.sessions:
                self._sessions.end(session)
