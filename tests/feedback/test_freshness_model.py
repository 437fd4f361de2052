"""Random schedules against honest servers of every kind: nothing stale is called fresh, nothing wrong is called clean.

Schedules of edits, crashes, writes by others (also of ignored files that sources import), changes of the configuration
and of installed packages, and faults of the watcher. The gate plays the same 2,000 each time, and some by Hypothesis,
which makes a failure small: `--examples 10000` plays that many others. `bench/schedules.py` plays any number, three
times as fast.
What the servers promise stands beside each kind in `support.servers.honest_kinds`; the oracle is
`support.oracles.freshness`. Where only a pause can tell (publishes without a version), the promise is that the server
is not slower than it (DIAG-3).
"""

import gc
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from support.oracles.found import FOUND
from support.oracles.freshness import (
    TEXTS,
    Checked,
    Crash,
    Edit,
    Foreign,
    Input,
    Lose,
    Schedule,
    World,
    make_ground,
    play,
    seed_scheduling,
    wrong,
)
from support.oracles.schedules import CANCELS, LONGEST_TAPE, MOST_STEPS, WAITS, apart, drawn, numbered
from support.servers.honest import CONFIGURATION, IGNORED, PACKAGE, Kind
from support.servers.honest_kinds import KINDS, MORE_KINDS
from support.watching.virtual import Loss

IN_THE_GATE, SEED = 2_002, 13
"""Schedules, of all kinds of servers in turn: some 30 s on one core."""

DERANDOMIZED = 10
"""Of each kind of server: so many by Hypothesis are the same ones each time, more are others."""

SCHEDULINGS = 8
"""Of each schedule that was found: tasks that are ready at one moment run in either order."""

texts = st.none() | st.integers(0, len(TEXTS) - 1)
edits = st.builds(
    Edit,
    wait=st.sampled_from(WAITS),
    files=st.dictionaries(st.sampled_from("abc"), texts, min_size=1, max_size=3),
    cancel_after=st.none() | st.none() | st.none() | st.sampled_from(CANCELS),
    given=st.booleans(),
)
crashes = st.builds(Crash, wait=st.sampled_from(WAITS))
foreign_texts = st.dictionaries(st.sampled_from("abc"), st.integers(0, len(TEXTS) - 1), min_size=1, max_size=2)
foreign = st.builds(Foreign, wait=st.sampled_from(WAITS), files=foreign_texts)
ignored = st.builds(
    Foreign, wait=st.sampled_from(WAITS), files=st.dictionaries(st.just(IGNORED), st.integers(0, 2), min_size=1)
)
inputs = st.builds(
    Input, wait=st.sampled_from(WAITS), name=st.sampled_from((CONFIGURATION, PACKAGE)), text=st.integers(0, 1)
)
losses = st.builds(Lose, wait=st.sampled_from(WAITS), loss=st.sampled_from(tuple(Loss)))
moves = st.one_of(edits, edits, edits, edits, edits, crashes, foreign, foreign, ignored, inputs, losses)
steps = st.lists(moves, min_size=1, max_size=MOST_STEPS)
tapes = st.lists(st.integers(0, 23), min_size=1, max_size=LONGEST_TAPE) | st.lists(
    st.integers(0, 5), max_size=LONGEST_TAPE
)


def schedules(kind: Kind) -> st.SearchStrategy[Schedule]:
    return st.builds(Schedule, kind=st.just(kind), steps=steps.map(apart), tape=tapes)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model").resolve()
    make_ground(folder)
    return folder


def explore(examples: int, strategy: st.SearchStrategy[Schedule], judge: Callable[[Schedule], None]) -> None:
    # Another seed for the scheduler in each example: tasks that are ready at one moment run in either order.
    @settings(
        max_examples=examples,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
        print_blob=True,
        derandomize=examples <= max(DERANDOMIZED, 20),
    )
    @given(schedule=strategy, _scheduling=st.random_module())
    def property_(schedule: Schedule, _scheduling: object) -> None:
        judge(schedule)

    property_()


@pytest.mark.slow
@pytest.mark.proves("P7", "P8", "DIAG-2", "DIAG-10", "C84", "C85", "C86", "F93", "F94", "F96", "F100")
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_called_fresh_is_what_the_server_says_of_that_text_or_a_newer_one(
    kind: Kind, root: Path, no_collections: None
) -> None:
    for number in range(KINDS.index(kind), IN_THE_GATE, len(KINDS)):
        schedule = numbered(SEED, number)
        assert wrong(play(schedule, str(root))) == [], f"number {number}: {schedule}"


@pytest.mark.slow
@pytest.mark.proves("P7", "P8", "DIAG-2", "DIAG-3", "C85")
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", MORE_KINDS, ids=lambda kind: kind.name)
def test_so_it_is_of_kinds_that_were_found_later(kind: Kind, root: Path, no_collections: None) -> None:
    for number in range(IN_THE_GATE // len(KINDS)):
        random = Random(f"{SEED} {kind.name} {number}")
        seed_scheduling(random.random())
        schedule = drawn(kind, random)
        assert wrong(play(schedule, str(root))) == [], f"number {number}: {schedule}"


@pytest.fixture
def no_collections() -> Generator[None]:
    """A fifth of the time goes into collections of garbage otherwise."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@pytest.mark.slow
@pytest.mark.proves("P7", "P8")
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", [*KINDS, *MORE_KINDS], ids=lambda kind: kind.name)
def test_so_it_is_in_schedules_that_can_be_made_small(kind: Kind, root: Path, examples: int) -> None:
    def judge(schedule: Schedule) -> None:
        world = play(schedule, str(root))
        for checked in world.checked:
            event(_word(checked))
        assert wrong(world) == []

    explore(max(1, examples // len(KINDS)), schedules(kind), judge)


@pytest.mark.proves("P7", "P8")
@pytest.mark.parametrize("schedule", FOUND.values(), ids=FOUND)
def test_what_was_answered_wrongly_once_is_not_again(schedule: Schedule, root: Path) -> None:
    for number in range(SCHEDULINGS):
        seed_scheduling(number)
        assert wrong(play(schedule, str(root))) == []


def _word(checked: Checked) -> str:
    outcome = checked.outcome
    if outcome.diagnostics is None:
        return "no verdict"
    return "fresh" if outcome.is_fresh else "assumed"


@pytest.mark.proves("DIAG-2", "C85")
# Without the one in rounds: a text that is sent while one of them is under way may end it, so the other is assumed.
@pytest.mark.parametrize("kind", [*KINDS, *MORE_KINDS[:-1]], ids=lambda kind: kind.name)
def test_a_prompt_server_that_nothing_happens_to_is_believed(kind: Kind, root: Path) -> None:
    """The other half: who always says "I do not know" is never wrong either."""

    def judge(schedule: Schedule) -> None:
        edits_only = [replace(step, wait=6.0, cancel_after=None) for step in schedule.steps if isinstance(step, Edit)]
        world = play(Schedule(kind, apart(edits_only), [number % 2 for number in schedule.tape]), str(root))
        assert wrong(world) == []
        assert {_word(checked) for checked in world.checked if _is_certain(checked, world)} <= {"fresh"}

    explore(20, schedules(kind), judge)


def _is_certain(checked: Checked, world: World) -> bool:
    """A question, or a text that is new to the server: then there is a sign. Else nothing may have been said."""
    known = [other.order for other in world.checked if other.path == checked.path and other.began < checked.began]
    texts_known = [world.edits[checked.path][order] for order in known[-1:]]
    return world.kind.asked or world.edits[checked.path][checked.order] not in texts_known
