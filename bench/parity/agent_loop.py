"""OpenCode's real agent loop on a scripted model: without diagnostics, with its own language servers, and with ours.

The model writes a file that is broken, then one that is mended, and so on; then it asks for definitions. A time is from
the model's answer until the host comes back with the tool's result: the tool, and whatever the host waits for after it.
An answer is right if the result of a broken edit names what is broken, that of a mended one does not, and that of a
question names the definition. `once` is `opencode debug lsp`: a process that starts a server, asks it and ends it.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parity.answers import is_definition
from parity.fixtures import GRAMMARS, Fixture, Place, make
from parity.floor import bare
from parity.records import Bench
from parity.subjects import CLONE, Kind

sys.path.insert(0, str(CLONE / "tests"))

from support.daemon.homes import DaemonHome
from support.hosts.model_server import Call, ModelServer, Turn
from support.hosts.opencode import CHAT, opencode, started
from support.hosts.real import host_home, pilotfish, program, run

ONCE = "diagnostics in one command, from nothing"
LOOP = ("first edit in the agent loop", "edit in the agent loop", "definition in the agent loop")
OTHERS = {"python": ("pyright", "ty"), "typescript": ("deno", "eslint", "biome", "oxlint")}
"""OpenCode's own servers for the same files: everybody has the one that the fixtures name, and no other."""

BREAKS = (OSError, AssertionError, subprocess.SubprocessError, IndexError, KeyError)
"""How a host that does not do what it should shows."""


@dataclass(frozen=True)
class Wiring:
    """What the host is set up with, and the tool that its model asks for definitions."""

    own_servers: bool
    ours: bool
    definition: str | None

    def settings(self, language: str) -> dict[str, Any]:
        if not self.own_servers:
            return {"lsp": False}
        grammar = GRAMMARS[language]
        server = {"command": list(grammar.command), "extensions": [grammar.suffix]}
        return {"lsp": {grammar.server: server, **{one: {"disabled": True} for one in OTHERS[language]}}}


SUBJECTS = {
    "opencode, no diagnostics": Wiring(own_servers=False, ours=False, definition=None),
    "opencode": Wiring(own_servers=True, ours=False, definition="lsp"),
    "opencode + ours": Wiring(own_servers=False, ours=True, definition="pilotfish_lsp_goto_definition"),
}


class Clock(ModelServer):
    """A model that looks at the clock when it is asked and when it answers."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(turns)
        self.asked: dict[int, float] = {}
        self.answered_at: dict[int, float] = {}

    def answered(self, path: str, body: dict[str, Any]) -> Any:
        now = time.perf_counter()
        answer = super().answered(path, body)
        if self.requests and self.requests[-1].body is body and self.requests[-1].heard.tools:
            position = self.requests[-1].position
            self.asked.setdefault(position, now)
            self.answered_at.setdefault(position, time.perf_counter())
        return answer


# --- The loop ------------------------------------------------------------------------------------------------------


async def loops(bench: Bench, language: str) -> None:
    for number in range(bench.plan.cold):
        for name in bench.in_turns(number, list(SUBJECTS)):
            try:
                await asyncio.to_thread(_loop, bench, language, name)
            except BREAKS as error:
                bench.fail(LOOP, language, name, error)


def _loop(bench: Bench, language: str, name: str) -> None:
    wiring, plan = SUBJECTS[name], bench.plan
    with tempfile.TemporaryDirectory() as folder, host_home(Path(folder), (GRAMMARS[language].server,)) as home:
        home.environment["OPENCODE_EXPERIMENTAL_LSP_TOOL"] = "1"
        fixture = make(language, home.root, seed=plan.seed, modules=plan.modules, functions=plan.functions)
        if wiring.ours:
            pilotfish(home, "setup", "opencode", "--global")
        edits = 2 * max(2, plan.turns // 2)
        turns, places = _edits(fixture, edits), list(fixture.places[: plan.turns // 2 if wiring.definition else 0])
        turns += [_definition(str(wiring.definition), fixture, place) for place in places]
        with Clock(turns) as model:
            run(opencode(**wiring.settings(language)), home, model)
        _count(bench, language, name, model, edits, places)


def _edits(fixture: Fixture, many: int) -> list[Turn]:
    file, grammar = fixture.root / fixture.file("main"), fixture.grammar
    texts = [
        grammar.missing.format(name=f"missing_{number}") if number % 2 == 0 else grammar.comment.format(text=number)
        for number in range(many)
    ]
    return [Call("write", {"filePath": str(file), "content": f"{text}\n"}) for text in texts]


def _definition(tool: str, fixture: Fixture, place: Place) -> Turn:
    operation = {"operation": "goToDefinition"} if tool == "lsp" else {}
    where = {"filePath": str(fixture.root / place.file), "line": place.line + 1, "character": place.character + 1}
    return Call(tool, operation | where)


def _count(bench: Bench, language: str, name: str, model: Clock, edits: int, places: Sequence[Place]) -> None:
    results = model.requests[-1].heard.results
    for number, result in enumerate(results):
        measure = LOOP[2] if number >= edits else LOOP[number > 0]
        record = bench.record(measure, language, name)
        record.milliseconds.append((model.asked[number + 1] - model.answered_at[number]) * 1000)
        if number >= edits:
            record.wrong += not is_definition(places[number - edits], result)
        elif name != "opencode, no diagnostics":
            record.wrong += (f"missing_{number}" in result) != (number % 2 == 0)


# --- One command ---------------------------------------------------------------------------------------------------


async def once(bench: Bench, language: str) -> None:
    """The errors of a broken file, by a command where nothing runs."""
    for number in range(max(1, bench.plan.cold // 2)):
        for name in bench.in_turns(number, ["bare", "cli", "opencode debug lsp"]):
            with ExitStack() as stack:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                home = stack.enter_context(host_home(Path(folder), (GRAMMARS[language].server,)))
                await _once(bench, language, name, home)


async def _once(bench: Bench, language: str, name: str, home: DaemonHome) -> None:
    plan = bench.plan
    fixture = make(language, home.root, seed=plan.seed, modules=plan.modules, functions=plan.functions)
    file = fixture.file("main")
    fixture.write(file, fixture.grammar.missing.format(name="missing_1") + "\n")

    async def ask() -> object:
        if name == "bare":
            async with bench.opened(Kind("bare", bare), fixture) as subject:
                return await subject.shown(file)
        if name == "cli":
            return await asyncio.to_thread(_said, [sys.executable, "-m", "pilotfish", "check", file], home)
        return await asyncio.to_thread(_said, [program("opencode"), "debug", "lsp", "diagnostics", file], home)

    if name == "opencode debug lsp":
        started(home, "http://127.0.0.1:1", "scripted", CHAT, SUBJECTS["opencode"].settings(language))
    await bench.timed(bench.record(ONCE, language, name), ask, lambda answer: "missing_1" in answer, starts=True)


def _said(argv: list[str], home: DaemonHome) -> str:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=home.root,
        env=home.environment,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stdout
