"""OpenCode's real agent loop on a scripted model: without diagnostics, with its own language servers, and with ours.

The model writes a file that is broken, then one that is mended, and so on; then it asks for definitions. A time is from
the model's answer until the host comes back with the tool's result: the tool, and whatever the host waits for after it.
An answer is right if the result of a broken edit names what is broken, that of a mended one does not, and that of a
question names the definition. `once` is `opencode debug lsp`: a process that starts a server, asks it and ends it.
"""

import asyncio
import queue
import subprocess
from dataclasses import replace

from harness.setting import Setting, pilotfish, run
from told import hosts
from told.hosts import Call, Host

from parity.fixtures import Fixture, Place, is_definition
from parity.records import Bench
from parity.subjects import KINDS

ONCE = "diagnostics in one command, from nothing"
LOOP = ("first edit in the agent loop", "edit in the agent loop", "definition in the agent loop")
SUBJECTS = {
    "opencode, no diagnostics": ("opencode/nothing", ""),
    "opencode": ("opencode/own", "lsp"),
    "opencode + ours": ("opencode/pilotfish", "pilotfish_lsp_goto_definition"),
}
"""How each is wired, and the tool that its model asks for definitions."""

BREAKS = (OSError, AssertionError, subprocess.SubprocessError, RuntimeError, queue.Empty)
"""How a host that does not do what it should shows."""


async def loops(bench: Bench, language: str) -> None:
    for number in range(bench.plan.cold):
        for name in bench.in_turns(number, list(SUBJECTS)):
            fixture = bench.fixture(language)
            async with bench.home("opencode", fixture, trusted=True) as home:
                try:
                    await asyncio.to_thread(_loop, bench, fixture, name, home)
                except BREAKS as error:
                    bench.fail(LOOP, language, name, error)


def _loop(bench: Bench, fixture: Fixture, name: str, home: Setting) -> None:
    (wired, tool), turns, grammar = SUBJECTS[name], bench.plan.turns, fixture.grammar
    # The whole result counts here, and its tool for questions is an experiment.
    more = {"OPENCODE_EXPERIMENTAL_LSP_TOOL": "1"}
    host = Host(home, replace(hosts.WIRINGS[wired], told=iter, environment=more))
    file = str(fixture.root / fixture.file("main"))
    try:
        host.begin()
        for number in range(2 * max(2, turns // 2)):
            missing, is_broken = f"missing_{number}", number % 2 == 0
            text = grammar.missing.format(name=missing) if is_broken else grammar.comment.format(text=number)
            said = _called(bench, LOOP[number > 0], fixture, name, host, Call("write", _written(file, text)))
            if tool:
                record = bench.record(LOOP[number > 0], fixture.language, name)
                record.wrong += (missing in said) != is_broken
        for place in fixture.places[: turns // 2 if tool else 0]:
            said = _called(bench, LOOP[2], fixture, name, host, _definition(tool, fixture, place))
            bench.record(LOOP[2], fixture.language, name).wrong += not is_definition(place, said)
    finally:
        host.end()


def _written(file: str, text: str) -> dict[str, object]:
    return {"filePath": file, "content": f"{text}\n"}


def _definition(tool: str, fixture: Fixture, place: Place) -> Call:
    operation = {"operation": "goToDefinition"} if tool == "lsp" else {}
    where = {"filePath": str(fixture.root / place.file), "line": place.line + 1, "character": place.character + 1}
    return Call(tool, operation | where)


def _called(bench: Bench, measure: str, fixture: Fixture, name: str, host: Host, call: Call) -> str:
    milliseconds, said, error = host.called(call)
    if error:
        raise RuntimeError(error)
    bench.figure(measure, fixture.language, name, milliseconds)
    return said


# --- One command ---------------------------------------------------------------------------------------------------


async def once(bench: Bench, language: str) -> None:
    """The errors of a broken file, by a command where nothing runs."""
    for number in range(max(1, bench.plan.cold // 2)):
        for name in bench.in_turns(number, ["bare", "cli", "opencode debug lsp"]):
            fixture = bench.fixture(language)
            async with bench.home(name.replace(" ", "-"), fixture, trusted=True) as home:
                await _once(bench, fixture, name, home)


async def _once(bench: Bench, fixture: Fixture, name: str, home: Setting) -> None:
    file = fixture.file("main")
    fixture.write(file, fixture.grammar.missing.format(name="missing_1") + "\n")
    argv, environment = [*pilotfish(), "check", file], None
    if name == "opencode debug lsp":
        place = hosts.home_of(home)
        program, *_ = hosts.WIRINGS["opencode/own"].command(home, place, "http://127.0.0.1:1")
        argv, environment = [program, "debug", "lsp", "diagnostics", file], place.environment

    async def ask() -> object:
        if name == "bare":
            async with KINDS["bare"].open(fixture, home) as subject:
                return await subject.ask("shown", file)
        return (await asyncio.to_thread(run, argv, home, None, seconds=100.0, environment=environment))[0]

    await bench.timed(
        bench.record(ONCE, fixture.language, name), ask, lambda answer: "missing_1" in answer, starts=True
    )
    if name == "cli":
        run([*pilotfish(), "daemon", "stop"], home, None)
