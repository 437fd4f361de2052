"""The HTTP surface put together. Only `serve` imports this module, when a client asks to serve.

uvicorn listens, on a socket of ours on loopback, without its signals and its log. Only this machine can connect, and no
option changes that (T20). A connection that asks nothing is hung up on, as is one whose head is too long (F85). uvicorn
itself waits for a head for ever.

The SDK of MCP is imported when the first client of `/mcp` connects. A client's workspace is the roots that it names;
else that of the conversation in its URL (`/mcp?conversation=ID`); else the folder of `pilotfish serve`.
"""

import logging
import os
import socket
from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from pilotfish.errors import Code, Refused
from pilotfish.ipc.client_sessions import ClientSessions, DaemonContext, Upgraded
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks
from pilotfish_http.admission import AccessKeys, HttpAddress, own_names
from pilotfish_http.conversations import HttpConversations
from pilotfish_http.guard import AsgiReceive, AsgiScope, AsgiSend, Guard
from pilotfish_http.metrics import metrics_text
from pilotfish_http.overview import Observatory
from pilotfish_http.routes import Routes, application

if TYPE_CHECKING:
    import asyncio

    from pilotfish_http.mcp_sessions import Home, McpOverHttp


class McpEndpoint:
    """An ASGI application; `tasks` owns what it starts."""

    def __init__(
        self, service: Service, sessions: ClientSessions, home: "Home", names: tuple[str, ...], tasks: TaskGroup
    ) -> None:
        self._service = service
        self._sessions = sessions
        self._home = home
        self._names = names
        self._tasks = tasks
        self._starting = anyio.Lock()
        self._served: McpOverHttp | None = None

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        async with self._starting:
            served = self._served
            if served is None:
                sdk = await anyio.to_thread.run_sync(import_module, "pilotfish_http.mcp_sessions")
                served = self._served = await self._tasks.start(self._run, sdk)
        await served.handle(scope, receive, send)

    async def _run(self, sdk: ModuleType, *, task_status: TaskStatus["McpOverHttp"]) -> None:
        served: McpOverHttp = sdk.McpOverHttp(self._service, self._sessions, self._home, self._names)
        async with served.running():
            task_status.started(served)
            await anyio.sleep_forever()


HOST = "127.0.0.1"

QUIET_SECONDS = 20.0
"""From connecting, or from the last answer, to the end of the next request's head."""

MAX_HEAD = 16 * 1024
"""Bytes of a request line and its headers."""

MAX_CONNECTIONS = 64
"""Pages, MCP clients and scripts of one person; what comes on top is answered 503."""

MAX_STRANGERS = 32
"""Connections that have shown no key yet. For one more the oldest of them is closed: whoever has a key shows it at
once, and must always find room (T55)."""

END_SECONDS = 1.0
"""For answers to be ended properly; then their connections are cut."""


PeerAddress = tuple[str, int] | None
"""The address at the other end of a connection."""


def bound(port: int) -> socket.socket:
    """A socket on loopback; 0 takes any port. Raises `Refused` when somebody else has it."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        hint = "Choose another one, or leave --port out."
        raise Refused(Code.INVALID_INPUT, f"port {port} cannot be used: {error.strerror}", hint=hint) from None
    listener.setblocking(False)  # noqa: FBT003 -- its only signature
    return listener


@asynccontextmanager
async def listening(listener: socket.socket, guard: Guard) -> AsyncGenerator[None]:
    """Answer requests for as long as the block lasts; the socket is closed at its end."""
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    connections = _OpenConnections(guard)
    server = Server(_config(connections))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    async with owned_tasks() as tasks:
        tasks.start_soon(connections.hang_up, server)
        try:
            yield
        finally:
            for each in server.servers:
                each.close()
            listener.close()
            with anyio.move_on_after(END_SECONDS, shield=True):
                await guard.end()
            for connection in tuple(server.server_state.connections):
                connection.transport.abort()
            tasks.cancel_scope.cancel()


def _config(connections: "_OpenConnections") -> Config:
    class Counted(H11Protocol):
        """uvicorn's, but `connections` hears of each that begins and ends."""

        def connection_made(self, transport: "asyncio.Transport") -> None:
            super().connection_made(transport)
            connections.begun(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            connections.ended(self.transport)

    return Config(
        connections,
        http=Counted,
        ws="none",
        lifespan="off",
        loop="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MAX_CONNECTIONS + MAX_STRANGERS,
        timeout_keep_alive=round(QUIET_SECONDS),
        h11_max_incomplete_event_size=MAX_HEAD,
    )


class _OpenConnections:
    """An ASGI application around the guard that knows which connections have no request under way, and since when, and
    which have shown no key."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._asking: set[PeerAddress] = set()
        self._quiet_since: dict[PeerAddress, float] = {}
        self._strangers: dict[PeerAddress, asyncio.Transport] = {}
        """Oldest first."""

    def begun(self, transport: "asyncio.Transport") -> None:
        self._strangers[_peer(transport)] = transport
        if len(self._strangers) > MAX_STRANGERS:
            _, oldest = next(iter(self._strangers.items()))
            self.ended(oldest)
            oldest.abort()

    def ended(self, transport: "asyncio.Transport") -> None:
        self._strangers.pop(_peer(transport), None)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        peer: PeerAddress = scope.get("client")
        if self._guard.is_from_owner(scope):
            self._strangers.pop(peer, None)
        self._asking.add(peer)
        try:
            await self._guard(scope, receive, send)
        finally:
            self._asking.discard(peer)
            self._quiet_since[peer] = current_time()

    def overdue(self, peers: AbstractSet[PeerAddress], now: float) -> AbstractSet[PeerAddress]:
        """Which of these, the connections that are open now, have asked nothing for too long."""
        quiet = peers - self._asking
        self._quiet_since = {peer: self._quiet_since.get(peer, now) for peer in quiet}
        return {peer for peer, since in self._quiet_since.items() if now - since >= QUIET_SECONDS}

    async def hang_up(self, server: Server) -> None:
        """Hang up on connections that are overdue, for ever."""
        while True:
            await anyio.sleep(QUIET_SECONDS / 10)  # noqa: TID251 -- a look from time to time is the point
            transports = [connection.transport for connection in server.server_state.connections]
            by_peer: dict[PeerAddress, asyncio.Transport] = {_peer(transport): transport for transport in transports}
            for peer in self.overdue(by_peer.keys(), current_time()):
                by_peer[peer].abort()


def _peer(transport: "asyncio.Transport") -> PeerAddress:
    return transport.get_extra_info("peername")


@asynccontextmanager
async def serving(upgraded: Upgraded, context: DaemonContext, port: int) -> AsyncGenerator[HttpAddress]:
    """Listen for as long as the block lasts. Raises `Refused` for a port that cannot be used, `Unavailable`."""
    service, sessions, here = upgraded.service, upgraded.sessions, upgraded.session(None).cwd
    listener = bound(port)
    names = own_names(listener.getsockname()[1])
    keys = AccessKeys(os.path.join(context.folder, "http-token"))
    conversations = HttpConversations(service, sessions, context.store)

    def home(conversation: str | None) -> AbsPath:
        """The workspace of MCP clients without roots."""
        return here if conversation is None else conversations.client(conversation).cwd

    def metrics() -> str:
        seconds, entries = context.about().seconds, service.pool.entries()
        return metrics_text(service.pool.counters, seconds, len(sessions.all()), entries)

    try:
        keys.publish()
        async with owned_tasks() as tasks:
            mcp = McpEndpoint(service, sessions, home, names, tasks)
            observatory = Observatory(service, sessions, context.store, context.about, context.clock)
            guard = Guard(application(Routes(conversations, observatory, keys, metrics), mcp), keys, names)
            async with listening(listener, guard):
                address = f"http://{names[0]}"
                page = f"{address}/#{keys.issue_ticket(current_time())}"
                yield HttpAddress(address, keys.path, page)
            tasks.cancel_scope.cancel()
    finally:
        listener.close()
        keys.withdraw()
