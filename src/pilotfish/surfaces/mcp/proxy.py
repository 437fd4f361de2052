"""`pilotfish mcp`: MCP over standard input and output.

The program copies bytes to and from the daemon, which has the SDK and the language servers, and imports neither. It
ends when either side does. Without a daemon, it serves in its own process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec import to_builtins

from pilotfish.errors import Unavailable
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.model import AbsPath
from pilotfish.surfaces.mcp.options import McpOptions, require_sdk
from pilotfish.system.clock import current_time
from pilotfish.system.pipes import End
from pilotfish.system.ports import BrokenPipe, Stalled
from pilotfish.system.standard_streams import take_standard_streams, until_signalled
from pilotfish.system.tasks import owned_tasks

if TYPE_CHECKING:
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.system.ports import ByteStream

DRAIN_SECONDS = 2.0
"""After the host has closed its end, for answers that are on their way."""


def run(carry: Callable[[ByteStream], Awaitable[None]]) -> None:
    """Serve the host that started this process with `carry`, until it closes its end."""
    require_sdk()
    with take_standard_streams() as host:
        anyio.run(carry, host)


async def by_daemon(options: McpOptions, host: ByteStream) -> None:
    """Have the daemon serve, which is started when none runs; the workspace is around the current folder."""
    try:
        async with open_upgraded(Introduction(cwd=os.getcwd()), "mcp", to_builtins(options)) as daemon:
            await until_signalled(partial(relay, host, daemon, daemon.end_sending))
    except Unavailable:
        # Nothing has been read from the host yet: only connecting fails so.
        await in_process(options, host)


async def in_process(options: McpOptions, host: ByteStream) -> None:
    """Serve with a service of our own, whose servers end with it."""
    from pilotfish.library.workspace import computer
    from pilotfish.service.service import Service
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.surfaces.mcp.connection import serve
    from pilotfish.system.worktree import top_of

    here = AbsPath(os.getcwd())

    def session(root: AbsPath | None) -> ClientSession:
        return ClientSession(f"mcp {root}", root or AbsPath(top_of(here)), root or here)

    async with Service(computer(os.environ)).running() as service:
        await until_signalled(partial(serve, host, service, session, options))


@asynccontextmanager
async def open_upgraded(
    introduction: Introduction, method: str, params: object = None, terms: Terms | None = None
) -> AsyncGenerator[DaemonStream]:
    """Connect to the daemon and upgrade the connection, which ends with the block. Raises `Failure`."""

    def connect() -> socket.socket:
        return open_link(introduction, terms).upgraded(method, params)

    stream = DaemonStream(await anyio.to_thread.run_sync(connect))
    try:
        yield stream
    finally:
        stream.close()


class DaemonStream(End):
    """Our end of an upgraded connection to the daemon."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._connection = connection

    async def end_sending(self) -> None:
        """Nothing more will be sent; what is still to come is waited for."""
        with suppress(OSError):  # the daemon has closed the connection already
            self._connection.shutdown(socket.SHUT_WR)


async def relay(here: ByteStream, there: ByteStream, end_there: Callable[[], Awaitable[None]]) -> None:
    """Carry bytes both ways until either side ends; `end_there` tells the far side that nothing more will come."""
    async with owned_tasks() as tasks:

        async def back() -> None:
            await _pump(there, here)
            tasks.cancel_scope.cancel()

        tasks.start_soon(back)
        await _pump(here, there)
        await end_there()
        tasks.cancel_scope.deadline = current_time() + DRAIN_SECONDS


async def _pump(source: ByteStream, sink: ByteStream) -> None:
    try:
        while data := await source.receive():
            await sink.send(data)
    except (BrokenPipe, Stalled):
        # The reader is gone: the same as the end of the stream.
        return
