"""The table of a connection's life, row by row."""

import pytest

from pilotfish.errors import Bug
from pilotfish.protocol.lifecycle import STEPS, TRANSITIONS, Lifecycle, Phase, Step


def at(phase: Phase) -> Lifecycle:
    lifecycle = Lifecycle()
    lifecycle.phase = phase
    return lifecycle


MOVES = [(phase, step, following) for phase, steps in TRANSITIONS.items() for step, following in steps.items()]


@pytest.mark.parametrize(("phase", "step", "following"), MOVES)
def test_a_listed_step_moves_on(phase: Phase, step: Step, following: Phase) -> None:
    lifecycle = at(phase)
    lifecycle.advance(step)
    assert lifecycle.phase is following


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("step", Step)
def test_a_step_that_is_not_listed_is_a_bug(phase: Phase, step: Step) -> None:
    if step in TRANSITIONS[phase]:
        return
    with pytest.raises(Bug, match=f"{step.value} while the connection is {phase.value}"):
        at(phase).advance(step)


@pytest.mark.proves("C26", "C32", "C37")
@pytest.mark.parametrize(
    ("phase", "method", "allowed"),
    [
        (Phase.SPAWNED, "initialize", True),
        (Phase.SPAWNED, "textDocument/didOpen", False),
        (Phase.SPAWNED, "initialized", False),
        (Phase.INITIALIZING, "textDocument/didOpen", False),
        (Phase.INITIALIZING, "initialize", False),
        (Phase.INITIALIZING, "shutdown", False),
        (Phase.INITIALIZING, "initialized", True),
        (Phase.INITIALIZING, "$/cancelRequest", True),
        (Phase.RUNNING, "textDocument/didOpen", True),
        (Phase.RUNNING, "shutdown", True),
        (Phase.STOPPING, "textDocument/didClose", False),
        (Phase.STOPPING, "$/cancelRequest", False),
        (Phase.STOPPING, "exit", True),
        (Phase.EXITING, "exit", False),
        (Phase.ENDED, "exit", False),
    ],
)
def test_only_what_the_phase_allows_may_leave(phase: Phase, method: str, allowed: bool) -> None:
    assert at(phase).send(method) is allowed


def test_sending_the_marking_messages_walks_the_whole_life() -> None:
    lifecycle = Lifecycle()
    for method in STEPS:
        assert lifecycle.send(method)
    assert lifecycle.phase is Phase.EXITING


@pytest.mark.proves("C32")
def test_initialized_leaves_exactly_once() -> None:
    lifecycle = at(Phase.INITIALIZING)
    assert lifecycle.send("initialized")
    with pytest.raises(Bug):
        lifecycle.send("initialized")


def test_every_phase_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Phase)
