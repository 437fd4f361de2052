"""Schedules of the model of freshness, drawn from a seed: far faster than Hypothesis draws them, and not shrunk."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from support.oracles.freshness import TEXTS, Crash, Edit, Foreign, Input, Lose, Schedule, Step, seed_scheduling
from support.servers.honest import CONFIGURATION, IGNORED, PACKAGE, Kind
from support.servers.honest_kinds import KINDS
from support.watching.virtual import Loss

WAITS = (0.0005, 0.001, 0.003, 0.02, 0.06, 0.12, 0.2, 0.4, 0.8, 1.5, 3.5, 6.0)
"""Between two steps; around every limit that the code knows, and so that no two steps fall on one moment."""

CANCELS = (0.0007, 0.1, 1.0)

MOVES = ("edit", "edit", "edit", "edit", "edit", "crash", "write", "write", "ignored", "input", "lose")

MOST_STEPS, LONGEST_TAPE = 8, 40


def numbered(seed: int, number: int) -> Schedule:
    """The schedule of this number, of the kinds of servers in turn. The scheduler is seeded, to play it alike again."""
    random = Random(f"{seed} {number}")
    seed_scheduling(random.random())
    return drawn(KINDS[number % len(KINDS)], random)


def drawn(kind: Kind, random: Random) -> Schedule:
    steps = [_step(random) for _ in range(random.randint(1, MOST_STEPS))]
    highest = random.choice((5, 23))
    tape = [random.randint(0, highest) for _ in range(random.randint(1, LONGEST_TAPE))]
    return Schedule(kind, apart(steps), tape)


def apart(steps: Sequence[Step]) -> list[Step]:
    """No two steps wait equally long, so what happens at one moment belongs to one step."""
    return [replace(step, wait=step.wait + number * 1e-5) for number, step in enumerate(steps)]


def _step(random: Random) -> Step:
    wait = random.choice(WAITS)
    match random.choice(MOVES):
        case "edit":
            return _edit(wait, random)
        case "crash":
            return Crash(wait)
        case "write":
            names = random.sample("abc", random.randint(1, 2))
            return Foreign(wait, {name: random.randrange(len(TEXTS)) for name in names})
        case "ignored":
            return Foreign(wait, {IGNORED: random.randrange(3)})
        case "input":
            return Input(wait, random.choice((CONFIGURATION, PACKAGE)), random.randrange(2))
        case _:
            return Lose(wait, random.choice(tuple(Loss)))


def _edit(wait: float, random: Random) -> Edit:
    names = random.sample("abc", random.choice((1, 1, 1, 2, 2, 3)))
    files = {name: random.choice((None, *range(len(TEXTS)))) for name in names}
    cancel = random.choice(CANCELS) if random.random() < 1 / 4 else None
    return Edit(wait, files, cancel, given=random.random() < 1 / 2)
