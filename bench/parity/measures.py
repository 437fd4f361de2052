"""Questions: from nothing to the first answer, on servers that have seen all of it, for long lists; and edits.

All subjects in turns.
"""

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from parity.fixtures import MISSING, Fixture, Place, is_definition, is_right
from parity.records import SCALE, Bench, Record, said
from parity.subjects import Kind, Library, NotOffered, Subject

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


# --- Edits ----------------------------------------------------------------------------------------------------------

KINDS = ("introduce", "fix", "no-op", "cross-file", "broken elsewhere", "created", "deleted", "outside edit")
EDITS = tuple(f"edit: {kind}" for kind in KINDS)
TOLD = KINDS[:3]
"""What a host's tool does to one file, and is answered about that file."""

LAST_WORD = "edit: {}, until the server's last word"
"""The server's own time in our own session: what we take beyond it is ours."""

CALLS = 2
"""A round of edits may take so many times what the rounds of one operation may: it is many calls."""

STRIKES = 2
"""Calls without an answer after which a subject that has given fewer answers is asked no more."""


async def edits(bench: Bench, subjects: Sequence[tuple[str, Fixture, Subject]]) -> None:
    """In turns; whoever has used up its seconds edits no more."""
    hands = [Hand(bench, *one) for one in subjects]
    for hand in hands:
        await hand.begin()
    spent = dict.fromkeys((hand.name for hand in hands), 0.0)
    for number in range(bench.plan.edits):
        for hand in bench.in_turns(number, hands):
            if spent[hand.name] > bench.plan.seconds * CALLS:
                continue
            started = time.perf_counter()
            if not await hand.all(number):
                spent[hand.name] = float("inf")
            spent[hand.name] += time.perf_counter() - started


@dataclass
class Hand:
    """One pair of hands at one subject's workspace."""

    bench: Bench
    name: str
    fixture: Fixture
    subject: Subject
    _silences: int = 0
    """Calls without an answer among those that no measure counts."""

    async def begin(self) -> None:
        """What the first edit of all costs (a server that starts, a first look at everything) is another measure."""
        self._write_main(None)
        await self._uncounted("told", self._main)
        self._silences = 0

    async def all(self, number: int) -> bool:
        """False when there is no sense in asking this one any more."""
        steps = (self.introduce, self.fix, self.change_nothing, self.cross_file, self.elsewhere, self.create)
        for step in (*steps, self.outside):
            try:
                await step(number)
            except NotOffered as error:
                self.bench.fail(["edit: broken elsewhere"], self.fixture.language, self.name, error)
            if self._has_struck_out():
                why = f"asked no more after {STRIKES} calls without an answer in {self.bench.plan.patience:g} s"
                self.bench.fail(EDITS, self.fixture.language, self.name, why)
                return False
        return True

    def _has_struck_out(self) -> bool:
        records = [self.bench.record(kind, self.fixture.language, self.name) for kind in EDITS]
        answered = sum(len(one.milliseconds) for one in records)
        unanswered = sum(one.unanswered for one in records) + self._silences
        return unanswered >= STRIKES and unanswered > answered

    async def introduce(self, number: int) -> None:
        self._write_main(f"missing_{number}")
        await self._judged("introduce", self._main, {f"missing_{number}"})

    async def fix(self, _number: int) -> None:
        self._write_main(None)
        await self._judged("fix", self._main, set())

    async def change_nothing(self, number: int) -> None:
        self._write_main(None, remark=f"round {number}")
        await self._judged("no-op", self._main, set())

    async def cross_file(self, number: int) -> None:
        """A function gets another name, and the file that imports it is asked about."""
        name = f"shared_{number}"
        self._write_library(name)
        self._write_user(name)
        await self._seen(self._library)
        await self._seen(self._user)
        self._write_library("shared")
        await self._written(self._library)
        await self._judged("cross-file", self._user, {name})

    async def elsewhere(self, number: int) -> None:
        """The same; what the host's write of the library is answered with must name the file that it broke."""
        name = f"shared_{number}"
        self._write_library(name)
        await self._written(self._library)
        await self._seen(self._user)
        self._write_library("shared")
        record = self.bench.record("edit: broken elsewhere", self.fixture.language, self.name)
        await self.bench.timed(
            record, lambda: self.subject.ask("overwritten", [self._library, self._user]), lambda answer: name in answer
        )

    async def create(self, number: int) -> None:
        """A module that an import waits for appears, and goes again."""
        module, name = f"later_{number}", "late"
        named, grammar = re.compile(rf"\b{module}\b"), self.fixture.grammar
        self._write_user(name, module)
        await self._seen(self._user)
        text = grammar.function.format(name=name, body="value") + "\n"
        self.fixture.write(self.fixture.file(module), text)
        await self._written(self.fixture.file(module))
        await self._judged("created", self._user, set(), among=named)
        (self.fixture.root / self.fixture.file(module)).unlink()
        await self._judged("deleted", self._user, {module}, among=named)

    async def outside(self, number: int) -> None:
        """Somebody else writes the library; the subject is not told."""
        name = f"shared_{number}"
        self._write_library(name)
        self._write_user(name)
        await self._seen(self._user)
        self._write_library("shared")
        await self._judged("outside edit", self._user, {name})
        self._write_library(name)
        await self._written(self._library)
        await self._seen(self._user)

    @property
    def _main(self) -> str:
        return self.fixture.file("main")

    @property
    def _library(self) -> str:
        return self.fixture.file("library")

    @property
    def _user(self) -> str:
        return self.fixture.file("user")

    def _write_main(self, missing: str | None, remark: str = "") -> None:
        grammar = self.fixture.grammar
        lines = [grammar.comment.format(text=remark), grammar.function.format(name="main", body="value")]
        lines += [grammar.missing.format(name=missing)] if missing else []
        self.fixture.write(self._main, "\n".join(lines) + "\n")

    def _write_library(self, name: str) -> None:
        self.fixture.write(self._library, self.fixture.grammar.function.format(name=name, body="value") + "\n")

    def _write_user(self, name: str, module: str = "library") -> None:
        grammar = self.fixture.grammar
        lines = [grammar.importing.format(module=module, name=name), grammar.missing.format(name=name)]
        self.fixture.write(self._user, "\n".join(lines) + "\n")

    async def _written(self, file: str) -> None:
        await self._uncounted("written", file)

    async def _seen(self, file: str) -> None:
        """The subject knows the state before the edit."""
        await self._uncounted("shown", file)

    async def _uncounted(self, what: str, file: str) -> None:
        try:
            async with asyncio.timeout(self.bench.plan.patience):
                await self.subject.ask(what, file)
        except (TimeoutError, RuntimeError, OSError):
            self._silences += 1

    async def _judged(self, what: str, file: str, names: set[str], *, among: re.Pattern[str] = MISSING) -> None:
        record = self.bench.record(f"edit: {what}", self.fixture.language, self.name)
        way, started = "told" if what in TOLD else "shown", time.perf_counter()
        answered = await self.bench.timed(
            record, lambda: self.subject.ask(way, file), lambda answer: set(among.findall(answer)) == names
        )
        if answered and way == "told" and isinstance(self.subject, Library):
            heard = (self.subject.heard_at() - started) * 1000
            self.bench.figure(LAST_WORD.format(what), self.fixture.language, self.name, heard)
