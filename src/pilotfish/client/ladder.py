"""The stop ladder: how a server is ended, rung by rung, each with its bound."""

import contextlib

import anyio

from pilotfish.client.connection import Connection
from pilotfish.errors import Failure
from pilotfish.protocol.lifecycle import Phase
from pilotfish.system.ports import Process

SHUTDOWN_SECONDS = 1.5
EXIT_SECONDS = 0.5
TERMINATE_SECONDS = 2.0
"""The rungs of the stop ladder: `shutdown`, then `exit` and end of input, then SIGTERM, then SIGKILL."""

STOP_SECONDS = SHUTDOWN_SECONDS + EXIT_SECONDS + TERMINATE_SECONDS + 1.0
"""Bound of the whole ladder, which is shielded from cancellation: 5 s for any behaviour of the server."""


async def walk_down(connection: Connection, process: Process) -> None:
    """`shutdown`, then `exit` and end of input, then SIGTERM, then SIGKILL, until nothing of it is left."""
    if connection.phase is Phase.RUNNING:
        # A server that fails to shut down politely is ended all the same.
        with contextlib.suppress(Failure):
            await connection.call("shutdown", timeout=SHUTDOWN_SECONDS)
    if connection.failure is None and await _left_after_exit(connection, process):
        return
    if connection.failure is None:
        await process.terminate()
        with anyio.move_on_after(TERMINATE_SECONDS):
            await process.wait()
            return
    await process.kill()
    await process.wait()


async def _left_after_exit(connection: Connection, process: Process) -> bool:
    connection.notify("exit")
    with anyio.move_on_after(EXIT_SECONDS):
        await connection.flush()
        # Several servers stay until their input ends, whatever `exit` says.
        await process.close_input()
        await process.wait()
        return True
    return False
