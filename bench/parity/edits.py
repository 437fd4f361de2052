"""Every kind of edit; the time is that of the first answer about it, and so is its rightness.

An answer is right if it names just what is missing now: no error that is gone, none that is not there yet.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from parity.fixtures import MISSING, Fixture
from parity.peers import NotOffered
from parity.records import Bench
from parity.subjects import Library, Subject

KINDS = ("introduce", "fix", "no-op", "cross-file", "broken elsewhere", "created", "deleted", "outside edit")
ALL = tuple(f"edit: {kind}" for kind in KINDS)
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
                self.bench.fail(ALL, self.fixture.language, self.name, why)
                return False
        return True

    def _has_struck_out(self) -> bool:
        records = [self.bench.record(kind, self.fixture.language, self.name) for kind in ALL]
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
