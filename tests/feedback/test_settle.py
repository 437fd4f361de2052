"""The verdict, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.feedback.settle import (
    DISTURBED_SECONDS,
    Asked,
    Behind,
    Facts,
    Fresh,
    GaveUp,
    Published,
    Traits,
    Verdict,
    Waiting,
    verdict,
)
from pilotfish.servers.spec import Phases

SENT, NOW, DEADLINE = 100.0, 101.0, 103.0
FACTS = Facts(version=5, sent_at=SENT, ready=True, working=False, finished=False)
PHASED = Traits(phases=Phases.UNTIL_PROGRESS_ENDS)
QUIET = Traits(silent_when_unchanged=True)
VOIDING = Traits(phases=Phases.AFTER_PROGRESS)
WITHIN = Traits(phases=Phases.WITHIN_PROGRESS)
NAMING = Traits(names_versions=True)
AT_ONCE = Traits(floor_seconds=0.25, floor_for_opened=False)


def said(facts: Facts, traits: Traits | None = None, now: float = NOW) -> Verdict:
    return verdict(facts, traits or Traits(), now=now, deadline=DEADLINE)


def published(version: int | None, at: float = 100.5) -> Facts:
    return replace(FACTS, published=Published(version, at))


def within(begun: float, *, alone: bool = True) -> Facts:
    return replace(FACTS, published=Published(5, 100.5, within=begun, alone=alone), ended_at=100.6)


@pytest.mark.proves("DIAG-2", "C85")
@pytest.mark.parametrize(
    ("facts", "traits", "expected"),
    [
        pytest.param(replace(FACTS, asked=Asked.ANSWERED), None, Fresh(), id="asked and answered"),
        pytest.param(replace(FACTS, asked=Asked.PENDING), None, Waiting(DEADLINE), id="asked, no answer yet"),
        pytest.param(replace(FACTS, asked=Asked.EXPECTED), None, Waiting(DEADLINE), id="may be asked soon"),
        pytest.param(
            replace(FACTS, asked=Asked.PENDING, published=Published(5, 100.5)),
            None,
            Waiting(DEADLINE),
            id="a publish does not replace our own question",
        ),
        pytest.param(
            replace(FACTS, asked=Asked.ANSWERED, working=True), PHASED, Fresh(), id="answered while it publishes"
        ),
        pytest.param(
            replace(FACTS, asked=Asked.ANSWERED, working=True), VOIDING, Waiting(DEADLINE), id="answered while it loads"
        ),
        pytest.param(published(5), None, Fresh(), id="published for this version"),
        pytest.param(published(6), None, Fresh(), id="published for a newer version"),
        pytest.param(published(4), None, Waiting(DEADLINE), id="published for an older version"),
        pytest.param(replace(published(5), working=True), PHASED, Waiting(DEADLINE), id="first of several phases"),
        pytest.param(replace(published(5), working=True), None, Fresh(), id="unrelated work of a one-phase server"),
        pytest.param(published(None, at=99.0), None, Waiting(DEADLINE), id="unversioned, before the change"),
        pytest.param(published(None), NAMING, Fresh(assumed=True), id="unversioned, where versions are named"),
        pytest.param(replace(published(None), opened=True), NAMING, Fresh(), id="the same of an opened file"),
        pytest.param(
            replace(published(None), opened=True, on_disk=False),
            NAMING,
            Waiting(DEADLINE),
            id="unversioned, of the file and not of a text that is proposed for it",
        ),
        pytest.param(published(None, at=100.9), None, Waiting(100.9 + 0.15), id="unversioned, not settled"),
        pytest.param(published(None, at=100.8), None, Fresh(), id="unversioned, settled"),
        pytest.param(
            published(None, at=100.2),
            Traits(floor_seconds=0.25),
            Waiting(DEADLINE),
            id="unversioned, sooner than the server can be",
        ),
        pytest.param(
            replace(published(None, at=100.2), opened=True),
            AT_ONCE,
            Fresh(),
            id="opened, and it speaks at once of that",
        ),
        pytest.param(
            replace(published(None, at=100.8), opened=True), AT_ONCE, Waiting(100.8 + 0.25), id="opened, not settled"
        ),
        pytest.param(published(None, at=100.2), AT_ONCE, Waiting(DEADLINE), id="changed, and it pauses"),
        pytest.param(
            replace(published(None, at=100.2), opened=True),
            Traits(floor_seconds=0.25),
            Waiting(DEADLINE),
            id="opened, and it pauses for that too",
        ),
        pytest.param(
            replace(published(None), ended_at=100.6),
            VOIDING,
            Waiting(DEADLINE),
            id="unversioned, before its work ended",
        ),
        pytest.param(replace(published(5), ended_at=100.6), VOIDING, Waiting(DEADLINE), id="and so with a version"),
        pytest.param(replace(published(None), ended_at=100.4), VOIDING, Fresh(), id="published after its work"),
        pytest.param(within(100.1), WITHIN, Fresh(), id="published in work that began after the change"),
        pytest.param(
            within(100.1, alone=False), WITHIN, Waiting(100.6 + DISTURBED_SECONDS), id="a change came into that work"
        ),
        pytest.param(within(99.9), WITHIN, Waiting(DEADLINE), id="published in work that had begun before"),
        pytest.param(published(5), WITHIN, Waiting(DEADLINE), id="published outside of work"),
        pytest.param(replace(within(100.1), working=True), WITHIN, Waiting(DEADLINE), id="it is at work again"),
        pytest.param(replace(published(None), working=True), VOIDING, Waiting(DEADLINE), id="it has begun anew"),
        pytest.param(replace(published(None), ended_at=100.6), None, Fresh(), id="its work has nothing to do with it"),
        pytest.param(
            replace(published(5, at=100.95), disturbed_at=100.9, stirred_at=97.8),
            None,
            Fresh(),
            id="published after another file changed, and long after anything else",
        ),
        pytest.param(
            replace(published(5, at=100.95), disturbed_at=100.9, stirred_at=98.0),
            None,
            Waiting(100.9 + DISTURBED_SECONDS),
            id="published after another file changed, but it may be an echo",
        ),
        pytest.param(
            replace(published(5, at=100.95), disturbed_at=100.9),
            None,
            Waiting(100.9 + DISTURBED_SECONDS),
            id="published after another file changed, and never settled before",
        ),
        pytest.param(
            replace(published(5), disturbed_at=100.9, stirred_at=0.0),
            None,
            Waiting(100.9 + DISTURBED_SECONDS),
            id="another file changed after the publish",
        ),
        pytest.param(
            replace(published(5, at=100.1), disturbed_at=100.4, stirred_at=0.0),
            None,
            Fresh(assumed=True),
            id="another file changed, and nothing was said of this one since",
        ),
        pytest.param(
            replace(published(5, at=100.1), disturbed_at=100.9, barrier=Behind.PASSED),
            None,
            Waiting(100.9 + DISTURBED_SECONDS),
            id="another file changed, and the barrier says nothing about it",
        ),
        pytest.param(
            replace(published(None, at=100.1), disturbed_at=100.7),
            None,
            Waiting(100.7 + DISTURBED_SECONDS),
            id="unversioned, before another file changed",
        ),
        pytest.param(
            replace(published(None, at=100.8), disturbed_at=100.7),
            None,
            Fresh(),
            id="unversioned, after another file changed, settled",
        ),
        pytest.param(
            replace(published(None, at=100.8), disturbed_at=100.7),
            Traits(floor_seconds=0.2),
            Waiting(100.7 + DISTURBED_SECONDS),
            id="unversioned, sooner after another file changed than the server can be",
        ),
        pytest.param(
            replace(published(None, at=100.5), barrier=Behind.PENDING),
            None,
            Waiting(DEADLINE),
            id="unversioned, settled, but the barrier is not passed",
        ),
        pytest.param(
            replace(published(None, at=100.99), barrier=Behind.PASSED),
            None,
            Fresh(),
            id="unversioned, behind the barrier",
        ),
        pytest.param(FACTS, None, Waiting(DEADLINE), id="silence of a server that always publishes"),
        pytest.param(replace(FACTS, barrier=Behind.PASSED), QUIET, Fresh(), id="silence behind the barrier"),
        pytest.param(replace(FACTS, barrier=Behind.PENDING), QUIET, Waiting(DEADLINE), id="barrier not passed"),
        pytest.param(
            replace(FACTS, barrier=Behind.PASSED),
            None,
            Waiting(DEADLINE),
            id="barrier passed, but it always publishes: its publish is on its way",
        ),
        pytest.param(
            replace(FACTS, barrier=Behind.PASSED, disturbed_at=100.9),
            QUIET,
            Waiting(100.9 + DISTURBED_SECONDS),
            id="silence behind the barrier, and another file changed",
        ),
        pytest.param(replace(FACTS, finished=True), QUIET, Fresh(assumed=True), id="silence after some work has ended"),
        pytest.param(replace(FACTS, finished=True, working=True), QUIET, Waiting(DEADLINE), id="more work began"),
        pytest.param(
            replace(FACTS, finished=True, barrier=Behind.PENDING),
            QUIET,
            Waiting(DEADLINE),
            id="some work has ended, and a barrier is still to come",
        ),
        pytest.param(
            replace(FACTS, barrier=Behind.PENDING),
            Traits(silence_seconds=0.1),
            Waiting(DEADLINE),
            id="silence for long enough, and a barrier is still to come",
        ),
        pytest.param(
            FACTS, replace(QUIET, silence_seconds=0.9), Fresh(assumed=True), id="silence for longer than ever"
        ),
        pytest.param(FACTS, replace(QUIET, silence_seconds=1.5), Waiting(101.5), id="silence, not long enough"),
        pytest.param(FACTS, QUIET, Waiting(DEADLINE), id="silence, nothing learned"),
        pytest.param(replace(published(5), ready=False), None, Waiting(DEADLINE), id="nothing counts while it loads"),
        pytest.param(
            replace(FACTS, asked=Asked.ANSWERED, ready=False), None, Waiting(DEADLINE), id="nor does its answer"
        ),
    ],
)
def test_verdict_before_the_deadline(facts: Facts, traits: Traits | None, expected: Verdict) -> None:
    assert said(facts, traits) == expected


@pytest.mark.proves("C86", "DIAG-2")
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(FACTS, ready=False), "still loading"),
        (replace(FACTS, asked=Asked.PENDING), "not answered"),
        (replace(FACTS, asked=Asked.EXPECTED), "not offer its diagnostics yet"),
        (replace(published(5), working=True), "still working"),
        (published(4), "said nothing about this text"),
    ],
)
def test_a_time_out_is_no_verdict_and_says_why(facts: Facts, why: str) -> None:
    gave_up = said(facts, PHASED, now=DEADLINE)
    assert isinstance(gave_up, GaveUp)
    assert why in gave_up.why


@pytest.mark.proves("DIAG-3")
def test_the_settling_pause_never_passes_the_deadline_and_is_then_said_to_be_assumed() -> None:
    late = published(None, at=DEADLINE - 0.05)
    assert said(late, now=DEADLINE - 0.01) == Waiting(DEADLINE)
    assert said(late, now=DEADLINE) == Fresh(assumed=True)


@pytest.mark.proves("C86")
def test_what_is_assumed_is_given_before_the_deadline_and_not_because_of_it() -> None:
    disturbed = replace(published(5, at=DEADLINE - 0.3), disturbed_at=DEADLINE - 0.2)
    assert said(disturbed, now=DEADLINE - 0.01) == Waiting(DEADLINE)
    assert isinstance(said(disturbed, now=DEADLINE), GaveUp)


times = st.floats(90, 110)
channels = st.none() | st.builds(Published, version=st.none() | st.integers(3, 7), at=times)
any_facts = st.builds(
    Facts,
    version=st.just(5),
    sent_at=st.just(SENT),
    ready=st.booleans(),
    working=st.booleans(),
    finished=st.booleans(),
    ended_at=times,
    opened=st.booleans(),
    asked=st.sampled_from(Asked),
    published=channels,
    barrier=st.sampled_from(Behind),
    disturbed_at=st.none() | times,
    stirred_at=times,
)
any_traits = st.builds(
    Traits,
    phases=st.sampled_from(Phases),
    floor_seconds=st.sampled_from((0.0, 0.25)),
    floor_for_opened=st.booleans(),
    gap_seconds=st.sampled_from((0.15, 0.6)),
    silent_when_unchanged=st.booleans(),
    silence_seconds=st.none() | st.floats(0, 2),
)


@pytest.mark.proves("DIAG-2", "C84", "C85", "C86")
@given(any_facts, any_traits, times)
def test_whatever_the_facts_are_the_invariants_hold(facts: Facts, traits: Traits, now: float) -> None:
    verdict_now = verdict(facts, traits, now=now, deadline=DEADLINE)
    if isinstance(verdict_now, Waiting):
        assert now < verdict_now.until <= DEADLINE
    if isinstance(verdict_now, GaveUp):
        assert now >= DEADLINE
        assert verdict_now.why
    if isinstance(verdict_now, Fresh):
        assert facts.ready
        assert facts.asked in {Asked.ANSWERED, Asked.IMPOSSIBLE}
    if verdict_now == Fresh() and facts.asked is Asked.IMPOSSIBLE:
        assert _has_sign(facts)


def _has_sign(facts: Facts) -> bool:
    """A publish that can be about this text, or the barrier."""
    published_now = facts.published
    is_older = published_now is None or (published_now.version is not None and published_now.version < facts.version)
    return facts.barrier is Behind.PASSED or not is_older


@given(any_facts, any_traits, times, times)
def test_waiting_longer_never_takes_back_a_verdict(facts: Facts, traits: Traits, one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    before = verdict(facts, traits, now=earlier, deadline=DEADLINE)
    if before == Fresh():
        assert verdict(facts, traits, now=later, deadline=DEADLINE) == Fresh()
