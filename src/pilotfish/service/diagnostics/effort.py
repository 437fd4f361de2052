"""How far files were checked, as what the state of an answer follows from."""

from collections.abc import Sequence

from pilotfish.api.answers import Effort, error_of
from pilotfish.errors import Refused
from pilotfish.feedback.limits import PATH_LIMIT
from pilotfish.operations.fallback import no_server_for
from pilotfish.sanitise import sanitised
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.system.clock import current_time

MAX_NOT_CHECKED = 3
"""Related files that a reason names; the others are counted."""


def effort_of(asked: Sequence[FileVerdict], related: Sequence[FileVerdict], started: float) -> Effort:
    """How far the files that were asked about were checked, and which related files could not be."""
    outcomes = [outcome for verdict in asked for outcome in verdict.outcomes]
    failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
    failures += [verdict.refused for verdict in asked if verdict.refused is not None]
    silent = [outcome for outcome in outcomes if outcome.failure is None and not outcome.is_fresh]
    unserved = [verdict.path for verdict in asked if not verdict.outcomes and verdict.refused is None]
    caveats = [f"{outcome.server}: {outcome.why or 'some of its answer could not be read'}" for outcome in silent]
    caveats += [no_server_for(path).message for path in unserved]
    caveats += _not_checked([verdict.refused for verdict in related if verdict.refused is not None])
    return Effort(
        duration_ms=milliseconds_since(started),
        server_hits=sum(verdict.answered for verdict in asked),
        errors=tuple(map(error_of, failures)),
        caveats=tuple(dict.fromkeys(caveats)),
        timed_out=any(outcome.diagnostics is None for outcome in silent),
    )


def milliseconds_since(started: float) -> int:
    return round((current_time() - started) * 1000)


def _not_checked(refused: Sequence[Refused]) -> list[str]:
    """The repository chose these names, so they are sanitised and few."""
    caveats = [f"not checked: {sanitised(refusal.message, PATH_LIMIT)}" for refusal in refused[:MAX_NOT_CHECKED]]
    if len(refused) > MAX_NOT_CHECKED:
        caveats.append(f"not checked: {len(refused) - MAX_NOT_CHECKED} more files that cannot be read")
    return caveats
