"""The verdict, row by row."""

from dataclasses import replace

import pytest

from pilotfish.feedback.settle import Asked, Behind, Facts, Fresh, GaveUp, Published, Traits, Verdict, Waiting, verdict
from pilotfish.servers.spec import Phases

SENT, NOW, DEADLINE = 100.0, 101.0, 103.0
FACTS = Facts(version=5, sent_at=SENT, ready=True, working=False, finished=False)
PHASED = Traits(phases=Phases.UNTIL_PROGRESS_ENDS)
QUIET = Traits(silent_when_unchanged=True)


def said(facts: Facts, traits: Traits | None = None, now: float = NOW) -> Verdict:
    return verdict(facts, traits or Traits(), now=now, deadline=DEADLINE)


def published(version: int | None, at: float = 100.5) -> Facts:
    return replace(FACTS, published=Published(version, at))


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
            replace(FACTS, asked=Asked.ANSWERED, working=True), PHASED, Waiting(DEADLINE), id="answered in mid-phase"
        ),
        pytest.param(published(5), None, Fresh(), id="published for this version"),
        pytest.param(published(6), None, Fresh(), id="published for a newer version"),
        pytest.param(published(4), None, Waiting(DEADLINE), id="published for an older version"),
        pytest.param(replace(published(5), working=True), PHASED, Waiting(DEADLINE), id="first of several phases"),
        pytest.param(replace(published(5), working=True), None, Fresh(), id="unrelated work of a one-phase server"),
        pytest.param(published(None, at=99.0), None, Waiting(DEADLINE), id="unversioned, before the change"),
        pytest.param(published(None, at=100.9), None, Waiting(100.9 + 0.15), id="unversioned, not settled"),
        pytest.param(published(None, at=100.8), None, Fresh(), id="unversioned, settled"),
        pytest.param(
            published(None, at=100.2),
            Traits(floor_seconds=0.25),
            Waiting(DEADLINE),
            id="unversioned, sooner than the server can be",
        ),
        pytest.param(
            replace(published(5), disturbed_at=100.9),
            None,
            Waiting(100.9 + 0.5),
            id="another file changed after the publish",
        ),
        pytest.param(
            replace(published(5), disturbed_at=100.5 + 1e-9),
            None,
            Waiting(101.0 + 1e-9),
            id="another file changed just after the publish",
        ),
        pytest.param(
            replace(published(5, at=100.2), disturbed_at=100.4),
            None,
            Fresh(assumed=True),
            id="another file changed, and nothing was said of this one since",
        ),
        pytest.param(
            replace(published(5), disturbed_at=100.9, barrier=Behind.PASSED),
            None,
            Waiting(100.9 + 0.5),
            id="another file changed, and a barrier says nothing about that",
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
        pytest.param(replace(FACTS, finished=True), QUIET, Fresh(), id="silence after its work has ended"),
        pytest.param(replace(FACTS, finished=True, working=True), QUIET, Waiting(DEADLINE), id="more work began"),
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
