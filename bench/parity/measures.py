"""What is measured. Each measure opens the subjects, does the same to all in turn, and returns records of times.

An answer is right if it names what the fixture says it must, on the first call. A subject that does not answer within
`Plan.patience` has not answered: its time is not counted as a time, but as an unanswered call.
"""

import asyncio
import random
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from parity.fixtures import Fixture, Place, make
from parity.subjects import Kind, NotOffered, Scratch, Subject

MISSING = re.compile(r"\b(?:missing|shared)_\d+")


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    seed: int
    modules: int
    functions: int
    cold: int
    """Starts of each subject."""
    warm: int
    """Rounds of each operation."""
    edits: int
    """Rounds of each kind of edit."""
    patience: float
    languages: tuple[str, ...] = ("python", "typescript")


QUICK = Plan(seed=1, modules=20, functions=6, cold=2, warm=60, edits=4, patience=8.0)
WHOLE = Plan(seed=1, modules=500, functions=8, cold=5, warm=500, edits=20, patience=35.0)


@dataclass
class Record:
    """What one subject did in one measure."""

    measure: str
    language: str
    subject: str
    milliseconds: list[float] = field(default_factory=list[float])
    wrong: int = 0
    unanswered: int = 0
    failure: str | None = None


@dataclass
class Bench:
    plan: Plan
    kinds: Sequence[Kind]
    scratch: Scratch
    records: list[Record] = field(default_factory=list[Record])

    def record(self, measure: str, language: str, subject: str) -> Record:
        for known in self.records:
            if (known.measure, known.language, known.subject) == (measure, language, subject):
                return known
        self.records.append(Record(measure, language, subject))
        return self.records[-1]

    def fixture(self, language: str) -> Fixture:
        """A workspace that nobody else has, the same for everybody."""
        plan = self.plan
        root = self.scratch.fresh(f"{language}-workspace") / "workspace"
        return make(language, root, seed=plan.seed, modules=plan.modules, functions=plan.functions)

    def kinds_for(self, language: str) -> list[Kind]:
        return [kind for kind in self.kinds if language in kind.languages]

    async def timed(self, record: Record, ask: Callable[[], Awaitable[str]], right: Callable[[str], bool]) -> None:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.plan.patience):
                answer = await ask()
        except TimeoutError:
            record.unanswered += 1
        except RuntimeError as error:
            record.unanswered += 1
            record.failure = str(error)[:200]
        else:
            record.milliseconds.append((time.perf_counter() - started) * 1000)
            record.wrong += not right(answer)


async def cold(bench: Bench, language: str) -> None:
    """From nothing to the first definition."""
    for _ in range(bench.plan.cold):
        for kind in bench.kinds_for(language):
            fixture, record = bench.fixture(language), bench.record("cold definition", language, kind.name)
            place = fixture.places[0]

            async def ask(kind: Kind = kind, fixture: Fixture = fixture, place: Place = place) -> str:
                async with kind.open(fixture, bench.scratch.fresh(kind.name)) as subject:
                    return await subject.definition(place)

            await _unless_not_offered(
                bench.timed(record, ask, lambda answer, place=place: is_definition(place, answer))
            )
            shutil.rmtree(fixture.root.parent)


async def warm(bench: Bench, language: str) -> None:
    """Every operation on servers that have seen all of it, all subjects in turns."""
    async with AsyncExitStack() as stack:
        opened = [await _opened(bench, stack, kind, language) for kind in bench.kinds_for(language)]
        subjects = [one for one in opened if one is not None]
        for operation in ("definition", "references", "hover", "symbols"):
            await _rounds(bench, language, operation, subjects)
        await edits(bench, language, subjects)


async def _opened(
    bench: Bench, stack: AsyncExitStack, kind: Kind, language: str
) -> tuple[Kind, Fixture, Subject] | None:
    fixture = bench.fixture(language)
    try:
        async with asyncio.timeout(120):
            subject = await stack.enter_async_context(kind.open(fixture, bench.scratch.fresh(kind.name)))
    except (TimeoutError, RuntimeError, OSError) as error:
        bench.record("warm definition", language, kind.name).failure = f"did not start: {error}"[:200]
        return None
    return kind, fixture, subject


async def _rounds(
    bench: Bench, language: str, operation: str, subjects: Sequence[tuple[Kind, Fixture, Subject]]
) -> None:
    chance = random.Random(bench.plan.seed)
    warming = max(5, bench.plan.warm // 10)
    for number in range(-warming, bench.plan.warm):
        turn = random.Random(number).sample(list(subjects), len(subjects))
        index = chance.randrange(len(turn[0][1].places)) if turn else 0
        for kind, fixture, subject in turn:
            record = bench.record(f"warm {operation}", language, kind.name)
            if record.failure is not None and not record.milliseconds:
                continue
            # What a first answer costs is another measure.
            counted = record if number >= 0 else Record("", "", "")
            place = fixture.places[index]
            asked = _asked(subject, operation, place)
            if not await _unless_not_offered(
                bench.timed(counted, asked, lambda answer, place=place: is_right(operation, place, answer))
            ):
                record.failure = "not offered"
            elif counted.failure is not None:
                record.failure = counted.failure


def _asked(subject: Subject, operation: str, place: Place) -> Callable[[], Awaitable[str]]:
    if operation == "symbols":
        return lambda: subject.symbols(place.file)
    return lambda: getattr(subject, operation)(place)


async def _unless_not_offered(work: Awaitable[Any]) -> bool:
    try:
        await work
    except NotOffered:
        return False
    return True


# --- Edits ---------------------------------------------------------------------------------------------------------


async def edits(bench: Bench, language: str, subjects: Sequence[tuple[Kind, Fixture, Subject]]) -> None:
    """Every kind of edit; the time is that of the first answer about it, and so is its rightness."""
    for number in range(bench.plan.edits):
        for kind, fixture, subject in random.Random(number).sample(list(subjects), len(subjects)):
            hand = Hand(bench, language, kind, fixture, subject)
            try:
                for step in (hand.introduce, hand.fix, hand.change_nothing, hand.cross_file, hand.create, hand.outside):
                    await step(number)
            except NotOffered:
                bench.record("edit: introduce", language, kind.name).failure = "not offered"


@dataclass
class Hand:
    """One pair of hands at one subject's workspace."""

    bench: Bench
    language: str
    kind: Kind
    fixture: Fixture
    subject: Subject

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
        await self.subject.written(self._user)
        await self._warmed(self._user)
        self._write_library("shared")
        await self.subject.written(self._library)
        await self._judged("cross-file", self._user, {name})

    async def create(self, number: int) -> None:
        """A module that an import waits for appears, and goes again."""
        module, name = f"later_{number}", "late"
        named, grammar = re.compile(rf"\b{module}\b"), self.fixture.grammar
        self._write_user(name, module)
        await self._warmed(self._user)
        text = grammar.function.format(name=name, body="value") + "\n"
        self.fixture.write(self.fixture.file(module), text)
        await self.subject.written(self.fixture.file(module))
        await self._judged("created", self._user, set(), among=named)
        (self.fixture.root / self.fixture.file(module)).unlink()
        await self._judged("deleted", self._user, {module}, among=named)

    async def outside(self, number: int) -> None:
        """Somebody else writes the library; the subject is not told."""
        name = f"shared_{number}"
        self._write_library(name)
        self._write_user(name)
        await self._warmed(self._user)
        self._write_library("shared")
        await self._judged("outside edit", self._user, {name})

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

    async def _warmed(self, file: str) -> None:
        """Not counted: the state before the edit is known to the subject."""
        try:
            async with asyncio.timeout(self.bench.plan.patience):
                await self._seen(file)
        except (TimeoutError, RuntimeError):
            pass

    async def _seen(self, file: str) -> str:
        try:
            return await self.subject.diagnostics(file)
        except NotOffered:
            return await self.subject.told(file)

    async def _judged(self, what: str, file: str, names: set[str], *, among: re.Pattern[str] = MISSING) -> None:
        record = self.bench.record(f"edit: {what}", self.language, self.kind.name)

        def right(answer: str) -> bool:
            return set(among.findall(answer)) == names

        told = what in {"introduce", "fix", "no-op"}
        await self.bench.timed(record, lambda: self.subject.told(file) if told else self._seen(file), right)


# --- What is right -------------------------------------------------------------------------------------------------


def is_right(operation: str, place: Place, answer: str) -> bool:
    if operation == "definition":
        return is_definition(place, answer)
    if operation == "references":
        return place.target in answer
    return place.name in answer or operation == "symbols"


def is_definition(place: Place, answer: str) -> bool:
    """The file, and its line counted from 0 or from 1."""
    return (
        place.target in answer
        and re.search(rf"\b(?:{place.target_line}|{place.target_line + 1})\b", answer) is not None
    )
