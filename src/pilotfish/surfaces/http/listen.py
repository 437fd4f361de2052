"""Listening on loopback: uvicorn's protocol on a socket of ours, without its signals, its log and its clock.

Nobody but this machine can connect, and there is no option that changes it (T20). A connection that does not say what
it wants is hung up on, as is one whose head is too long (F85).
"""

import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.http.guard import Guard

if TYPE_CHECKING:
    import asyncio

HOST = "127.0.0.1"

HEAD_SECONDS = 10.0
"""From connecting, or from the first byte of a request, to the end of its head."""

KEEP_ALIVE_SECONDS = 30
"""How long a connection may be silent between two requests."""

MAX_HEAD = 16 * 1024
"""Bytes of a request line and its headers."""

MAX_CONNECTIONS = 64
"""Pages, MCP clients and scripts of one person; what comes on top is answered 503."""

END_SECONDS = 1.0
"""For answers to be ended properly; then their connections are cut."""


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
    server = Server(_config(guard))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
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


def _config(guard: Guard) -> Config:
    return Config(
        guard,
        http=_Patient,
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
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD,
    )


class _Patient(H11Protocol):
    """uvicorn's, with a bound on the time that a request's head may take."""

    _head: "asyncio.TimerHandle | None" = None

    def connection_made(self, transport: "asyncio.Transport") -> None:
        super().connection_made(transport)
        self._mind_the_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind_the_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:
            # The next request has begun already; nothing may come that would tell us so.
            self._mind_the_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_the_head()
        super().connection_lost(exc)

    def _mind_the_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_the_head()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_the_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None
