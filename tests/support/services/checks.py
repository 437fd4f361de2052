"""One file, one scripted server: checks in few words."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from pilotfish.client.session import Session
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import uri_of
from pilotfish.servers.inputs import InputEvidence
from pilotfish.servers.spec import Freshness, OnDemand, Phases, PullSupport
from pilotfish.service.diagnostics.check import Check
from pilotfish.service.diagnostics.ledger import FileToSend, Ledger
from pilotfish.service.diagnostics.verdicts import Outcome
from support.servers.script import SILENCE, Script
from support.servers.scripted import ScriptedServer
from support.servers.sessions import FILE, session_on

OTHER = AbsPath("/w/b.py")

PULL = Freshness(pull=PullSupport.STATIC)
PUSH = Freshness(pull=PullSupport.NONE, phases=Phases.ONE)
UNKNOWN = Freshness(pull=PullSupport.NONE)
SILENT = Freshness(pull=PullSupport.NONE, barrier="textDocument/documentSymbol", publishes_unchanged=False)
COMMAND = Freshness(pull=PullSupport.NONE, on_demand=OnDemand("ts.request", ("syntactic", "semantic"), "tsserver"))

PULLED: dict[str, Any] = {"diagnosticProvider": {}}
SYMBOLS: dict[str, Any] = {"documentSymbolProvider": True}
COMMANDS: dict[str, Any] = {"executeCommandProvider": {"commands": ["ts.request"]}}

SYNC = {"openClose": True, "change": 1, "save": True}


def server_with(**capabilities: Any) -> Callable[[Script], None]:
    """A scenario: a server that takes texts, offers what is named, and says nothing by itself."""

    def scenario(script: Script) -> None:
        script.capabilities = {"textDocumentSync": SYNC, **capabilities}
        script.ignore("textDocument/didOpen", "textDocument/didChange", "textDocument/didSave", "textDocument/didClose")
        for method in ("textDocument/diagnostic", "textDocument/documentSymbol", "workspace/executeCommand"):
            script.on(method, lambda params: SILENCE)

    return scenario


def item(message: str, line: int = 0) -> dict[str, Any]:
    """A diagnostic as a server sends it."""
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}
    return {"range": place, "severity": 1, "message": message}


def full(*messages: str, result_id: str | None = None) -> dict[str, Any]:
    """The answer to a pull."""
    report: dict[str, Any] = {"kind": "full", "items": [item(message) for message in messages]}
    return report if result_id is None else {**report, "resultId": result_id}


def messages(outcome: Outcome) -> list[str] | None:
    """What an outcome says; None where there is no verdict."""
    return None if outcome.diagnostics is None else [diagnostic.message for diagnostic in outcome.diagnostics]


@dataclass
class Bench:
    session: Session
    server: ScriptedServer
    freshness: Freshness
    ledger: Ledger

    async def check(self, text: str, path: AbsPath = FILE, seconds: float = 3.0, **file: Any) -> Outcome:
        """Check a text; raises what the session raises."""
        at_hand = FileToSend(path, "python", text, **file)
        async with self.ledger.shared():
            deadline = anyio.current_time() + seconds
            return await Check(self.session, self.ledger, self.freshness, at_hand).run(deadline)

    def sent(self, method: str) -> list[Any]:
        """The parameters of every message of a method that the server has got."""
        return [message.params for message in self.server.received if message.method == method]

    def publish(self, *found: str, path: AbsPath = FILE, version: int | None = None) -> None:
        self.server.publish(uri_of(path), list(found), version)

    def answers(self, method: str, *results: Any) -> None:
        """Answer the next questions with these results in turn, the last one for every further one."""
        left = list(results)

        def handler(params: Any) -> Any:
            result = left.pop(0) if len(left) > 1 else left[0]
            return result(params) if callable(result) else result

        self.server.on(method, handler)


@asynccontextmanager
async def bench(
    freshness: Freshness | None = None, inputs: InputEvidence | None = None, **capabilities: Any
) -> AsyncGenerator[Bench]:
    known = freshness or Freshness()
    async with session_on(server_with(**capabilities), inputs=inputs, freshness=known) as (session, server):
        yield Bench(session, server, known, Ledger())


@asynccontextmanager
async def later(*steps: tuple[float, Callable[[], object]]) -> AsyncGenerator[None]:
    """While the block runs, do each thing at its time, in seconds from now."""

    async def one(seconds: float, action: Callable[[], object]) -> None:
        await anyio.sleep(seconds)
        action()

    async with anyio.create_task_group() as tasks:
        for seconds, action in steps:
            tasks.start_soon(one, seconds, action)
        yield


class Taker:
    """Collects requests of one method, to be answered by the test."""

    def __init__(self, ground: Bench, method: str) -> None:
        self._server = ground.server
        self._method = method
        ground.server.on(method, lambda params: SILENCE)

    def reply(self, number: int, result: Any) -> None:
        """Answer the request of that number, counted from 0."""
        found = [message.id for message in self._server.received if message.method == self._method]
        identifier = found[number]
        assert identifier is not None
        self._server.reply(identifier, result)
