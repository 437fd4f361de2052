"""MCP over streamable HTTP: the SDK's transport around the tools of `mcp.server`, behind the guard.

A client with an MCP session is one connection, as over standard input; without one, each request is a connection.
Only `pilotfish_http.application` imports this module, when the first client connects.
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
from pilotfish.operations.tools import McpOptions
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp.server import Context, McpClient, sdk_server
from pilotfish_http.admission import MAX_BODY
from pilotfish_http.guard import AsgiMessage, AsgiReceive, AsgiScope, AsgiSend

MAX_SESSIONS = 64
"""Clients with an MCP session; one person has a handful."""

HOST = "mcp"
"""The host name of these client sessions."""

Home = Callable[[str | None], AbsPath]
"""The folder of a client without roots: its conversation's, or that of `pilotfish serve`. May raise `Refused`."""


class _Client(Struct):
    connection: McpClient
    sessions: set[str] = field(default_factory=set[str])


class McpOverHttp:
    """`running()` must be under way while requests come."""

    def __init__(self, service: Service, sessions: ClientSessions, home: Home, names: tuple[str, ...]) -> None:
        self._service = service
        self._sessions = sessions
        self._home = home
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        # The guard has checked this; the SDK checks it once more only when configured to.
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
        """Answer requests for as long as the block lasts; at its end, all clients are ended."""
        # sse-starlette polls this flag in a task of its own until it is set.
        AppStatus.should_exit = False
        try:
            async with self._manager.run():
                yield
        finally:
            AppStatus.should_exit = True
            for named in tuple(self._clients):
                self._end(named)

    async def handle(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
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
        """The client of a call: the SDK has checked its MCP session."""
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
