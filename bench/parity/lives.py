"""What is measured of a subject's life: memory, sessions, recovery, what it leaves behind, how many bytes it says."""

import asyncio
import re
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

import psutil
from harness import processes
from harness.setting import Setting

from parity.fixtures import Fixture, Place, is_definition
from parity.records import STARTING, Bench, Record, plain, said
from parity.subjects import Kind, NotOffered, Subject, ThroughMcp

SESSIONS = 10
PATCH = 20
OWN_SERVERS = "every session has servers of its own, so there is nothing to share"

HELD = ("memory of the bridge", "memory of the servers", "tool schema bytes", "left after the end")
RECOVERED = ("recovery from a killed server", "recovery from a hung server")
SIGNALS: dict[str, signal.Signals] = dict(zip(RECOVERED, (signal.SIGKILL, signal.SIGSTOP), strict=True))
LEFT = ("left after kill -9",)
PATCHED = (f"patch of {PATCH} files",)
SESSION = ("second session, first answer", f"session {SESSIONS}, first answer", "second session: new servers")
STARTED = ("second session, from the start of its program", f"session {SESSIONS}, from the start of its program")
FEEDBACK = ("feedback bytes",)

TROUBLE = (RuntimeError, TimeoutError, OSError, NotOffered, psutil.Error)
"""How a subject that does not do what it should shows; what it has done until then stays measured."""


async def lives(bench: Bench, language: str) -> None:
    """In one opening what can be; what is no time, side by side."""
    if not bench.plan.peers_everywhere and language != bench.plan.languages[0]:
        return
    kinds = bench.kinds_for(language)
    for kind in bench.in_turns(0, kinds):
        said(f"  a life: {kind.name}")
        await _guarded(bench, (*HELD, *FEEDBACK, *PATCHED), language, kind, _life)
    for kind in bench.in_turns(0, [kind for kind in kinds if _through_mcp(kind)]):
        said(f"  sessions: {kind.name}")
        await _guarded(bench, (*SESSION, *STARTED), language, kind, _sessions)
    said("  kill -9 of all")
    killed = [kind for kind in kinds if kind.name not in {"bare", "library"}]
    await asyncio.gather(*(_guarded(bench, LEFT, language, kind, _killed) for kind in killed))
    await _recovery(bench, language, kinds)


async def _guarded(
    bench: Bench,
    names: Sequence[str],
    language: str,
    kind: Kind,
    measure: Callable[[Bench, str, Kind], Awaitable[None]],
) -> None:
    try:
        await measure(bench, language, kind)
    except TROUBLE as error:
        bench.fail(names, language, kind.name, _why(error))


async def _life(bench: Bench, language: str, kind: Kind) -> None:
    """What it holds after one answer, what it says of twenty errors, how it takes twenty files, what it leaves."""
    fixture = bench.fixture(language)
    async with bench.home(kind.name, fixture) as home:
        async with kind.open(fixture, home) as subject:
            await _woken(bench, subject, fixture.places[0])
            _held(bench, language, kind, home)
            if isinstance(subject, ThroughMcp):
                bench.figure("tool schema bytes", language, kind.name, len(subject.listed.encode()))
            else:
                bench.fail(["tool schema bytes"], language, kind.name, NotOffered("it is no MCP server"))
            try:
                await _feedback(bench, fixture, kind, subject)
                await _patch(bench, fixture, kind, subject)
            except TROUBLE as error:
                bench.fail([*FEEDBACK, *PATCHED], language, kind.name, _why(error))
            known = processes.of(home)
        bench.figure("left after the end", language, kind.name, processes.left(home, known))


def _why(error: Exception) -> object:
    return error if str(error) else "no answer in time"


def _held(bench: Bench, language: str, kind: Kind, home: Setting) -> None:
    found = processes.of(home)
    servers = [process for process in found if processes.is_server(process)]
    bridge = [process for process in found if process not in servers]
    if kind.name in {"bare", "library"}:
        why = NotOffered("it is part of the process that uses it, here this benchmark")
        bench.fail(["memory of the bridge"], language, kind.name, why)
    else:
        bench.figure("memory of the bridge", language, kind.name, processes.memory(bridge))
    bench.figure("memory of the servers", language, kind.name, processes.memory(servers))


async def _woken(bench: Bench, subject: Subject, place: Place) -> None:
    """The server runs and has answered once."""
    async with asyncio.timeout(bench.plan.patience * STARTING):
        try:
            await subject.ask("definition", place)
        except NotOffered:
            await subject.ask("told", place.file)


async def _killed(bench: Bench, language: str, kind: Kind) -> None:
    """The programs between the asker and the servers are killed; for ours that is the daemon too."""
    fixture = bench.fixture(language)
    async with bench.home(kind.name, fixture) as home, kind.open(fixture, home) as subject:
        await _woken(bench, subject, fixture.places[0])
        known = processes.of(home)
        for process in known:
            if not processes.is_server(process) and not processes.is_supervisor(process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        bench.figure(LEFT[0], language, kind.name, await asyncio.to_thread(processes.left, home, known))
        # What its end would still do needs those that are gone.
        processes.end(home)


async def _patch(bench: Bench, fixture: Fixture, kind: Kind, subject: Subject) -> None:
    """Twenty files that it knows are broken at once, until all twenty are answered for."""
    files = [fixture.file(f"module_{number}") for number in range(PATCH)]
    async with asyncio.timeout(bench.plan.patience * 2):
        await subject.ask("patched", files)
    record = bench.record(PATCHED[0], fixture.language, kind.name)
    for number in range(max(2, bench.plan.cold)):
        names = {f"missing_{number}{place:02d}" for place in range(PATCH)}
        for file, name in zip(files, sorted(names), strict=True):
            text = (fixture.root / file).read_text()
            fixture.write(file, text + fixture.grammar.missing.format(name=name) + "\n")

        def right(answer: str, names: set[str] = names) -> bool:
            return _names_all(names, answer)

        if not await bench.timed(record, lambda: subject.ask("patched", files), right, starts=True):
            return


def _names_all(names: set[str], answer: str) -> bool:
    """Each by its name; or, where a text for a model has no room for all, their number."""
    found = set(re.findall(r"missing_\d+", answer))
    return names <= found or (bool(names & found) and re.search(rf"introduced\W+{PATCH}\b", answer) is not None)


async def _sessions(bench: Bench, language: str, kind: Kind) -> None:
    """More sessions on a root that has one."""
    fixture = bench.fixture(language)
    async with bench.home(kind.name, fixture) as home, AsyncExitStack() as stack:
        subjects: list[Subject] = [await stack.enter_async_context(kind.open(fixture, home))]
        await _woken(bench, subjects[0], fixture.places[0])
        before = processes.servers(home)
        for number in range(2, SESSIONS + 1):
            await _joined(bench, stack, kind, (fixture, home), subjects)
            more = processes.servers(home) - before
            if number == 2:
                bench.figure(SESSION[2], language, kind.name, more)
            if more > 0:
                bench.fail((*SESSION, *STARTED), language, kind.name, OWN_SERVERS)
                return


async def _joined(
    bench: Bench, stack: AsyncExitStack, kind: Kind, where: tuple[Fixture, Setting], subjects: list[Subject]
) -> None:
    """One more session, asked something that nobody has asked before."""
    fixture, number = where[0], len(subjects) + 1
    place, named = fixture.places[number], {2: 0, SESSIONS: 1}.get(number)
    started = time.perf_counter()
    subjects.append(await stack.enter_async_context(kind.open(*where)))
    names = ("", "") if named is None else (STARTED[named], SESSION[named])
    whole, record = (bench.record(one, fixture.language, kind.name) if one else Record("", "", "") for one in names)
    answered = await bench.timed(
        record, lambda: subjects[-1].ask("definition", place), lambda answer: is_definition(place, answer), starts=True
    )
    if answered:
        whole.milliseconds.append((time.perf_counter() - started) * 1000)


async def _feedback(bench: Bench, fixture: Fixture, kind: Kind, subject: Subject) -> None:
    """What a model is given to read of twenty errors in one file."""
    file = fixture.file("main")
    lines = [fixture.grammar.missing.format(name=f"missing_{number}") for number in range(PATCH)]
    fixture.write(file, "\n".join(lines) + "\n")
    async with asyncio.timeout(bench.plan.patience):
        said = str(await subject.ask("told", file))
    if "missing_" not in said:
        raise RuntimeError("the answer names none of the errors")
    if kind.name != "bare":
        bench.figure(FEEDBACK[0], fixture.language, kind.name, len(said.encode()))


# --- Recovery ------------------------------------------------------------------------------------------------------


async def _recovery(bench: Bench, language: str, everybody: Sequence[Kind]) -> None:
    """Until the next right answer. All wait side by side: it is waiting that is measured, nobody works meanwhile."""
    kinds = [kind for kind in everybody if _is_bridge(kind)]
    for measure in RECOVERED:
        said(f"  {measure}")
        async with AsyncExitStack() as stack:
            waiting: list[Awaitable[None]] = []
            for kind in kinds:
                try:
                    waiting.append(await _struck(bench, stack, measure, kind, language))
                except (RuntimeError, TimeoutError, OSError) as error:
                    bench.fail([measure], language, kind.name, _why(error))
            await asyncio.gather(*waiting)
            processes.end_below(bench.scratch.root)


async def _struck(bench: Bench, stack: AsyncExitStack, measure: str, kind: Kind, language: str) -> Awaitable[None]:
    """Its server is gone, or does nothing any more; to be awaited for the recovery."""
    fixture = bench.fixture(language)
    home = await stack.enter_async_context(bench.home(kind.name, fixture))
    subject = await stack.enter_async_context(kind.open(fixture, home))
    await _woken(bench, subject, fixture.places[0])
    for process in processes.of(home):
        if processes.is_server(process):
            process.send_signal(SIGNALS[measure])
    return _until_right(bench, bench.record(measure, language, kind.name), subject, fixture.places[0])


async def _until_right(bench: Bench, record: Record, subject: Subject, place: Place) -> None:
    """An answer that is a refusal is asked for again; one that is empty or wrong is counted as wrong."""
    started, limit = time.perf_counter(), bench.plan.recovery
    while (left := limit - (time.perf_counter() - started)) > 0:
        try:
            async with asyncio.timeout(left):
                if is_definition(place, str(await subject.ask("definition", place))):
                    record.milliseconds.append((time.perf_counter() - started) * 1000)
                    return
                record.wrong += 1
        except (RuntimeError, TimeoutError, OSError) as error:
            record.failure = plain(error, bench.scratch.root) or None
        await asyncio.sleep(0.2)
    record.unanswered += 1
    record.failure = f"none in {limit:g} s" + (f"; {record.failure}" if record.failure else "")


def _is_bridge(kind: Kind) -> bool:
    return kind.name not in {"bare", "cli", "hook"}


def _through_mcp(kind: Kind) -> bool:
    return kind.name not in {"bare", "cli", "hook", "library"}
