"""Where the time of the hot paths goes: a warm definition and an edit, through the library, under the profiler.

The profiler makes Python's own calls dearer than they are, so shares between areas of Python count, not milliseconds;
the waiting is what it is. What a built-in function takes counts for the area of whoever calls it.
"""

import cProfile
import pstats
import re
from collections import defaultdict
from typing import cast

from parity import ours
from parity.fixtures import Fixture
from parity.records import Bench, Profile
from parity.subjects import CLONE, Kind, Subject

DEFINITION, EDIT = "warm definition", "edit → feedback"
WAITING = "waiting for the server"
WRITING = "writing to the server's pipe"
"""Where the kernel may let the server run at once, on the core of whoever woke it: some of it is waiting, too."""

ROWS = 12
BUILT_IN = "~"
"""How the profiler names the file of what is not Python."""

Place = tuple[str, int, str]
Stats = dict[Place, tuple[int, int, float, float, dict[Place, tuple[int, int, float, float]]]]
"""As the standard library keeps them: calls, calls that are no recursion, own time, whole time, the same per caller."""


async def profile(bench: Bench, language: str) -> None:
    fixture = bench.fixture(language)
    async with bench.opened(Kind("library", ours.library), fixture) as subject:
        calls = bench.plan.profiled
        for number in range(-calls // 10, 0):
            await subject.definition(fixture.places[number % len(fixture.places)])
        with cProfile.Profile() as found:
            for number in range(calls):
                await subject.definition(fixture.places[number % len(fixture.places)])
        bench.profiles.append(summed(DEFINITION, language, calls, found))
        await _edits(bench, fixture, subject)


async def _edits(bench: Bench, fixture: Fixture, subject: Subject) -> None:
    """The writing of the file is the host's, not ours."""
    file, calls, found = fixture.file("main"), max(4, bench.plan.profiled // 5), cProfile.Profile()
    for number in range(-1, calls):
        missing = fixture.grammar.missing.format(name=f"missing_{number}")
        fixture.write(file, f"{missing}\n" if number % 2 == 0 else "\n")
        if number >= 0:
            found.enable()
        await subject.told(file)
        found.disable()
    bench.profiles.append(summed(EDIT, fixture.language, calls, found))


def summed(path: str, language: str, calls: int, found: cProfile.Profile) -> Profile:
    """Milliseconds per call, by area and by function."""
    areas: dict[str, float] = defaultdict(float)
    functions: dict[str, float] = defaultdict(float)
    stats = cast("Stats", vars(pstats.Stats(found))["stats"])
    for place, (_, _, own, _, callers) in stats.items():
        shares = {caller: each[2] for caller, each in callers.items()} if place[0] == BUILT_IN else {}
        for caller, share in shares.items():
            areas[area(place, caller)] += share * 1000 / calls
        areas[area(place, place)] += (own - sum(shares.values())) * 1000 / calls
        functions[name(place)] += own * 1000 / calls
    return Profile(path, language, calls, _dearest(areas), _dearest(functions))


def _dearest(values: dict[str, float]) -> dict[str, float]:
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return {name: round(value, 4) for name, value in ordered[:ROWS] if value > 0.0005}


def area(place: Place, by: Place) -> str:
    """A package of ours, the loop, a library; what is not Python belongs to who calls it."""
    if is_waiting(place):
        return WAITING
    if place[2] == "<built-in method posix.write>":
        return WRITING
    file = by[0]
    if match := re.search(r"/src/pilotfish/(\w+)", file):
        return f"pilotfish.{match[1]}"
    if re.search(r"/site-packages/(\w+)", file):
        return re.findall(r"/site-packages/(\w+)", file)[0]
    if re.search(r"/(?:asyncio/|selectors\.py|contextvars)", file) or "_asyncio" in by[2]:
        return "event loop (asyncio)"
    if "/bench/" in file:
        return "the benchmark itself"
    return "standard library" if file != BUILT_IN else "built-in functions"


def is_waiting(place: Place) -> bool:
    return place[0] == BUILT_IN and "'poll' of 'select" in place[2]


def name(place: Place) -> str:
    """A function, without the machine's part of its path."""
    if is_waiting(place):
        return WAITING
    if place[0] == BUILT_IN:
        return place[2]
    file = place[0].replace(f"{CLONE}/", "")
    return f"{re.sub(r'.*/(?:site-packages|python3[.][0-9]+)/', '', file)}: {place[2]}"
