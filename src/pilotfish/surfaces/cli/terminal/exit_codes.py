"""What a command ends with: the exit code that follows from an answer."""

from enum import IntEnum
from typing import Any

from pilotfish.api.answers import OURSELVES, Answer, Effort, State, answer_from, error_of, is_empty
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure


class Ending(IntEnum):
    CLEAN = 0
    """Answered; for a check, nothing found."""
    FINDINGS = 1
    NO_VERDICT = 2
    USAGE = 3


REFUSALS = frozenset({
    Code.AMBIGUOUS,
    Code.FILE_MISSING,
    Code.FILE_UNREADABLE,
    Code.INVALID_INPUT,
    Code.NOT_A_FILE,
    Code.NOT_FOUND,
    Code.OUTSIDE_WORKSPACE,
    Code.PROTECTED,
    Code.ROOT_GONE,
})  # fmt: skip
"""Asking again the same way gives the same answer: the question was wrong."""


def ending(said: Answer[Any]) -> Ending:
    """Of a question: nothing found is an answer, unless there may be more than was found."""
    if is_refused(said):
        return Ending.USAGE
    certain = said.ok and (said.meta.state is State.FRESH or not is_empty(said.data))
    return Ending.CLEAN if certain else Ending.NO_VERDICT


def ending_of_check(said: Answer[Any], findings: int) -> Ending:
    """Of a check: a finding is one however much else is unknown, and nothing is clean unless all of it is known."""
    if is_refused(said):
        return Ending.USAGE
    if findings:
        return Ending.FINDINGS
    return Ending.CLEAN if said.meta.state is State.FRESH else Ending.NO_VERDICT


def refused(operation: Operation, failure: Failure) -> Answer[Any]:
    """The answer to a question that could not even be asked."""
    return answer_from(operation, None, Effort(errors=(error_of(failure),)))


def is_refused(said: Answer[Any]) -> bool:
    return any(one.server_id == OURSELVES and one.code in REFUSALS for one in said.errors)
