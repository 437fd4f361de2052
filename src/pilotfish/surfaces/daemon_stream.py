"""Bytes to and from the daemon, for programs that a host starts and that only copy them; or a service without one."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.model import AbsPath
from pilotfish.system.clock import current_time
from pilotfish.system.pipes import End, until_signalled
from pilotfish.system.ports import BrokenPipe, Stalled
from pilotfish.system.tasks import owned_tasks

if TYPE_CHECKING:
    from pilotfish.ipc.client_sessions import OpenSession
    from pilotfish.service.service import Service
    from pilotfish.system.ports import ByteStream

DRAIN_SECONDS = 2.0
"""After the host has closed its end, for answers that are on their way."""


async def serve_in_process(
    serve: Callable[[Service, OpenSession], Awaitable[None]], name: str, cwd: str, host: str | None = None
) -> None:
    """Serve with a service of our own, whose servers end with it."""
    from pilotfish.library.workspace import computer
    from pilotfish.service.service import Service
    from pilotfish.service.workspaces import ClientSession
    from pilotfish.system.ownership import top_of

    def session(root: AbsPath | None) -> ClientSession:
        return ClientSession(f"{name} {root}", root or AbsPath(top_of(cwd)), root or AbsPath(cwd), host)

    async with Service(computer(os.environ)).running() as service:
        await until_signalled(partial(serve, service, session))


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
    with suppress(BrokenPipe, Stalled):  # the reader is gone: the same as the end of the stream
        while data := await source.receive():
            await sink.send(data)
