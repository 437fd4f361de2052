"""What the tools cost: every request of a model carries the whole list, so its bytes are paid for again and again.

Asks a real server for `tools/list` over its own wire, in each mode, by the oldest and newest version of the protocol
that begins with a handshake and by the newest of all, and counts the bytes of the result as they came. Exits with 1
when a list is too large.

    python bench/tools_bytes.py
"""

import json
import math
import os
import sys
import tempfile

import anyio

from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.operations.schemas import ToolSet
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp.connection import serve
from pilotfish.surfaces.mcp.options import McpOptions

LIMITS = {ToolSet.NAMED: 8 * 1024, ToolSet.ONE: 3 * 1024}
HANDSHAKES = ("2024-11-05", "2025-11-25")
NEWEST = "2026-07-28"

ABOUT_US = {"name": "bench", "version": "0"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientInfo": ABOUT_US,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """Says what it was given, and keeps what it is answered."""

    def __init__(self, *messages: object) -> None:
        self._waiting = [json.dumps(message).encode() + b"\n" for message in messages]
        self._answered, self._answers = anyio.create_memory_object_stream[bytes](math.inf)

    async def receive(self) -> bytes:
        if self._waiting:
            return self._waiting.pop(0)
        await anyio.sleep_forever()
        return b""

    async def send(self, data: bytes) -> None:
        await self._answered.send(data)

    async def answer(self) -> bytes:
        return await self._answers.receive()


async def listed(service: Service, root: AbsPath, tools: ToolSet, version: str) -> bytes:
    """The result of `tools/list`, byte for byte."""
    wire, session = Wire(*messages(version)), ClientSession("bench", root, root)

    def sessions(_: AbsPath | None) -> ClientSession:
        return session

    answer = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, wire, service, sessions, McpOptions(tools))
        while b'"tools":[' not in answer:
            answer = await wire.answer()
        tasks.cancel_scope.cancel()
    return answer.partition(b'"result":')[2].removesuffix(b"}\n")


def messages(version: str) -> list[object]:
    if version == NEWEST:
        return [{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}}]
    start = {"protocolVersion": version, "capabilities": {}, "clientInfo": ABOUT_US}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]


async def main() -> int:
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        home = os.path.realpath(folder)
        root = AbsPath(os.path.join(home, "project"))
        os.mkdir(root)
        async with Service(computer({"HOME": home, "PATH": os.environ["PATH"]})).running() as service:
            for tools, limit in LIMITS.items():
                for version in (*HANDSHAKES, NEWEST):
                    result = await listed(service, root, tools, version)
                    count = len(json.loads(result)["tools"])
                    is_right = count > 0 and len(result) <= limit
                    failed |= not is_right
                    verdict = "ok" if is_right else "TOO LARGE" if count else "NOTHING LISTED"
                    print(f"{tools:6} {version}  {count:2} tools  {len(result):5} bytes  of {limit}  {verdict}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(anyio.run(main))
