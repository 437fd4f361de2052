"""The least clients: JSON-RPC with a child process, a language server asked by it, and a program that speaks MCP.

`Bare` is the floor: it says nothing about freshness.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT = 2**26
PATIENCE = 2.0
"""Between the steps of an end, as the specification of MCP has them."""


class Child:
    """A child and the questions to it; what it asks is answered by `replies`, what it tells goes to `told`."""

    def __init__(self, process: asyncio.subprocess.Process, *, framed: bool) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.replies: dict[str, Callable[[Any], object]] = {}
        self.told: Callable[[str, Any], None] = lambda _method, _params: None
        self._input, self._output = process.stdin, process.stdout
        self._framed = framed
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    async def request(self, method: str, params: object) -> Any:
        """The result; raises `RuntimeError` with the error, or when the child has ended."""
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send({"id": number, "method": method, "params": params})
        try:
            return await answer
        finally:
            del self._waiting[number]

    def notify(self, method: str, params: object) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: Mapping[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n" % len(body) + body if self._framed else body + b"\n")

    async def close(self) -> None:
        """End of input; then a signal, and a kill, for one that does not go: as hosts do it."""
        self._input.close()
        for step in (self.process.terminate, self.process.kill):
            try:
                await asyncio.wait_for(self.process.wait(), PATIENCE)
                break
            except TimeoutError:
                with suppress(ProcessLookupError):
                    step()
        await self.process.wait()
        await self._reading

    async def _read(self) -> None:
        try:
            while True:
                self._take(await self._message())
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(RuntimeError("the child has ended"))

    async def _message(self) -> dict[str, Any]:
        if not self._framed:
            line = await self._output.readline()
            if not line:
                raise asyncio.IncompleteReadError(b"", None)
            return json.loads(line)
        length = 0
        while (line := await self._output.readline()) != b"\r\n":
            if not line:
                raise asyncio.IncompleteReadError(b"", None)
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(await self._output.readexactly(length))

    def _take(self, message: dict[str, Any]) -> None:
        method, identifier = message.get("method"), message.get("id")
        if method is None:
            answer = self._waiting.get(identifier) if isinstance(identifier, int) else None
            if answer is None or answer.done():
                return
            if "error" in message:
                answer.set_exception(RuntimeError(str(message["error"])))
            else:
                answer.set_result(message["result"])
        elif identifier is not None:
            reply = self.replies.get(method, lambda _params: None)
            self.send({"id": identifier, "result": reply(message.get("params"))})
        else:
            self.told(method, message.get("params"))


async def started(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], framed: bool, log: Path | None = None
) -> Child:
    with open(log or os.devnull, "ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env=dict(environment),
            limit=LIMIT,
        )
    return Child(process, framed=framed)


class Bare:
    """A language server and the least client that can ask it about the files of a folder."""

    def __init__(self, child: Child, root: Path, language: str) -> None:
        self.child = child
        self._root, self._language = root, language
        self._versions: dict[str, int] = {}
        self._sent: dict[str, str] = {}
        self._published: dict[tuple[str, int], asyncio.Event] = {}
        child.told = self._told

    async def start(self) -> None:
        self.child.replies["workspace/configuration"] = _nothing_configured
        folder = {"uri": self._root.as_uri(), "name": "workspace"}
        capabilities: dict[str, Any] = {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {"diagnostic": {}},
        }
        about = {"processId": os.getpid(), "rootUri": folder["uri"], "workspaceFolders": [folder]}
        await self.child.request("initialize", {**about, "capabilities": capabilities})
        self.child.notify("initialized", {})

    async def ask(self, method: str, file: str, **more: object) -> Any:
        """One question about a file that is sent as it is on disk."""
        self.sync(file)
        return await self.child.request(f"textDocument/{method}", {"textDocument": self._document(file), **more})

    async def shown(self, file: str) -> object:
        """Its errors, in the way that answers at once: basedpyright's pull, tsserver's synchronous requests.

        gopls cannot be asked: its word is what it publishes of the version that it was sent.
        """
        self.sync(file)
        if self._language == "go":
            await self._event(self._document(file)["uri"], self._versions[file]).wait()
            return None
        if self._language != "typescript":
            return await self.ask("diagnostic", file)
        found: list[Any] = []
        for name in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
            arguments = [name, {"file": str(self._root / file)}]
            command = {"command": "typescript.tsserverRequest", "arguments": arguments}
            found.append((await self.child.request("workspace/executeCommand", command)).get("body"))
        return found

    def sync(self, file: str) -> None:
        text = (self._root / file).read_text()
        if self._sent.get(file) == text:
            return
        version = self._versions[file] = self._versions.get(file, 0) + 1
        document = {**self._document(file), "version": version}
        if version == 1:
            document |= {"languageId": self._language, "text": text}
            self.child.notify("textDocument/didOpen", {"textDocument": document})
        else:
            self.child.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        self._sent[file] = text

    def _document(self, file: str) -> dict[str, Any]:
        return {"uri": (self._root / file).as_uri()}

    def _told(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics":
            self._event(params["uri"], params.get("version", 0)).set()

    def _event(self, uri: str, version: int) -> asyncio.Event:
        return self._published.setdefault((uri, version), asyncio.Event())


def _nothing_configured(params: Any) -> list[dict[str, Any]]:
    return [{} for _ in params["items"]]


class Mcp:
    """A program that speaks MCP over stdio, greeted as a host greets it."""

    def __init__(self, child: Child, root: Path, no_verdict: str = "") -> None:
        self.child = child
        self.listed = ""
        """Its tools, as it lists them."""
        self._root, self._no_verdict = root, no_verdict

    async def start(self) -> None:
        roots = [{"uri": self._root.as_uri(), "name": self._root.name}]
        self.child.replies["roots/list"] = lambda _params: {"roots": roots}
        about = {"name": "bench", "version": "1"}
        hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": about}
        await self.child.request("initialize", hello)
        self.child.notify("notifications/initialized", {})
        self.listed = json.dumps(await self.child.request("tools/list", {}), separators=(",", ":"))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool says; `RuntimeError` where it failed, or claims to know nothing (`no_verdict`)."""
        result = await self.child.request("tools/call", {"name": name, "arguments": arguments})
        said = "\n".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError") or (self._no_verdict and self._no_verdict in said):
            raise RuntimeError(said)
        return said
