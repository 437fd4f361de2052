"""Listening on loopback: uvicorn on a socket of ours, without its signals and its log.

Only this machine can connect, and no option changes that (T20). A connection that asks nothing is hung up on, as is one
whose head is too long (F85). uvicorn itself waits for a head for ever.
"""

import logging
import socket
from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from uvicorn import Config, Server

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.http.guard import AsgiApplication, AsgiReceive, AsgiScope, AsgiSend, Guard
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

if TYPE_CHECKING:
    import asyncio

HOST = "127.0.0.1"

QUIET_SECONDS = 20.0
"""From connecting, or from the last answer, to the end of the next request's head."""

MAX_HEAD = 16 * 1024
"""Bytes of a request line and its headers."""

MAX_CONNECTIONS = 64
"""Pages, MCP clients and scripts of one person; what comes on top is answered 503."""

END_SECONDS = 1.0
"""For answers to be ended properly; then their connections are cut."""


PeerAddress = tuple[str, int] | None
"""The address at the other end of a connection."""


def bound(port: int) -> socket.socket:
    """A socket on loopback; 0 takes any port. Raises `Refused` when somebody else has it."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
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
    connections = _QuietConnections(guard)
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


def _config(application: AsgiApplication) -> Config:
    return Config(
        application,
        http="h11",
        ws="none",
        lifespan="off",
        loop="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=round(QUIET_SECONDS),
        h11_max_incomplete_event_size=MAX_HEAD,
    )


class _QuietConnections:
    """An ASGI application around another one that knows which connections have no request under way, and since when."""

    def __init__(self, application: AsgiApplication) -> None:
        self._application = application
        self._asking: set[PeerAddress] = set()
        self._quiet_since: dict[PeerAddress, float] = {}

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        peer: PeerAddress = scope.get("client")
        self._asking.add(peer)
        try:
            await self._application(scope, receive, send)
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
            by_peer: dict[PeerAddress, asyncio.Transport] = {
                transport.get_extra_info("peername"): transport for transport in transports
            }
            for peer in self.overdue(by_peer.keys(), current_time()):
                by_peer[peer].abort()
