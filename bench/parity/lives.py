"""What is measured of a subject's life: memory, sessions, recovery, what it leaves behind, how many bytes it says."""

import asyncio
import re
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil

from parity import processes
from parity.answers import is_definition
from parity.fixtures import Place
from parity.records import Bench, Record, plain
from parity.subjects import Kind, NotOffered, Subject, ThroughMcp

SESSIONS = 10
PATCH = 20
CLIENTS = (1, 8, 32)
QUESTIONS = 20
"""Asked by each client at once."""

OWN_SERVERS = "every session has servers of its own, so there is nothing to share"

HELD = ("memory of the bridge", "memory of the servers", "tool schema bytes", "left after the end")
RECOVERED = ("recovery from a killed server", "recovery from a hung server")
SIGNALS: dict[str, signal.Signals] = dict(zip(RECOVERED, (signal.SIGKILL, signal.SIGSTOP), strict=True))
LEFT = ("left after kill -9",)
PATCHED = (f"patch of {PATCH} files",)
SESSION = ("second session", f"session {SESSIONS}", "second session: new servers")
THROUGHPUT = tuple(f"definition, {clients} clients at once" for clients in CLIENTS)
RATES = tuple(f"questions per second, {clients} clients" for clients in CLIENTS)
FEEDBACK = ("feedback bytes",)

Measure = Callable[[Bench, str, Kind], Awaitable[None]]


@dataclass(frozen=True)
class Life:
    """A measure, the records that it fills, and of whom."""

    names: tuple[str, ...]
    measure: Measure
    who: Callable[[Kind], bool]


async def lives(bench: Bench, language: str) -> None:
    for life in LIVES:
        for kind in bench.in_turns(0, [kind for kind in bench.kinds_for(language) if life.who(kind)]):
            try:
                await life.measure(bench, language, kind)
            except (RuntimeError, TimeoutError, OSError, NotOffered, psutil.Error) as error:
                bench.fail(life.names, language, kind.name, error if str(error) else type(error).__name__)
    await _recovery(bench, language)


async def _held(bench: Bench, language: str, kind: Kind) -> None:
    """After one answer; and what is left when it has ended properly."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    try:
        async with kind.open(fixture, scratch) as subject:
            await _woken(bench, subject, fixture.places[0])
            found = processes.of(str(scratch))
            servers = [process for process in found if processes.is_server(process)]
            bridge = [process for process in found if process not in servers]
            if kind.name == "library":
                why = NotOffered("it is part of the process that uses it, here this benchmark")
                bench.fail(["memory of the bridge"], language, kind.name, why)
            elif kind.name != "bare":
                bench.figure("memory of the bridge", language, kind.name, processes.memory(bridge))
            bench.figure("memory of the servers", language, kind.name, processes.memory(servers))
            if isinstance(subject, ThroughMcp):
                bench.figure("tool schema bytes", language, kind.name, len(subject.listed.encode()))
        bench.figure("left after the end", language, kind.name, processes.left(str(scratch)))
    finally:
        processes.end(str(scratch))


async def _woken(bench: Bench, subject: Subject, place: Place) -> None:
    """The server runs and has answered once."""
    async with asyncio.timeout(bench.plan.patience * 3):
        try:
            await subject.definition(place)
        except NotOffered:
            await subject.told(place.file)


async def _killed(bench: Bench, language: str, kind: Kind) -> None:
    """The programs between the asker and the servers are killed; for ours that is the daemon too."""
    scratch = bench.scratch.fresh(kind.name)
    fixture = bench.fixture(language)
    try:
        async with kind.open(fixture, scratch) as subject:
            await _woken(bench, subject, fixture.places[0])
            for process in processes.of(str(scratch)):
                if not processes.is_server(process) and not _is_supervisor(process):
                    process.kill()
            bench.figure(LEFT[0], language, kind.name, processes.left(str(scratch)))
            # What its end would still do needs those that are gone.
            processes.end(str(scratch))
    finally:
        processes.end(str(scratch))


def _is_supervisor(process: psutil.Process) -> bool:
    return any("supervisor" in word for word in process.cmdline())


async def _patch(bench: Bench, language: str, kind: Kind) -> None:
    """Twenty files that it knows are broken at once, until all twenty are answered for."""
    fixture = bench.fixture(language)
    files = [fixture.file(f"module_{number}") for number in range(PATCH)]
    async with bench.opened(kind, fixture) as subject:
        async with asyncio.timeout(bench.plan.patience * 4):
            await subject.patched(files)
        for number in range(max(1, bench.plan.cold)):
            names = {f"missing_{number}{place:02d}" for place in range(PATCH)}
            for file, name in zip(files, sorted(names), strict=True):
                text = (fixture.root / file).read_text()
                fixture.write(file, text + fixture.grammar.missing.format(name=name) + "\n")
            record = bench.record(PATCHED[0], language, kind.name)
            if not await bench.timed(
                record, lambda: subject.patched(files), lambda answer, names=names: _names_all(names, answer)
            ):
                return


def _names_all(names: set[str], answer: str) -> bool:
    """Each by its name; or, where a text for a model has no room for all, their number."""
    found = set(re.findall(r"missing_\d+", answer))
    return names <= found or (bool(names & found) and re.search(rf"introduced\W+{PATCH}\b", answer) is not None)


async def _sessions(bench: Bench, language: str, kind: Kind) -> None:
    """More sessions on a root that has one; every one is asked something that nobody has asked before."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    try:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(kind.open(fixture, scratch))
            await _woken(bench, first, fixture.places[0])
            before = processes.servers(str(scratch))
            for number in range(2, SESSIONS + 1):
                name = {2: SESSION[0], SESSIONS: SESSION[1]}.get(number)
                record = bench.record(name, language, kind.name) if name else Record("", "", "")
                place = fixture.places[number]

                async def ask(place: Place = place) -> object:
                    subject = await stack.enter_async_context(kind.open(fixture, scratch))
                    return await subject.definition(place)

                await bench.timed(record, ask, lambda answer, place=place: is_definition(place, answer))
                if processes.servers(str(scratch)) > before:
                    bench.fail([SESSION[1]], language, kind.name, OWN_SERVERS)
                    break
            bench.figure(SESSION[2], language, kind.name, processes.servers(str(scratch)) - before)
    finally:
        processes.end(str(scratch))


async def _throughput(bench: Bench, language: str, kind: Kind) -> None:
    """Milliseconds for one question while so many clients ask at once, and how many answers that makes in a second."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    try:
        async with AsyncExitStack() as stack:
            subjects = [await stack.enter_async_context(kind.open(fixture, scratch))]
            await _woken(bench, subjects[0], fixture.places[0])
            before = processes.servers(str(scratch))
            for clients, times, rate in zip(CLIENTS, THROUGHPUT, RATES, strict=True):
                while len(subjects) < clients:
                    subjects.append(await stack.enter_async_context(kind.open(fixture, scratch)))
                    await _woken(bench, subjects[-1], fixture.places[0])
                    if processes.servers(str(scratch)) > before:
                        bench.fail([*THROUGHPUT, *RATES], language, kind.name, OWN_SERVERS)
                        return
                started = time.perf_counter()
                record = bench.record(times, language, kind.name)
                await asyncio.gather(*(_questions(bench, record, subject, fixture.places) for subject in subjects))
                bench.figure(rate, language, kind.name, clients * QUESTIONS / (time.perf_counter() - started))
    finally:
        processes.end(str(scratch))


async def _questions(bench: Bench, record: Record, subject: Subject, places: Sequence[Place]) -> None:
    for number in range(QUESTIONS):
        place = places[number]
        await bench.timed(
            record, lambda place=place: subject.definition(place), lambda a, place=place: is_definition(place, a)
        )


async def _feedback(bench: Bench, language: str, kind: Kind) -> None:
    """What a model is given to read of twenty errors in one file."""
    fixture = bench.fixture(language)
    async with bench.opened(kind, fixture) as subject:
        file = fixture.file("main")
        lines = [fixture.grammar.missing.format(name=f"missing_{number}") for number in range(PATCH)]
        fixture.write(file, "\n".join(lines) + "\n")
        async with asyncio.timeout(bench.plan.patience * 3):
            said = str(await subject.told(file))
    if "missing_" not in said:
        raise RuntimeError("the answer names none of the errors")
    bench.figure(FEEDBACK[0], language, kind.name, len(said.encode()))


# --- Recovery ------------------------------------------------------------------------------------------------------


async def _recovery(bench: Bench, language: str) -> None:
    """Until the next right answer. All wait side by side: it is waiting that is measured, nobody works meanwhile."""
    kinds = [kind for kind in bench.kinds_for(language) if _is_bridge(kind)]
    for measure in RECOVERED:
        async with AsyncExitStack() as stack:
            waiting: list[Awaitable[None]] = []
            for kind in kinds:
                try:
                    waiting.append(await _struck(bench, stack, measure, kind, language))
                except (RuntimeError, TimeoutError, OSError) as error:
                    bench.fail([measure], language, kind.name, error if str(error) else "did not start")
            await asyncio.gather(*waiting)
            processes.end_below(str(bench.scratch.root))


async def _struck(bench: Bench, stack: AsyncExitStack, measure: str, kind: Kind, language: str) -> Awaitable[None]:
    """Its server is gone, or does nothing any more; to be awaited for the recovery."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    subject = await stack.enter_async_context(kind.open(fixture, scratch))
    await _woken(bench, subject, fixture.places[0])
    for process in processes.of(str(scratch)):
        if processes.is_server(process):
            process.send_signal(SIGNALS[measure])
    return _until_right(bench, bench.record(measure, language, kind.name), subject, fixture.places[0])


async def _until_right(bench: Bench, record: Record, subject: Subject, place: Place) -> None:
    """An answer that is a refusal is asked for again; one that is empty or wrong is counted as wrong."""
    started, limit = time.perf_counter(), bench.plan.recovery
    while (left := limit - (time.perf_counter() - started)) > 0:
        try:
            async with asyncio.timeout(left):
                if is_definition(place, str(await subject.definition(place))):
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


LIVES = (
    Life(HELD, _held, lambda _: True),
    Life(LEFT, _killed, lambda kind: kind.name not in {"bare", "library"}),
    Life(PATCHED, _patch, lambda _: True),
    Life(SESSION, _sessions, _through_mcp),
    Life((*THROUGHPUT, *RATES), _throughput, _through_mcp),
    Life(FEEDBACK, _feedback, lambda kind: kind.name != "bare"),
)
