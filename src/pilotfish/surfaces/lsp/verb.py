"""`pilotfish lsp`: run by hosts, not by people. It copies bytes to and from the daemon, and ends when either does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pilotfish.system.ports import ByteStream


@click.command()
@click.option("--host", help="The coding agent that runs it, as `pilotfish setup` calls it.")
@click.option("--in-process", is_flag=True, help="Do not use the daemon: the servers end with this program.")
@click.option("--stdio", is_flag=True, help="The default; many clients name it.")
def lsp(host: str | None, *, in_process: bool, stdio: bool) -> None:  # noqa: ARG001 -- there is no other way
    """Serve coding agents that have an LSP client.

    The language server protocol over standard input and output. Answers are about the files on disk; a client with
    unsaved text is refused. The workspace is the client's root, else the worktree around the current folder.
    """
    from pilotfish.ipc.client import start_ahead

    if not in_process:
        start_ahead()
    import anyio

    from pilotfish.system.pipes import take_standard_streams

    with take_standard_streams() as client:
        anyio.run(_in_process if in_process else _by_daemon, host, client)


async def _by_daemon(host: str | None, client: ByteStream) -> None:
    """Have the daemon serve, which is started when none runs."""
    from functools import partial

    from pilotfish.errors import Unavailable
    from pilotfish.ipc.client import Introduction
    from pilotfish.surfaces.daemon_stream import open_upgraded, relay
    from pilotfish.system.pipes import until_signalled

    try:
        async with open_upgraded(Introduction(cwd=os.getcwd(), host=host), "lsp") as daemon:
            await until_signalled(partial(relay, client, daemon, daemon.end_sending))
    except Unavailable:
        # Nothing has been read from the client yet: only connecting fails so.
        await _in_process(host, client)


async def _in_process(host: str | None, client: ByteStream) -> None:
    from functools import partial

    from pilotfish.surfaces.daemon_stream import serve_in_process
    from pilotfish.surfaces.lsp.face import serve

    await serve_in_process(partial(serve, client), "lsp", os.getcwd(), host)
