"""A conversation with the service, on a server whose answers come when the test lets them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from pilotfish.api.answers import Feedback
from pilotfish.api.questions import Moment
from pilotfish.api.status import ConversationRow
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.ports import Clock, Memory
from support.servers.script import SILENCE, Script
from support.services.checks import full, server_with
from support.services.several import Ground, custom, service_on

WAIT = {"firstTouchTimeoutMs": 1000, "diagnosticsWaitTimeoutMs": 1000}
FEEDBACK: dict[str, Any] = {"onlyNew": True, "otherFilesAfter": []}


@dataclass
class SlowServer:
    """An error for each bad line, and answers that come when the test lets them."""

    slow: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def __call__(self, script: Script) -> None:
        server_with(diagnosticProvider={})(script)
        texts: dict[str, str] = {}

        def take(params: Any) -> None:
            changes = params.get("contentChanges")
            texts[params["textDocument"]["uri"]] = (changes[-1] if changes else params["textDocument"])["text"]

        def found(params: Any) -> Any:
            lines = texts[params["textDocument"]["uri"]].splitlines()
            return full(*(line for line in lines if line.startswith("bad")))

        def diagnose(params: Any) -> Any:
            if not self.slow:
                return found(params)
            identifier = script.received[-1].id
            assert identifier is not None
            self.waiting.append(lambda: script.reply(identifier, found(params)))
            return SILENCE

        script.on("textDocument/didOpen", take)
        script.on("textDocument/didChange", take)
        script.on("textDocument/diagnostic", diagnose)

    async def answer(self) -> None:
        """Answer everything, and be prompt from now on."""
        self.slow = False
        await anyio.wait_all_tasks_blocked()
        for reply in self.waiting:
            reply()
        self.waiting.clear()
        await anyio.wait_all_tasks_blocked()


@dataclass
class Talk:
    ground: Ground
    server: SlowServer

    def write(self, text: str, name: str = "a.x") -> str:
        return self.ground.write(name, text)

    async def edit(self, text: str, name: str = "a.x", before: str | None = None) -> str:
        self.write(text, name)
        old = {} if before is None else {"before": {name: before}}
        return (await self.ground.touched(name, **old)).text

    async def read(self, text: str, name: str = "a.x") -> None:
        """What was there before the conversation, and its agent reads it."""
        self.write(text, name)
        await self.ground.touched(name, kind="read")

    async def reach(self, kind: Any, **more: Any) -> str:
        return (await self.feedback(kind, **more)).text

    async def feedback(self, kind: Any, **more: Any) -> Feedback:
        return await self.ground.service.reached(Moment(kind, **more), self.ground.client)

    def command(self, text: str | None, name: str = "a.x", change: Change = Change.CHANGED) -> None:
        """A command writes or deletes a file, and the watcher sees it."""
        path = self.ground.root / name
        path.unlink() if text is None else path.write_text(text)
        self.ground.service.conversations.noticed([PathChange(AbsPath(str(path)), change)])

    @property
    def row(self) -> ConversationRow:
        (row,) = self.ground.service.status(self.ground.client).conversations
        return row


@asynccontextmanager
async def talking(
    folder: Path,
    timing: Mapping[str, int] = WAIT,
    clock: Clock | None = None,
    memory: Memory | None = None,
    **feedback: Any,
) -> AsyncGenerator[Talk]:
    server = SlowServer()
    config: dict[str, Any] = {"lsp": {"one": custom()}, "timing": {**timing}, "feedback": FEEDBACK | feedback}
    async with service_on(folder, {"one": server}, config, clock=clock, memory=memory) as ground:
        ground.client = replace(ground.client, conversation="7")
        yield Talk(ground, server)
