"""JSON-RPC with a child process: framed as language servers speak it, or a line per message as MCP over stdio does."""

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
