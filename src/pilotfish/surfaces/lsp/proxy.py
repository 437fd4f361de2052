"""The program that a host starts: it copies bytes to and from the daemon, and ends when either side does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pilotfish.errors import Unavailable
from pilotfish.ipc.client import Introduction
from pilotfish.surfaces.daemon_stream import open_upgraded, relay, serve_in_process
from pilotfish.system.standard_streams import until_signalled

if TYPE_CHECKING:
    from pilotfish.system.ports import ByteStream


async def by_daemon(cwd: str, host: str | None, client: ByteStream) -> None:
    """Have the daemon serve, which is started when none runs."""
    try:
        async with open_upgraded(Introduction(cwd=cwd, host=host), "lsp") as daemon:
            await until_signalled(partial(relay, client, daemon, daemon.end_sending))
    except Unavailable:
        # Nothing has been read from the client yet: only connecting fails so.
        await in_process(cwd, host, client)


async def in_process(cwd: str, host: str | None, client: ByteStream) -> None:
    from pilotfish.surfaces.lsp.face import serve

    await serve_in_process(partial(serve, client), "lsp", cwd, host)
