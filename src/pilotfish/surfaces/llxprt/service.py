"""`pilotfish service`: the service as LLxprt starts its own (SVC-1), inside one process, without the daemon.

JSON-RPC on standard input and output, MCP on descriptors 3 and 4, one service and one set of servers behind both. It
ends with its host: at the end of standard input, after `lsp/shutdown`, or by a signal. When it cannot run, it writes
the reason to standard error, on one line.
"""

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import anyio
from msgspec.structs import replace

from pilotfish.errors import Failure
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.sanitise import sanitised
from pilotfish.servers.catalogue import canonical_id
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import HostChannel
from pilotfish.surfaces.llxprt.bootstrap import HOST, VARIABLE, bootstrap_of
from pilotfish.surfaces.llxprt.descriptors import crossed_stream
from pilotfish.surfaces.llxprt.methods import LlxprtMethods
from pilotfish.surfaces.mcp.connection import load, serve
from pilotfish.surfaces.mcp.options import McpOptions
from pilotfish.system.ports import ByteStream
from pilotfish.system.standard_streams import take_standard_streams, until_signalled
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

MCP_DESCRIPTORS = (3, 4)

PREPARE_SECONDS = 6.0
"""Of the ten that the host gives us to be ready."""

MAX_REASON = 500
"""Characters of the reason."""


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Serve the host that started this process; returns the exit code."""
    try:
        bootstrap = bootstrap_of(environment.get(VARIABLE), canonical_id)
        shell = replace(computer(environment), handed_over=bootstrap.config)
        # The host does not read our standard error: output could fill the pipe and block us.
        with take_standard_streams(prints=None) as stream:
            navigation = crossed_stream(*MCP_DESCRIPTORS)
            try:
                anyio.run(run, bootstrap.root, shell, stream, navigation)
            finally:
                if navigation is not None:
                    navigation.close()
    except Failure as failure:
        sys.stderr.write(f"LSP unavailable: {sanitised(failure.message, MAX_REASON)}\n")
        return failure.exit_code
    return 0


async def run(root: AbsPath, shell: System, stream: ByteStream, navigation: ByteStream | None = None) -> None:
    """Serve until the host is gone. Raises `Refused` when the workspace is no folder."""
    client = ClientSession(f"service {os.getpid()}", root, root, HOST)
    async with Service(shell).running() as service:
        service.workspaces.of(client)
        await until_signalled(partial(converse, service, client, stream, navigation))


async def converse(
    service: Service,
    client: ClientSession,
    stream: ByteStream,
    navigation: ByteStream | None = None,
    options: McpOptions | None = None,
) -> None:
    """Serve both channels with one service, until the host disconnects."""
    channel = HostChannel(stream, last_method="lsp/shutdown")
    async with owned_tasks() as tasks:
        if navigation is not None:
            await _prepare(service, client)
            tasks.start_soon(_navigate, navigation, service, replace(client, id=f"{client.id} mcp"), options)
        await channel.notify("lsp/ready")
        await channel.run(LlxprtMethods(service, client, channel.notify).table)
        tasks.cancel_scope.cancel()


async def _prepare(service: Service, client: ClientSession) -> None:
    """Be able to answer MCP at once: the host waits for us to be ready, and then a quarter of a second for tools."""
    config = service.workspaces.of(client).config
    if not (config.enabled and config.navigation_tools):
        return
    with anyio.move_on_after(PREPARE_SECONDS), suppress(Failure):
        await load()
        await service.offered(client)


async def _navigate(stream: ByteStream, service: Service, client: ClientSession, options: McpOptions | None) -> None:
    """MCP beside the host's own protocol: whatever roots the client names, the workspace is the bootstrap's."""
    try:
        if first := await stream.receive():
            await serve(_Replayed(first, stream), service, lambda _root: client, options)
    except Exception:
        # Feedback on edits must go on, whatever fails here.
        logger.exception("MCP on descriptors %s has ended", MCP_DESCRIPTORS)


class _Replayed:
    """A stream of which something was read already. The SDK is imported only once a client has spoken."""

    def __init__(self, first: bytes, stream: ByteStream) -> None:
        self._first = first
        self._stream = stream

    async def receive(self) -> bytes:
        data, self._first = self._first, b""
        return data or await self._stream.receive()

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    def close(self) -> None:
        self._stream.close()


if __name__ == "__main__":
    sys.exit(main())
