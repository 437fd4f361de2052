"""`pilotfish mcp`: MCP over standard input and output.

The program copies messages to and from the daemon, which has the SDK and the language servers, and imports neither. It
ends when the host does. Without a daemon, it serves in its own process.

The connection of a host outlives the daemon behind it. Many hosts start an MCP server once in a session: when it ends,
its tools are gone until the next one. So the program that the host started stays when the daemon stops or crashes, and
connects to a new one for what is owed, or with the next message. Nothing is started before that: a daemon that was
stopped on purpose stays stopped.

MCP over standard streams has one JSON message on a line, of which the method and the id are read here. A new daemon is
introduced to the host with the host's own `initialize`; what the old one still owed it is asked again, once. What may
write, and may have been done already, is answered with an error.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import anyio
import msgspec
from msgspec import Struct, to_builtins

from pilotfish.errors import Unavailable
from pilotfish.ipc.client import Introduction
from pilotfish.operations.tools import McpOptions
from pilotfish.protocol.frames import LineDecoder
from pilotfish.surfaces.daemon_stream import DRAIN_SECONDS, DaemonStream, open_upgraded, serve_in_process
from pilotfish.surfaces.mcp.connection import require_sdk, serve
from pilotfish.system.clock import current_time
from pilotfish.system.pipes import take_standard_streams, until_signalled
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled
from pilotfish.system.tasks import owned_tasks

Id = int | str

INTERNAL_ERROR = -32603
"""JSON-RPC's code for a fault of the server."""

MAX_SAID = 4 * 1024 * 1024
"""Bytes of a message that is kept until its end: the daemon refuses a longer one."""

MAX_HEARD = 64 * 1024 * 1024
"""The same of an answer, which comes from ourselves."""

LOST = "The daemon of Pilotfish ended before it answered. Ask again: the next call starts a new one."


class MessageHead(Struct, frozen=True):
    id: Id | None = None
    method: str | None = None


class _Params(Struct, frozen=True):
    arguments: dict[str, object] = {}


class _Call(Struct, frozen=True):
    params: _Params = _Params()


class HostRecord:
    """What a host has said as far as a new daemon, or the host itself, must hear of it."""

    def __init__(self) -> None:
        self._opening: list[bytes] = []
        """`initialize`, and the notification that follows its answer."""
        self._owed: dict[Id, bytes | None] = {}
        """Requests without an answer: what is asked again when a daemon is lost; None: not once more."""
        self._lines = LineDecoder(MAX_SAID)

    def said(self, data: bytes) -> None:
        for line in filter(None, self._lines.feed(data)):
            message = _head(line)
            if message.method == "initialize":
                self._opening = [line]
            elif message.method == "notifications/initialized":
                self._opening = [*self._opening[:1], line]
            if message.method is not None and message.id is not None:
                self._owed[message.id] = None if message.method == "initialize" or _may_write(line) else line

    def heard(self, line: bytes) -> None:
        message = _head(line)
        if message.method is None and message.id is not None:
            self._owed.pop(message.id, None)

    def lost_answers(self) -> bytes:
        """Errors for what is not asked again: the host then waits for it no more."""
        error = {"code": INTERNAL_ERROR, "message": LOST}
        lost = [id_ for id_, line in self._owed.items() if line is None]
        self._owed = {id_: line for id_, line in self._owed.items() if line is not None}
        return b"".join(msgspec.json.encode({"jsonrpc": "2.0", "id": id_, "error": error}) + b"\n" for id_ in lost)

    @property
    def is_owed(self) -> bool:
        return bool(self._owed)

    async def introduce(self, daemon: WholeLines) -> None:
        """Say to a new daemon what the host said first, which the old one has answered, and what it did not answer."""
        if self._opening:
            await daemon.stream.send(self._opening[0] + b"\n")
            wanted = _head(self._opening[0]).id
            while (line := await daemon.next()) and _head(line).id != wanted:
                pass
            await daemon.stream.send(b"".join(line + b"\n" for line in self._opening[1:]))
        again = [line + b"\n" for line in self._owed.values() if line is not None]
        self._owed = dict.fromkeys(self._owed)
        await daemon.stream.send(b"".join([*again, self._lines.unfinished]))


class WholeLines:
    def __init__(self, stream: DaemonStream) -> None:
        self.stream = stream
        self._decoder = LineDecoder(MAX_HEARD)
        self._lines = deque[bytes]()

    async def next(self) -> bytes:
        """The next line without its end; empty at the end of the stream, where what is no whole line is dropped.

        A line that is too long ends it, too: what it answers is asked once more, and then answered with an error.
        """
        while not self._lines:
            data = await self.stream.receive()
            self._lines.extend(line or b"" for line in (self._decoder.feed(data) if data else [None]))
        return self._lines.popleft()


class LastingConnection:
    def __init__(self, host: ByteStream, connect: Callable[[], AbstractAsyncContextManager[DaemonStream]]) -> None:
        """`connect` opens a connection to the daemon, and starts one if none runs. Raises a `Failure`."""
        self._host = host
        self._connect = connect
        self._record = HostRecord()
        self.began = False
        """Whether a daemon was connected: from then on the host may have been heard."""

    async def serve(self) -> None:
        first = b""
        while True:
            async with self._connect() as stream:
                daemon = WholeLines(stream)
                if self.began:
                    await self._record.introduce(daemon)
                self.began = True
                if await self._carry(first, daemon):
                    return
            try:
                await self._host.send(self._record.lost_answers())
                first = b"" if self._record.is_owed else await self._host.receive()
            except (BrokenPipe, Stalled):
                return
            if not first and not self._record.is_owed:
                return

    async def _carry(self, first: bytes, daemon: WholeLines) -> bool:
        """Carry messages both ways until either side ends; whether it was the host."""
        ended = False
        async with owned_tasks() as tasks:

            async def back() -> None:
                nonlocal ended
                ended = await self._to_host(daemon)
                tasks.cancel_scope.cancel()

            tasks.start_soon(back)
            if await self._from_host(first, daemon.stream):
                ended = True
                await daemon.stream.end_sending()
                tasks.cancel_scope.deadline = current_time() + DRAIN_SECONDS
        return ended

    async def _from_host(self, first: bytes, daemon: ByteStream) -> bool:
        """Whether the host has ended; False when the daemon has."""
        data = first or await self._host.receive()
        while data:
            self._record.said(data)
            try:
                await daemon.send(data)
            except (BrokenPipe, Stalled):
                return False
            data = await self._host.receive()
        return True

    async def _to_host(self, daemon: WholeLines) -> bool:
        """Whether the host has ended; False when the daemon has."""
        while line := await daemon.next():
            self._record.heard(line)
            try:
                await self._host.send(line + b"\n")
            except (BrokenPipe, Stalled):
                return True
        return False


def _head(line: bytes) -> MessageHead:
    try:
        return msgspec.json.decode(line, type=MessageHead)
    except (msgspec.DecodeError, UnicodeError):
        return MessageHead()


def _may_write(line: bytes) -> bool:
    """Whether a request may change files: those of our tools do so with `apply`."""
    try:
        return "apply" in msgspec.json.decode(line, type=_Call).params.arguments
    except (msgspec.DecodeError, UnicodeError):
        return True


def run(carry: Callable[[ByteStream], Awaitable[None]]) -> None:
    """Serve the host that started this process with `carry`, until it closes its end."""
    require_sdk()
    with take_standard_streams() as host:
        anyio.run(carry, host)


async def by_daemon(options: McpOptions, host: ByteStream) -> None:
    """Have the daemon serve, which is started when none runs; the workspace is around the current folder."""
    connection = LastingConnection(
        host, partial(open_upgraded, Introduction(cwd=os.getcwd()), "mcp", to_builtins(options))
    )
    try:
        await until_signalled(connection.serve)
    except Unavailable:
        if connection.began:
            raise
        await in_process(options, host)


async def in_process(options: McpOptions, host: ByteStream) -> None:
    await serve_in_process(lambda service, session: serve(host, service, session, options), "mcp", os.getcwd())
