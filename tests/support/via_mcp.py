"""MCP as the marker tests see it: the SDK's own client, and the envelope read back from structured content."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from mcp import Client

from pilotfish import api
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.operations.answers import read_answer
from pilotfish.operations.rows import ROWS
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp_connection import Options
from pilotfish.surfaces.mcp_server import serve
from support.mcp_client import transport
from support.real_servers import User
from support.wires import MemoryWire


class ViaMcp:
    """A named tool for every question, over a wire in memory."""

    def __init__(self, client: Client, workspace: Path) -> None:
        self._client = client
        self._workspace = workspace

    @classmethod
    @asynccontextmanager
    async def opened(cls, user: User, file: str) -> AsyncGenerator["ViaMcp"]:
        root, wire = AbsPath(str(user.workspace)), MemoryWire()

        def session(_: AbsPath | None) -> ClientSession:
            return ClientSession("markers", root, root)

        try:
            async with Service(computer(user.environment)).running() as service, anyio.create_task_group() as tasks:
                tasks.start_soon(serve, wire, service, session, Options())
                async with Client(transport(wire.peer)) as client:
                    yield cls(client, user.workspace)
                wire.peer.hang_up()
        finally:
            wire.close()

    def takes(self, question: api.Question) -> bool:
        """A diff is shown clean, and has no carriage returns: where the goldens have some, they cannot be met."""
        if not ROWS[question.operation].writes or question.file_path is None:
            return True
        return b"\r" not in (self._workspace / question.file_path).read_bytes()

    async def ask(self, question: api.Question, accepts: Callable[[Any], bool]) -> api.Answer[Any]:
        fields = {name: value for name, value in msgspec.to_builtins(question).items() if name != "operation"}
        result = await self._client.call_tool(ROWS[question.operation].tool, fields)
        return read_answer(msgspec.json.encode(result.structured_content))
