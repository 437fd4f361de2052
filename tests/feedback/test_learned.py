"""What a server's publishes teach: longer waits at once, silence only after enough of it was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.feedback.settle import (
    ENOUGH,
    FIRST_GAP_SECONDS,
    LONGEST_GAP_SECONDS,
    MARGIN,
    Habits,
    Traits,
    heard_late,
    observed,
    traits_of,
    unheard,
)
from pilotfish.servers.spec import Freshness, Phases

SILENT = Freshness(publishes_unchanged=False)


def after(*changes: tuple[float, ...]) -> Habits:
    """The habits after changes at time 0 with publishes at these times."""
    habits = Habits()
    for publishes in changes:
        habits = observed(habits, sent_at=0.0, publishes=publishes)
    return habits


def test_nothing_learned_means_the_first_pause_and_that_silence_says_nothing() -> None:
    assert traits_of(SILENT, Habits()) == Traits(phases=Phases.UNKNOWN, silent_when_unchanged=True)


@pytest.mark.proves("DIAG-3")
@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        pytest.param([(0.1,)], FIRST_GAP_SECONDS, id="one publish shows no gap"),
        pytest.param([(0.1, 0.15)], FIRST_GAP_SECONDS, id="a gap so narrow that the first pause covers it"),
        pytest.param([(0.1, 0.24)], 0.14 * MARGIN, id="a wide gap counts at once"),
        pytest.param([(0.1, 0.24, 0.5)], 0.26 * MARGIN, id="the widest of one change"),
        pytest.param([(0.1, 0.24), (0.1, 0.2)], 0.14 * MARGIN, id="a narrower one later changes nothing"),
        pytest.param([(0.1, 0.9)], LONGEST_GAP_SECONDS, id="never longer than that"),
    ],
)
def test_the_pause_is_twice_the_widest_gap_ever_seen(changes: list[tuple[float, ...]], gap: float) -> None:
    assert traits_of(Freshness(), after(*changes)).gap_seconds == pytest.approx(gap)


@pytest.mark.parametrize(
    ("late", "gap"),
    [
        pytest.param(0.3, 0.3 * MARGIN, id="a late publish widens the pause"),
        pytest.param(LONGEST_GAP_SECONDS + 0.1, FIRST_GAP_SECONDS, id="one so late has another cause"),
    ],
)
def test_a_publish_after_the_pause_teaches_a_gap_that_the_pause_hid(late: float, gap: float) -> None:
    assert traits_of(Freshness(), heard_late(Habits(), late)).gap_seconds == pytest.approx(gap)


def test_a_late_publish_is_no_change_that_was_observed() -> None:
    assert heard_late(Habits(), 0.3).changes == 0


def test_silence_means_something_only_after_enough_changes_of_a_server_that_is_known_to_be_silent() -> None:
    few, enough = [(0.4,)] * (ENOUGH - 1), [(0.4,)] * (ENOUGH - 1) + [(0.7,)]
    assert traits_of(SILENT, after(*few)).silence_seconds is None
    assert traits_of(SILENT, after(*enough)).silence_seconds == pytest.approx(0.7 * MARGIN)
    assert traits_of(Freshness(), after(*enough)).silence_seconds is None
    assert traits_of(Freshness(publishes_unchanged=True), after(*enough)).silence_seconds is None


@pytest.mark.proves("DIAG-3")
def test_a_server_that_was_never_heard_is_learned_to_be_silent_unless_it_is_known_not_to_be() -> None:
    habits = after(*[(0.4,)] * ENOUGH)
    for _ in range(ENOUGH):
        assert traits_of(Freshness(), habits).silence_seconds is None
        habits = unheard(habits, spoke_later=False)
    assert traits_of(Freshness(), habits).silence_seconds == pytest.approx(0.4 * MARGIN)
    assert not traits_of(Freshness(), habits).silent_when_unchanged
    assert traits_of(Freshness(publishes_unchanged=True), habits).silence_seconds is None


def test_one_answer_that_came_late_takes_back_what_silence_had_taught() -> None:
    habits = after(*[(0.4,)] * ENOUGH)
    for _ in range(ENOUGH):
        habits = unheard(habits, spoke_later=False)
    assert traits_of(Freshness(), unheard(habits, spoke_later=True)).silence_seconds is None


def test_a_change_that_was_followed_by_nothing_is_not_one_of_them() -> None:
    assert after((), (), ()).changes == 0
    assert after((0.4,), ()).slowest == 0.4


@pytest.mark.parametrize(("debounce", "floor"), [(None, 0.0), (0, 0.0), (500, 0.25)])
def test_what_comes_within_half_of_the_servers_own_pause_is_too_soon(debounce: int | None, floor: float) -> None:
    assert traits_of(Freshness(debounce_ms=debounce), Habits()).floor_seconds == floor


@pytest.mark.parametrize("phases", Phases)
def test_the_phases_are_those_of_the_catalogue(phases: Phases) -> None:
    assert traits_of(Freshness(phases=phases), Habits()).phases is phases


rising = st.lists(st.floats(0.001, 2), max_size=4).map(lambda gaps: tuple(sum(gaps[: n + 1]) for n in range(len(gaps))))


@given(st.lists(rising, max_size=12))
def test_learning_never_makes_us_less_patient(changes: list[tuple[float, ...]]) -> None:
    pauses = [traits_of(SILENT, after(*changes[:number])).gap_seconds for number in range(len(changes) + 1)]
    assert pauses == sorted(pauses)
    assert all(FIRST_GAP_SECONDS <= pause <= LONGEST_GAP_SECONDS for pause in pauses)
    silences = [traits_of(SILENT, after(*changes[:number])).silence_seconds for number in range(len(changes) + 1)]
    known = [silence for silence in silences if silence is not None]
    assert known == sorted(known)
