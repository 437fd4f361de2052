"""What is measured of a subject's life: memory, sessions, recovery, what it leaves behind, how many bytes it says."""

import asyncio
import signal
import time
from contextlib import AsyncExitStack

import psutil

from parity import processes
from parity.measures import Bench, Record, is_definition
from parity.subjects import Kind, NotOffered, Subject, ThroughMcp

SESSIONS = 10
PATCH = 20
CLIENTS = (1, 8, 32)
QUESTIONS = 20
"""Asked by each client at once."""


async def lives(bench: Bench, language: str) -> None:
    for kind in bench.kinds_for(language):
        if kind.name not in {"bare", "library", "cli", "hook"}:
            await _guarded(bench, language, kind, _memory)
            await _guarded(bench, language, kind, _recovery)
            await _guarded(bench, language, kind, _killed)
        if kind.is_ours or kind.name == "bare":
            await _guarded(bench, language, kind, _patch)
        if kind.name == "mcp":
            await _guarded(bench, language, kind, _sessions)
            await _guarded(bench, language, kind, _throughput)
        if kind.name == "hook":
            await _guarded(bench, language, kind, _feedback)
        if kind.name == "library":
            await _guarded(bench, language, kind, _growth)


async def _guarded(bench: Bench, language: str, kind: Kind, measure: object) -> None:
    """A subject that fails one measure is not measured by it, and says so."""
    try:
        await measure(bench, language, kind)  # pyright: ignore[reportCallIssue] -- one of the functions below
    except (RuntimeError, TimeoutError, OSError, psutil.Error) as error:
        bench.record(str(getattr(measure, "__name__", measure))[1:], language, kind.name).failure = str(error)[:200]


async def _memory(bench: Bench, language: str, kind: Kind) -> None:
    """After one definition; and what is left when it has ended properly."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    async with kind.open(fixture, scratch) as subject:
        async with asyncio.timeout(bench.plan.patience * 3):
            await subject.definition(fixture.places[0])
        found = processes.of(str(scratch))
        servers = [process for process in found if processes.is_server(process)]
        bridge = [process for process in found if process not in servers]
        _figure(bench, "memory of the bridge", language, kind, processes.memory(bridge))
        _figure(bench, "memory of the servers", language, kind, processes.memory(servers))
        if isinstance(subject, ThroughMcp):
            _figure(bench, "tool schema bytes", language, kind, len(subject.listed.encode()))
    _figure(bench, "left after the end", language, kind, processes.left(str(scratch)))


async def _recovery(bench: Bench, language: str, kind: Kind) -> None:
    """Until the next right answer, after the server was killed and after it was stopped."""
    for what, number in (("killed", signal.SIGKILL), ("hung", signal.SIGSTOP)):
        fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
        async with kind.open(fixture, scratch) as subject:
            place = fixture.places[0]
            async with asyncio.timeout(bench.plan.patience * 3):
                await subject.definition(place)
            for process in processes.of(str(scratch)):
                if processes.is_server(process):
                    process.send_signal(number)
            record = bench.record(f"recovery from a {what} server", language, kind.name)
            await _until_right(bench, record, subject, place)
        for process in processes.of(str(scratch)):
            process.kill()


async def _until_right(bench: Bench, record: Record, subject: Subject, place: object) -> None:
    started, limit = time.perf_counter(), bench.plan.patience * 4
    while time.perf_counter() - started < limit:
        try:
            async with asyncio.timeout(limit - (time.perf_counter() - started)):
                if is_definition(place, await subject.definition(place)):  # pyright: ignore[reportArgumentType]
                    record.milliseconds.append((time.perf_counter() - started) * 1000)
                    return
        except (RuntimeError, TimeoutError) as error:
            record.failure = f"{type(error).__name__}: {error}"[:120]
        record.wrong += 1
        await asyncio.sleep(0.2)
    record.unanswered += 1


async def _killed(bench: Bench, language: str, kind: Kind) -> None:
    """The program that answers is killed; for ours that is the daemon and the proxy."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    async with kind.open(fixture, scratch) as subject:
        async with asyncio.timeout(bench.plan.patience * 3):
            await subject.definition(fixture.places[0])
        found = processes.of(str(scratch))
        for process in found:
            if not processes.is_server(process) and not _is_supervisor(process):
                process.kill()
        _figure(bench, "left after kill -9", language, kind, processes.left(str(scratch)))
    for process in processes.of(str(scratch)):
        process.kill()


def _is_supervisor(process: psutil.Process) -> bool:
    return any("supervisor" in word for word in process.cmdline())


async def _sessions(bench: Bench, language: str, kind: Kind) -> None:
    """More sessions on a root that has one."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(kind.open(fixture, scratch))
        await first.definition(fixture.places[0])
        before = sum(map(processes.is_server, processes.of(str(scratch))))
        for number in range(2, SESSIONS + 1):
            subject = await stack.enter_async_context(kind.open(fixture, scratch))
            name = {2: "second session", SESSIONS: f"session {SESSIONS}"}.get(number)
            record = bench.record(name, language, kind.name) if name else Record("", "", "")
            place = fixture.places[number]
            await bench.timed(
                record, lambda s=subject, p=place: s.definition(p), lambda a, p=place: is_definition(p, a)
            )
        after = sum(map(processes.is_server, processes.of(str(scratch))))
        _figure(bench, "second session: new servers", language, kind, after - before)


async def _throughput(bench: Bench, language: str, kind: Kind) -> None:
    """Milliseconds for one question while so many clients ask at once."""
    fixture, scratch = bench.fixture(language), bench.scratch.fresh(kind.name)
    async with AsyncExitStack() as stack:
        subjects = [await stack.enter_async_context(kind.open(fixture, scratch))]
        await subjects[0].definition(fixture.places[0])
        for clients in CLIENTS:
            while len(subjects) < clients:
                subjects.append(await stack.enter_async_context(kind.open(fixture, scratch)))
            record = bench.record(f"definition, {clients} clients at once", language, kind.name)

            async def ask(subject: Subject, record: Record = record) -> None:
                for number in range(QUESTIONS):
                    place = fixture.places[number]
                    await bench.timed(
                        record, lambda p=place: subject.definition(p), lambda a, p=place: is_definition(p, a)
                    )

            await asyncio.gather(*map(ask, subjects))


async def _patch(bench: Bench, language: str, kind: Kind) -> None:
    """Twenty files broken at once, until all twenty are answered for."""
    fixture = bench.fixture(language)
    async with kind.open(fixture, bench.scratch.fresh(kind.name)) as subject:
        files = [fixture.file(f"module_{number}") for number in range(PATCH)]
        for file in files:
            await subject.written(file)
        for number, file in enumerate(files):
            text = (fixture.root / file).read_text() + fixture.grammar.missing.format(name=f"missing_{number}") + "\n"
            fixture.write(file, text)
        record = bench.record("patch of twenty files", language, kind.name)

        async def ask() -> str:
            return "".join(await asyncio.gather(*map(subject.told, files)))

        await bench.timed(record, ask, lambda answer: all(f"missing_{number}" in answer for number in range(PATCH)))


async def _feedback(bench: Bench, language: str, kind: Kind) -> None:
    fixture = bench.fixture(language)
    async with kind.open(fixture, bench.scratch.fresh(kind.name)) as subject:
        file = fixture.file("main")
        names = [f"missing_{number}" for number in range(PATCH)]
        fixture.write(file, "\n".join(fixture.grammar.missing.format(name=name) for name in names) + "\n")
        _figure(bench, "feedback bytes", language, kind, len((await subject.told(file)).encode()))


async def _growth(bench: Bench, language: str, kind: Kind) -> None:
    """An edit after so many files were touched."""
    fixture = bench.fixture(language)
    files = [fixture.file(f"module_{number}") for number in range(bench.plan.modules)]
    async with kind.open(fixture, bench.scratch.fresh(kind.name)) as subject:
        touched = 0
        for many in (10, 100, 1000):
            for file in files[touched : min(many, len(files))]:
                await subject.written(file)
            if many > len(files):
                return
            touched = many
            record = bench.record(f"edit after {many} touched files", language, kind.name)
            for number in range(max(4, bench.plan.edits)):
                fixture.write(
                    "main" + fixture.grammar.suffix, fixture.grammar.missing.format(name=f"missing_{number}") + "\n"
                )
                await bench.timed(
                    record,
                    lambda: subject.told("main" + fixture.grammar.suffix),
                    lambda answer, n=number: f"missing_{n}" in answer,
                )


def _figure(bench: Bench, measure: str, language: str, kind: Kind, value: float) -> None:
    bench.record(measure, language, kind.name).milliseconds.append(value)


__all__ = ["NotOffered", "lives"]
