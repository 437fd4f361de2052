"""Random schedules against honest servers of every kind: nothing stale is called fresh, nothing wrong is called clean.

`pytest tests/feedback/test_freshness_model.py --examples 100000` plays that many schedules: edits, crashes, writes by
others (also of ignored files that sources import), changes of the configuration and of installed packages, and faults
of the watcher. `bench/schedules.py` plays as many in a third of the time.
What the servers promise stands beside each kind in `support.servers.honest_kinds`; the oracle is
`support.oracles.freshness`. Where only a pause can tell (publishes without a version), the promise is that the server
is not slower than it (DIAG-3).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
from support.oracles.schedules import CANCELS, LONGEST_TAPE, MOST_STEPS, WAITS, apart
from support.servers.honest import CONFIGURATION, IGNORED, PACKAGE, Kind
from support.servers.honest_kinds import KINDS
from support.watching.virtual import Loss

IN_THE_GATE = 200
"""Of each kind of server: so many are the same ones in every gate, more are others each time."""

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
        derandomize=examples <= IN_THE_GATE,
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
    kind: Kind, root: Path, examples: int
) -> None:
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
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
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
