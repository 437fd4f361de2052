"""The exit code that follows from an answer."""

from enum import IntEnum
from typing import Any

from pilotfish.api.answers import OURSELVES, Answer, Changes, State, is_empty
from pilotfish.errors import Code


class ExitCode(IntEnum):
    OK = 0
    """Answered; of a check, nothing found."""
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
"""The question was wrong: asking again the same way gives the same answer."""


def exit_code_of_question(answer: Answer[Any]) -> ExitCode:
    """An answer that is empty, or a change without an edit, counts as one only when it is fresh."""
    if is_refused(answer):
        return ExitCode.USAGE
    nothing = is_empty(answer.data) or (
        isinstance(answer.data, Changes) and not any(f.edits for f in answer.data.files)
    )
    certain = answer.ok and (answer.meta.state is State.FRESH or not nothing)
    return ExitCode.OK if certain else ExitCode.NO_VERDICT


def exit_code_of_check(answer: Answer[Any], findings: int) -> ExitCode:
    """Findings count whatever else is unknown; without any, only a fresh answer is clean."""
    if is_refused(answer):
        return ExitCode.USAGE
    if findings:
        return ExitCode.FINDINGS
    return ExitCode.OK if answer.meta.state is State.FRESH else ExitCode.NO_VERDICT


def is_refused(answer: Answer[Any]) -> bool:
    return any(one.server_id == OURSELVES and one.code in REFUSALS for one in answer.errors)
