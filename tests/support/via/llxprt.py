"""The LLxprt service as the marker tests see it: its own JSON-RPC for diagnostics, MCP beside it for navigation."""

import html
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import anyio
from mcp import Client

from pilotfish.api.answers import Diagnostic, Effort, State, answer_from
from pilotfish.api.questions import Operation, Question
from pilotfish.operations.tools import McpOptions
from pilotfish_llxprt.service import HOST, converse
from support.clients.mcp import transport
from support.clients.raw_llxprt import ServiceHost
from support.clients.wires import MemoryWire
from support.via.mcp import called
from support.via.surfaces import Accepts, Answer, Ground, Surface

NAVIGATION = frozenset({
    Operation.DEFINITION,
    Operation.REFERENCES,
    Operation.HOVER,
    Operation.DOCUMENT_SYMBOL,
    Operation.WORKSPACE_SYMBOL,
})  # fmt: skip
"""What LLxprt's own tools ask for."""


class ViaService:
    gives_ends = False

    def __init__(self, host: ServiceHost, navigation: Client) -> None:
        self._host = host
        self._navigation = navigation

    @classmethod
    @asynccontextmanager
    async def opened(cls, ground: Ground) -> AsyncGenerator[Surface]:
        wire, beside = MemoryWire(), MemoryWire()
        try:
            async with anyio.create_task_group() as tasks:
                client, options = ground.client("service", HOST), McpOptions(structured=True)
                tasks.start_soon(converse, ground.service, client, wire, beside, options)
                host = ServiceHost(wire.peer)
                assert (await host.hear())["method"] == "lsp/ready"
                async with Client(transport(beside.peer)) as navigation:
                    yield cls(host, navigation)
                beside.peer.hang_up()
                wire.peer.hang_up()
        finally:
            wire.close()
            beside.close()

    def takes(self, question: Question) -> bool:
        return question.operation in {Operation.DIAGNOSTICS, *NAVIGATION}

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        if question.operation is not Operation.DIAGNOSTICS:
            return await called(self._navigation, question)
        path = question.file_path or ""
        self._host.notifications.clear()
        found = await self._host.ask("lsp/checkFile", {"filePath": path})
        data = {path: tuple(_diagnostic(one) for one in found if one["file"] == path)}
        verdicts = [said["params"] for said in self._host.notifications if said["method"] == "lsp/verdict"]
        if not verdicts:
            return answer_from(Operation.DIAGNOSTICS, data, Effort(server_hits=1))
        is_partial = verdicts[-1]["state"] == State.PARTIAL
        effort = Effort(server_hits=int(is_partial), caveats=(str(verdicts[-1]["reason"]),))
        return answer_from(Operation.DIAGNOSTICS, data if is_partial else None, effort)


def _diagnostic(found: dict[str, Any]) -> Diagnostic:
    severity = "information" if found["severity"] == "info" else found["severity"]
    return Diagnostic(
        line=found["line"],
        character=found["character"],
        end_line=found["line"],
        end_character=found["character"],
        severity=cast("Literal['error']", severity),
        message=html.unescape(found["message"]),
        server="",
    )
