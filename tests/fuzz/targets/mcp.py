"""The bytes of an MCP client: any chunking gives the same lines, and every line is answered or passed on."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import anyio

from fuzz.pieces import Pieces
from pilotfish.protocol.frames import LineDecoder
from pilotfish.surfaces.mcp import streams as mcp_lines
from pilotfish.surfaces.mcp.streams import message_streams
from support.clients.wires import MemoryWire

WORDS = (
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'"id":"\\q"',
    b'"params":{"_meta":{}}',
    b"[",
    b"]",
    b"\n",
    b"\\ud800",
    b'"id":1.5',
)
SEEDS = (
    b'\x09{"jsonrpc":"2.0","id":"a","method":"tools/list"}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
    b'\xff[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":null}]\n[]\nnull\n\n{"jsonrpc":"2.0","id":true,"method":"x"}\n',
    b'\x40{"jsonrpc":"2.0","id":7,"method":"' + b"x" * 700 + b'"}\n',
)
SMALL_LINE = 600
"""The limit of a line while fuzzing."""

SHARE = 10
"""One of so many inputs is enough for the gate: each has an event loop of its own."""


def run(data: bytes) -> None:
    pieces = Pieces(data)
    step = pieces.number() + 1
    stream = pieces.rest()
    with _small_lines():
        whole = LineDecoder(SMALL_LINE).feed(stream)
        decoder = LineDecoder(SMALL_LINE)
        parts = [line for at in range(0, len(stream), step) for line in decoder.feed(stream[at : at + step])]
        assert whole == parts, (whole, parts)
        asyncio.run(_served(stream))


async def _served(stream: bytes) -> None:
    """Read all of it; what we say ourselves is JSON, a line for each."""
    wire = MemoryWire()
    wire.peer.say(stream)
    wire.peer.hang_up()
    with anyio.fail_after(5):
        async with message_streams(wire) as (incoming, _):
            async for _message in incoming:
                pass
    wire.peer.reading.set()
    wire.close()


@contextmanager
def _small_lines() -> Generator[None]:
    before = mcp_lines.MAX_LINE
    mcp_lines.MAX_LINE = SMALL_LINE
    try:
        yield
    finally:
        mcp_lines.MAX_LINE = before
