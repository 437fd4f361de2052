"""`pilotfish service`: the service as LLxprt starts its own (SVC-1), inside one process, without the daemon.

JSON-RPC on standard input and output, MCP on descriptors 3 and 4, one service and one set of servers behind both. It
ends with its host: at the end of standard input, after `lsp/shutdown`, or by a signal. When it cannot run, it writes
the reason to standard error, on one line.
"""

import logging
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from logging.handlers import RotatingFileHandler
from typing import cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.places import CONFIG_DIALECTS
from pilotfish.config.problems import Problem
from pilotfish.config.schema import USER_ONLY
from pilotfish.config.sheets import Names, translation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.operations.tools import McpOptions
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import Json
from pilotfish.sanitise import sanitised
from pilotfish.servers.catalogue import canonical_id
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import HostChannel
from pilotfish.surfaces.mcp.connection import load, serve
from pilotfish.system.ownership import make_private_folders
from pilotfish.system.pipes import HOST_STALL_SECONDS, End, SourcedStream, take_standard_streams, until_signalled
from pilotfish.system.ports import BrokenPipe, ByteStream
from pilotfish.system.tasks import first_of, owned_tasks
from pilotfish_llxprt.methods import LlxprtMethods

logger = logging.getLogger(__name__)

MCP_DESCRIPTORS = (3, 4)

PREPARE_SECONDS = 6.0
"""Of the ten that the host gives us to be ready."""

MAX_REASON = 500
"""Characters of the reason."""

MAX_LOG, MAX_RECORD = 1024 * 1024, 8000
"""Bytes of the log, beside one of the same size from before; code points of one record."""


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Serve the host that started this process; returns the exit code."""
    try:
        bootstrap = bootstrap_of(environment.get(VARIABLE), canonical_id)
        shell = replace(computer(environment), handed_over=bootstrap.config)
        if level := logging.getLevelNamesMapping().get(environment.get("PILOTFISH_LOG", "").upper()):
            write_log(os.path.join(shell.places.state, "logs"), level)
        # The host does not read our standard error: output could fill the pipe and block us.
        with take_standard_streams(prints=None) as stream:
            navigation = crossed_stream(*MCP_DESCRIPTORS)
            try:
                anyio.run(serve_host, bootstrap.root, shell, stream, navigation)
            finally:
                if navigation is not None:
                    navigation.close()
    except Failure as failure:
        sys.stderr.write(f"LSP unavailable: {sanitised(failure.message, MAX_REASON)}\n")
        return failure.exit_code
    return 0


def write_log(folder: str, level: int) -> None:
    """Write what our modules log to a file there: the host does not read our standard error."""
    make_private_folders(folder)
    handler = RotatingFileHandler(os.path.join(folder, "service.log"), maxBytes=MAX_LOG, backupCount=1, delay=True)
    handler.setFormatter(_OneLine("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for package in ("pilotfish", "pilotfish_llxprt"):
        logging.getLogger(package).addHandler(handler)
        logging.getLogger(package).setLevel(level)


class _OneLine(logging.Formatter):
    """Some records repeat the words of a server, which must not write lines of their own (T32)."""

    def format(self, record: logging.LogRecord) -> str:
        return sanitised(super().format(record), MAX_RECORD)


async def serve_host(root: AbsPath, shell: System, stream: ByteStream, navigation: ByteStream | None = None) -> None:
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
            config = service.workspaces.of(client).config
            if config.enabled and config.navigation_tools:
                # MCP is answered at once: the host waits for us to be ready, and then a quarter of a second for tools.
                with anyio.move_on_after(PREPARE_SECONDS), suppress(Failure):
                    await load()
                    await service.offered(client)
            tasks.start_soon(_navigate, navigation, service, replace(client, id=f"{client.id} mcp"), options)
        channel.notify("lsp/ready")
        await channel.serve(LlxprtMethods(service, client, channel.notify).table)
        tasks.cancel_scope.cancel()


async def _navigate(stream: ByteStream, service: Service, client: ClientSession, options: McpOptions | None) -> None:
    """MCP beside the host's own protocol: whatever roots the client names, the workspace is the bootstrap's."""
    try:
        # The SDK is imported only once a client has spoken.
        first = [await stream.receive()]
        if first[0]:

            async def receive() -> bytes:
                return first.pop() if first else await stream.receive()

            await serve(SourcedStream(stream, receive), service, lambda _root: client, options)
    except Exception:
        # Feedback on edits must go on, whatever fails here.
        logger.exception("MCP on descriptors %s has ended", MCP_DESCRIPTORS)


HOST = "llxprt"
VARIABLE = "LSP_BOOTSTRAP"


class Bootstrap(Struct, frozen=True):
    """The host's settings. `config` is in our own format; `notes` say what of it is not used."""

    root: AbsPath
    config: dict[str, Json]
    notes: tuple[Problem, ...]


def bootstrap_of(text: str | None, canonical_id: Names) -> Bootstrap:
    """Read the variable; raises `Refused` with one line that names the error."""
    if not text:
        raise _refused("is not set; it must be {workspaceRoot, config}")
    try:
        value = decode(text.encode("utf-8", "surrogateescape"), dict[str, object])
    except Malformed:
        raise _refused("is not a JSON object") from None
    root = value.get("workspaceRoot")
    if not isinstance(root, str) or not root.startswith("/"):
        raise _refused("has no workspaceRoot that is an absolute path")
    config = cast("Json", value.get("config"))
    if not isinstance(config, dict) and config not in (None, True, False):
        raise _refused("has a config that is not an object")
    dialect = next(dialect for dialect in CONFIG_DIALECTS if dialect.host == HOST)
    translated = translation(dialect, {"lsp": config}, VARIABLE, canonical_id)
    settings = {} if translated is None else {k: v for k, v in translated.value.items() if k not in USER_ONLY}
    return Bootstrap(AbsPath(root), settings, () if translated is None else translated.notes)


def _refused(what: str) -> Refused:
    return Refused(Code.INVALID_CONFIG, f"{VARIABLE} {what}")


def crossed_stream(*descriptors: int) -> "CrossedStream | None":
    """A byte stream over those that are open pipes or sockets; None without two of them."""
    ours = [descriptor for descriptor in descriptors if _is_stream(descriptor)]
    return CrossedStream(*ours) if len(ours) == len(descriptors) else None


class CrossedStream:
    """One reader and one writer at a time; nothing can be sent before something was received."""

    def __init__(self, first: int, second: int) -> None:
        self._files = [os.fdopen(descriptor, "rb", buffering=0) for descriptor in (first, second)]
        self._ends = [End(file, HOST_STALL_SECONDS) for file in self._files]
        ways = [_way(file.fileno()) for file in self._files]
        self._sources = [end for end, way in zip(self._ends, ways, strict=True) if way != os.O_WRONLY]
        self._sink: End | None = None
        for file in self._files:
            os.set_inheritable(file.fileno(), False)  # noqa: FBT003 - its only signature

    async def receive(self) -> bytes:
        while self._sources:
            heard: list[tuple[End, bytes]] = []
            await first_of(*(partial(_listen, end, heard) for end in self._sources))
            # One that has data, or else has closed.
            source, data = max(heard, key=lambda message: len(message[1]))
            if data:
                self._sources = [source]
                self._sink = self._sink or next(end for end in self._ends if end is not source)
                return data
            self._sources.remove(source)
        return b""

    async def send(self, data: bytes) -> None:
        if self._sink is None:
            raise BrokenPipe("nothing was received yet")
        await self._sink.send(data)

    def close(self) -> None:
        """Close both; only when no task reads or writes."""
        for file in self._files:
            file.close()


async def _listen(end: End, heard: list[tuple[End, bytes]]) -> None:
    heard.append((end, await end.receive()))


def _is_stream(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _way(descriptor: int) -> int:
    if sys.platform == "win32":
        return os.O_RDWR
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE


if __name__ == "__main__":
    sys.exit(main())
