"""MCP as the marker tests see it: the SDK's own client, and the envelope read back from structured content."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from mcp import Client

from pilotfish.api.questions import Question
from pilotfish.operations.rows import ROWS
from pilotfish.operations.tools import McpOptions
from pilotfish.surfaces.mcp.server import serve
from support.clients.mcp import transport
from support.clients.wires import MemoryWire
from support.values.answers import read_answer
from support.via.surfaces import Accepts, Answer, Ground, Surface, fields_of


class ViaMcp:
    """A named tool for every question, over a wire in memory."""

    gives_ends = True

    def __init__(self, client: Client, workspace: Path) -> None:
        self._client = client
        self._workspace = workspace

    @classmethod
    @asynccontextmanager
    async def opened(cls, ground: Ground) -> AsyncGenerator[Surface]:
        wire, session = MemoryWire(), ground.client("mcp")

        async def served() -> None:
            await serve(wire, ground.service, lambda _root: session, McpOptions(structured=True))

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(served)
                async with Client(transport(wire.peer)) as client:
                    yield cls(client, ground.user.workspace)
                wire.peer.hang_up()
        finally:
            wire.close()

    def takes(self, question: Question) -> bool:
        return is_shown_whole(question, self._workspace)

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        return await called(self._client, question)


async def called(client: Client, question: Question) -> Answer:
    """The answer of the tool that is for the question."""
    result = await client.call_tool(ROWS[question.operation].tool, fields_of(question))
    return read_answer(msgspec.json.encode(result.structured_content))


def is_shown_whole(question: Question, workspace: Path) -> bool:
    """A diff is shown clean, and has no carriage returns: where the goldens have some, they cannot be met."""
    if not ROWS[question.operation].writes or question.file_path is None:
        return True
    return b"\r" not in (workspace / question.file_path).read_bytes()
