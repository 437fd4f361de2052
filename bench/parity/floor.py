"""The floor: a language server, and the least client that can ask it. It says nothing about freshness."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from parity.fixtures import Fixture, Place
from parity.lines import Child, started
from parity.subjects import environment


class Bare:
    """The language server and the least client that can ask it. It says nothing about freshness: it is the floor."""

    def __init__(self, child: Child, fixture: Fixture) -> None:
        self._child = child
        self._fixture = fixture
        self._versions: dict[str, int] = {}
        self._sent: dict[str, str] = {}

    async def start(self) -> None:
        self._child.replies["workspace/configuration"] = _nothing_configured
        folder = {"uri": self._fixture.root.as_uri(), "name": "workspace"}
        capabilities: dict[str, Any] = {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {"diagnostic": {}},
        }
        await self._child.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": capabilities,
            },
        )
        self._child.notify("initialized", {})

    async def definition(self, place: Place) -> object:
        return await self._at("textDocument/definition", place)

    async def references(self, place: Place, _limit: int | None = None) -> object:
        """All of them, whatever the limit: a server knows none."""
        return await self._at("textDocument/references", place, context={"includeDeclaration": True})

    async def hover(self, place: Place) -> object:
        return await self._at("textDocument/hover", place)

    async def symbols(self, file: str, _limit: int | None = None) -> object:
        self._sync(file)
        return await self._child.request("textDocument/documentSymbol", {"textDocument": self._document(file)})

    async def shown(self, file: str) -> object:
        """By the command or request that answers at once: basedpyright's pull, tsserver's synchronous requests."""
        self._sync(file)
        if self._fixture.language == "typescript":
            return await self._tsserver(file)
        return await self._child.request("textDocument/diagnostic", {"textDocument": self._document(file)})

    async def told(self, file: str) -> object:
        return await self.shown(file)

    async def overwritten(self, file: str, others: Sequence[str]) -> object:
        return await self.patched([file, *others])

    async def patched(self, files: Sequence[str]) -> object:
        for file in files:
            self._sync(file)
        return await asyncio.gather(*map(self.shown, files))

    async def written(self, file: str) -> None:
        self._sync(file)

    async def _tsserver(self, file: str) -> object:
        found: list[Any] = []
        for name in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
            arguments = [name, {"file": str(self._fixture.root / file)}]
            command = {"command": "typescript.tsserverRequest", "arguments": arguments}
            found.append((await self._child.request("workspace/executeCommand", command)).get("body"))
        return found

    async def _at(self, method: str, place: Place, **more: object) -> object:
        self._sync(place.file)
        position = {"line": place.line, "character": place.character}
        document = self._document(place.file)
        return await self._child.request(method, {"textDocument": document, "position": position, **more})

    def _document(self, file: str) -> dict[str, str]:
        return {"uri": (self._fixture.root / file).as_uri()}

    def _sync(self, file: str) -> None:
        text = (self._fixture.root / file).read_text()
        if self._sent.get(file) == text:
            return
        version = self._versions[file] = self._versions.get(file, 0) + 1
        document = {**self._document(file), "version": version}
        if version == 1:
            document |= {"languageId": self._fixture.language, "text": text}
            self._child.notify("textDocument/didOpen", {"textDocument": document})
        else:
            self._child.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        self._sent[file] = text


def _nothing_configured(params: Any) -> list[dict[str, Any]]:
    return [{} for _ in params["items"]]


@asynccontextmanager
async def bare(fixture: Fixture, scratch: Path) -> AsyncGenerator[Bare]:
    child = await started(fixture.grammar.command, cwd=fixture.root, environment=environment(scratch), framed=True)
    subject = Bare(child, fixture)
    await subject.start()
    try:
        yield subject
    finally:
        with suppress(ProcessLookupError):
            child.process.kill()
        await child.close()
