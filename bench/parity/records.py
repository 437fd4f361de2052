"""What a run is told to do (`Plan`), what it has seen (`Record`), and the bench on which it does so.

A record holds the times, or the single figures, of one subject in one measure. A subject that has no answer has a
`failure` that says why: nothing is ever filled in for it. Failures name no path of the machine.
"""

import asyncio
import os
import random
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import processes
from harness.servers import CLONE
from harness.setting import Setting

from parity.fixtures import Fixture, make
from parity.subjects import Kind, NotOffered, Scratch


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
    seconds: float
    """What one subject may take for the rounds of one operation, or of all edits; it has one round at least."""
    patience: float
    """How long one answer is waited for."""
    recovery: float
    """How long a subject may take to answer again after its server was killed or stopped."""
    touched: Sequence[int]
    """After how many touched files an edit is timed."""
    soak: int
    """Edits of one file, for what is kept of each."""
    hooks: int
    """Runs of the hook program."""
    turns: int
    """Calls of each tool in the agent loop."""
    peers_everywhere: bool
    """Whether other programs are started as often as ours, and lives looked at in more than one language."""
    languages: tuple[str, ...] = ("python", "typescript")


_PLANS = tomllib.loads(Path(__file__).with_name("plans.toml").read_text())
QUICK, WHOLE = Plan(**_PLANS["quick"]), Plan(**_PLANS["whole"])

STARTING = 5
"""How many times longer a first answer may take."""

SCALE = {"modules": 500, "functions": 50}
"""A workspace of 100,000 lines."""


@dataclass
class Record:
    """What one subject did in one measure."""

    measure: str
    language: str
    subject: str
    milliseconds: list[float] = field(default_factory=list[float])
    """Times; or figures in the unit of the measure, where it is no time."""
    wrong: int = 0
    unanswered: int = 0
    failure: str | None = None


@dataclass
class Bench:
    plan: Plan
    kinds: Sequence[Kind]
    scratch: Scratch
    records: list[Record] = field(default_factory=list[Record])
    broken: list[str] = field(default_factory=list[str])
    """The parts that did not come to their end, and why."""
    loads: list[float] = field(default_factory=lambda: [os.getloadavg()[0]])
    """Of the machine, before and after."""

    def record(self, measure: str, language: str, subject: str) -> Record:
        for known in self.records:
            if (known.measure, known.language, known.subject) == (measure, language, subject):
                return known
        self.records.append(Record(measure, language, subject))
        return self.records[-1]

    def figure(self, measure: str, language: str, subject: str, value: float) -> None:
        self.record(measure, language, subject).milliseconds.append(value)

    def fail(self, measures: Sequence[str], language: str, subject: str, why: object) -> None:
        """Said of every one of these measures that has no answer."""
        for measure in measures:
            record = self.record(measure, language, subject)
            if not record.milliseconds:
                record.failure = plain(why, self.scratch.root)

    def fixture(self, language: str, **size: int) -> Fixture:
        """A workspace that nobody else has, the same for everybody."""
        size = {"modules": self.plan.modules, "functions": self.plan.functions} | size
        root = self.scratch.fresh(f"{language}-workspace") / "workspace"
        return make(language, root, seed=self.plan.seed, **size)

    def kinds_for(self, language: str) -> list[Kind]:
        return [kind for kind in self.kinds if language in kind.languages]

    def in_turns(self, number: int, subjects: Sequence[Any]) -> list[Any]:
        """All of them, in an order that is another one in every round."""
        return random.Random(f"{self.plan.seed} {number}").sample(list(subjects), len(subjects))

    @asynccontextmanager
    async def opened(self, kind: Kind, fixture: Fixture) -> AsyncGenerator[Any]:
        """A subject that is ready to be asked; whatever it leaves behind is ended."""
        async with self.home(kind.name, fixture) as home, kind.open(fixture, home) as subject:
            yield subject

    @asynccontextmanager
    async def home(self, name: str, fixture: Fixture, *, trusted: bool = False) -> AsyncGenerator[Setting]:
        """A new user who works there; whatever is left of what that one started is ended."""
        home = self.scratch.home(name, fixture, trusted=trusted)
        try:
            yield home
        finally:
            processes.end(home)

    async def timed(
        self,
        record: Record,
        ask: Callable[[], Awaitable[object]],
        right: Callable[[str], bool],
        *,
        starts: bool = False,
    ) -> bool:
        """One answer, judged after the clock has stopped; False when there was none in time.

        What `starts` programs and servers first is waited for longer.
        """
        patience = self.plan.patience * (STARTING if starts else 1)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(patience):
                answer = await ask()
        except (TimeoutError, RuntimeError, OSError) as error:
            record.unanswered += 1
            record.failure = plain(error, self.scratch.root) or f"no answer in {patience:g} s"
            return False
        record.milliseconds.append((time.perf_counter() - started) * 1000)
        record.wrong += not right(str(answer))
        return True


def said(line: str) -> None:
    """Progress, for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def plain(why: object, scratch: Path | None = None) -> str:
    """A reason in one short line, without any path of this machine."""
    if isinstance(why, NotOffered):
        return f"not offered: {why}" if str(why) else "not offered"
    said = " ".join(str(why).split())
    for folder in (scratch, CLONE, Path.home(), Path(tempfile.gettempdir())):
        if folder is not None and len(folder.parts) > 1:
            said = said.replace(str(folder), "…")
    return re.sub(r"/(?:[\w.-]+/){2,}", "…/", said).replace("|", "/")[:160]
