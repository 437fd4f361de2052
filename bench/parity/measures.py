"""Questions: from nothing to the first answer, on servers that have seen all of it, and for long lists. All subjects in
turns.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from parity.edits import ALL as EDITS
from parity.edits import edits
from parity.fixtures import Fixture, Place, is_definition, is_right
from parity.peers import NotOffered
from parity.records import SCALE, Bench, Record, said
from parity.subjects import Kind, Subject

OPERATIONS = ("definition", "references", "hover", "symbols")
PLACES = 10
"""Asked about over and over, and once before it counts: what the first question about a file costs is another
measure."""

NEW_FILE = "definition in a file that nobody has asked about"

START_SECONDS = 120.0
"""A first start may have to unpack itself."""

DUEL = "warm definition, bare and {} alone"
DUELLISTS = ("library", "mcp")
DUEL_ROUNDS, DUEL_WARMING = 12, 60
"""Rounds for each round of the others: there are but two, and they are quick."""

SCALE_KINDS = ("bare", "library", "mcp")
"""Who is asked in a workspace of 100,000 lines: the floor and what stands on it."""


@dataclass(frozen=True)
class Opened:
    kind: Kind
    fixture: Fixture
    subject: Subject


async def cold(bench: Bench, language: str) -> None:
    """From nothing to the first definition; for ours through the daemon, that is from no daemon."""
    once = language == bench.plan.languages[0]
    for number in range(bench.plan.cold):
        for kind in bench.in_turns(number, bench.kinds_for(language)):
            others = bench.plan.peers_everywhere or (once and number == 0)
            if others or kind.is_ours or kind.name == "bare":
                await _first(bench, kind, bench.fixture(language), "cold definition")


async def scale(bench: Bench, language: str) -> None:
    """The same in a workspace of 100,000 lines."""
    for number in range(max(1, bench.plan.cold // 2)):
        kinds = [kind for kind in bench.kinds_for(language) if kind.name in SCALE_KINDS]
        for kind in bench.in_turns(number, kinds):
            await _first(bench, kind, bench.fixture(language, **SCALE), "cold definition, 100,000 lines")


async def _first(bench: Bench, kind: Kind, fixture: Fixture, measure: str) -> None:
    record, place = bench.record(measure, fixture.language, kind.name), fixture.places[0]
    async with AsyncExitStack() as stack:

        async def ask() -> object:
            subject = await stack.enter_async_context(bench.opened(kind, fixture))
            return await subject.ask("definition", place)

        try:
            await bench.timed(record, ask, lambda answer: is_definition(place, answer), starts=True)
        except NotOffered as error:
            bench.fail([measure], fixture.language, kind.name, error)
    shutil.rmtree(fixture.root.parent, ignore_errors=True)


async def warm(bench: Bench, language: str) -> None:
    """Every operation, then every kind of edit, on the same open subjects."""
    async with AsyncExitStack() as stack:
        found = [await _opened(bench, stack, kind, language) for kind in bench.kinds_for(language)]
        subjects = [one for one in found if one is not None]
        for operation in OPERATIONS:
            said(f"  {operation}")
            await _rounds(bench, operation, subjects)
        said("  new files")
        if subjects:
            await _new_files(bench, subjects)
        said("  two alone")
        for name in DUELLISTS:
            await _duel(bench, [one for one in subjects if one.kind.name in {"bare", name}], DUEL.format(name))
        said("  edits")
        await edits(bench, [(one.kind.name, one.fixture, one.subject) for one in subjects])


async def _opened(bench: Bench, stack: AsyncExitStack, kind: Kind, language: str) -> Opened | None:
    fixture = bench.fixture(language)
    try:
        async with asyncio.timeout(START_SECONDS):
            subject = await stack.enter_async_context(bench.opened(kind, fixture))
    except (TimeoutError, RuntimeError, OSError) as error:
        bench.fail([*(f"warm {name}" for name in OPERATIONS), *EDITS], language, kind.name, f"did not start: {error}")
        return None
    return Opened(kind, fixture, subject)


async def _rounds(bench: Bench, operation: str, subjects: Sequence[Opened]) -> None:
    """Slow ones have fewer rounds: whoever has used up its seconds is asked no more."""
    spent, first = dict.fromkeys((one.kind.name for one in subjects), 0.0), -PLACES
    for number in range(first, bench.plan.warm):
        index = _known(subjects[0].fixture, number) if subjects else 0
        for one in bench.in_turns(number, subjects):
            record = bench.record(f"warm {operation}", one.fixture.language, one.kind.name)
            counts, has_any = number >= 0, bool(record.milliseconds or record.failure)
            if spent[one.kind.name] > bench.plan.seconds / (1 if counts else 2) and (has_any or not counts):
                continue
            started = time.perf_counter()
            await _asked(bench, operation, one, record if counts else Record("", "", ""), index)
            # The very first answer may start a server: it is neither counted nor held against its subject.
            spent[one.kind.name] += time.perf_counter() - started if number > first else 0.0


async def _new_files(bench: Bench, subjects: Sequence[Opened]) -> None:
    """One question about each of some files that come after those of the other rounds."""
    spent = dict.fromkeys((one.kind.name for one in subjects), 0.0)
    fixture = subjects[0].fixture
    known = {fixture.places[_known(fixture, number)].file for number in range(PLACES)}
    others = {place.file: index for index, place in enumerate(fixture.places) if place.file not in known}
    for number, index in enumerate(list(others.values())[: bench.plan.warm]):
        for one in bench.in_turns(number, subjects):
            if spent[one.kind.name] > bench.plan.seconds:
                continue
            started = time.perf_counter()
            await _asked(bench, "definition", one, bench.record(NEW_FILE, one.fixture.language, one.kind.name), index)
            spent[one.kind.name] += time.perf_counter() - started


async def _duel(bench: Bench, subjects: Sequence[Opened], measure: str) -> None:
    """The floor and one other with nobody between: the more take turns, the colder are the caches of each."""
    for number in range(-DUEL_WARMING, bench.plan.warm * DUEL_ROUNDS if len(subjects) > 1 else 0):
        index = _known(subjects[0].fixture, number) if subjects else 0
        for one in bench.in_turns(number, subjects):
            record = bench.record(measure, one.fixture.language, one.kind.name)
            await _asked(bench, "definition", one, record if number >= 0 else Record("", "", ""), index)


def _known(fixture: Fixture, number: int) -> int:
    """The place of a round: all over the workspace, and the same few again and again."""
    many = len(fixture.places)
    return number % PLACES * max(1, many // PLACES) % many


async def _asked(bench: Bench, operation: str, one: Opened, record: Record, index: int) -> None:
    place = one.fixture.places[index]
    about = place.file if operation == "symbols" else place
    try:
        await bench.timed(
            record, lambda: one.subject.ask(operation, about), lambda answer: is_right(operation, place, answer)
        )
    except NotOffered as error:
        bench.fail([record.measure] if record.measure else [], one.fixture.language, one.kind.name, error)


# --- Long answers: uses of a name and outlines of a file. The floor and the library alone -----------------------------

SIZES = (10, 100, 1_000)
USES = 25
"""Of one file."""

ROUNDS, WARMING = 20, 3
REFERENCES, SYMBOLS = "references, {} places", "symbols, {} of one file"
LISTS = tuple(measure.format(size) for measure in (REFERENCES, SYMBOLS) for size in SIZES)


async def lists(bench: Bench, language: str) -> None:
    """What we take beyond the floor for one entry (its text, the symbol around it, code points) grows with the list."""
    async with AsyncExitStack() as stack:
        subjects = list[tuple[str, Fixture, Subject]]()
        for kind in (kind for kind in bench.kinds_for(language) if kind.name in {"bare", "library"}):
            fixture = bench.fixture(language, modules=2, functions=1)
            for size in SIZES:
                _write(fixture, size)
            subjects.append((kind.name, fixture, await stack.enter_async_context(bench.opened(kind, fixture))))
        for size, form in ((size, form) for size in SIZES for form in (REFERENCES, SYMBOLS)):
            for number in range(-WARMING, ROUNDS):
                for name, fixture, subject in bench.in_turns(number, subjects):
                    record = bench.record(form.format(size), language, name) if number >= 0 else Record("", "", "")
                    await _listed(bench, record, fixture, subject, form, size)


async def _listed(bench: Bench, record: Record, fixture: Fixture, subject: Subject, form: str, size: int) -> None:
    if form == SYMBOLS:
        what, about, right = "symbols", fixture.file(f"outline_{size}"), _names(f"entry_{size - 1}", 1)
    else:
        what, about, right = "references", _declared(fixture, size), _names(f"uses_{size}_", size)
    await bench.timed(record, lambda: subject.ask(what, about, 2 * size), right, starts=not record.measure)


def _names(word: str, times: int) -> Callable[[str], bool]:
    return lambda answer: answer.count(word) >= times


def _declared(fixture: Fixture, size: int) -> Place:
    """The name of the function in its declaration."""
    file, name = fixture.file(f"declares_{size}"), f"used_{size}"
    line = fixture.grammar.function.format(name=name, body="value").split("\n")[0]
    return Place(file, 0, line.index(name) + 1, name, file, 0)


def _write(fixture: Fixture, size: int) -> None:
    grammar, name = fixture.grammar, f"used_{size}"
    fixture.write(fixture.file(f"declares_{size}"), grammar.function.format(name=name, body="value") + "\n")
    entries = [grammar.function.format(name=f"entry_{number}", body="value") for number in range(size)]
    fixture.write(fixture.file(f"outline_{size}"), "\n".join(entries) + "\n")
    # The import is a use, too.
    each = min(USES, size) - 1
    for number in range(-(-size // (each + 1))):
        lines = [grammar.importing.format(module=f"declares_{size}", name=name)]
        lines += [
            grammar.function.format(name=f"user_{size}_{number}_{use}", body=grammar.call.format(name=name))
            for use in range(each)
        ]
        fixture.write(fixture.file(f"uses_{size}_{number}"), "\n".join(lines) + "\n")
