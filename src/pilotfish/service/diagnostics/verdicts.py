"""What servers say of files, and how far these were checked: what the state of an answer follows from."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from pilotfish.api.answers import Effort, error_of
from pilotfish.errors import Code, Failure, Refused
from pilotfish.feedback.delta import CheckedText, Comparison, Delta
from pilotfish.feedback.text import PATH_LIMIT
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.operations.fallback import no_server_for
from pilotfish.protocol.diagnostics import merged
from pilotfish.sanitise import sanitised
from pilotfish.system.clock import current_time

UNSIGNALLED = "the server did not signal that it was done"
"""Why a verdict is only assumed where nothing but a pause tells that it is the last word."""

WITHOUT_SERVER = frozenset({Code.SERVER_MISSING, Code.UNTRUSTED, Code.UNSUPPORTED})
"""Why a server will not answer, however long one waits."""

MAX_NOT_CHECKED = 3
"""Related files that a reason names; the others are counted."""


class Outcome(Struct, frozen=True):
    """One server's verdict on one file. Without `diagnostics` there is no verdict, and `why` says why."""

    server: str
    diagnostics: tuple[Diagnostic, ...] | None
    assumed: bool = False
    why: str | None = None
    failure: Failure | None = None
    seconds: float = 0.0
    skipped: int = 0
    """Items that could not be read as diagnostics: the list is incomplete."""
    judged: str | None = None
    """The text that the diagnostics are about: somebody may have sent a newer one than this check brought."""
    limited: bool = False
    """It is assumed only because the server runs restricted: no later answer will be better."""
    incarnation: float = 0.0
    """When the process that gave it was started: another one may have read other settings and packages."""

    @property
    def is_fresh(self) -> bool:
        return self.diagnostics is not None and not self.assumed and not self.skipped

    @property
    def is_unsignalled(self) -> bool:
        """Only a pause tells that the server has said its last word."""
        return self.why == UNSIGNALLED

    @property
    def is_late(self) -> bool:
        """No verdict yet, and there may be one."""
        return self.diagnostics is None and (self.failure is None or self.failure.code is Code.REQUEST_TIMEOUT)


def no_verdict(server: str, failure: Failure, seconds: float) -> Outcome:
    return Outcome(server, None, why=failure.message, failure=failure, seconds=seconds)


class FileVerdict(Struct, frozen=True):
    """One file after a check: what all its servers said, or why the file was not sent to any."""

    path: AbsPath
    text: str
    """What the servers judged."""
    outcomes: tuple[Outcome, ...]
    refused: Refused | None = None
    """The file is outside, missing, too large or not UTF-8 text. `path` is then as the caller named it."""
    listed: tuple[Diagnostic, ...] | None = None
    """All that they said in one list, where somebody has made it already."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        if self.listed is not None:
            return self.listed
        return merged(outcome.diagnostics for outcome in self.outcomes if outcome.diagnostics is not None)

    @property
    def checked(self) -> CheckedText:
        return CheckedText(self.text, self.diagnostics)

    @property
    def answered(self) -> int:
        """Servers that gave a verdict."""
        return sum(outcome.diagnostics is not None for outcome in self.outcomes)

    @property
    def is_fresh(self) -> bool:
        return bool(self.outcomes) and all(self._is_fresh(outcome) for outcome in self.outcomes)

    @property
    def is_final(self) -> bool:
        """Every server that can judge the file has: one that is missing or withheld has nothing to add to it."""
        judged = [one for one in self.outcomes if one.failure is None or one.failure.code not in WITHOUT_SERVER]
        return bool(judged) and all(one.limited or self._is_fresh(one) for one in judged)

    @property
    def is_withheld(self) -> bool:
        """All its servers are missing or withheld: however long one waits, there is no verdict."""
        failures = [one.failure for one in self.outcomes]
        return bool(failures) and all(one is not None and one.code in WITHOUT_SERVER for one in failures)

    @property
    def is_late(self) -> bool:
        """One of its servers may still answer."""
        return any(outcome.is_late for outcome in self.outcomes)

    @property
    def is_unsignalled(self) -> bool:
        """Of one of its servers, only a pause tells that it has said its last word."""
        return any(outcome.is_unsignalled for outcome in self.outcomes)

    def _is_fresh(self, outcome: Outcome) -> bool:
        return outcome.is_fresh and outcome.judged in {None, self.text}


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


class BrokenFiles(Struct, frozen=True):
    """What was found in other files. `complete`: every file that may be affected is known and was checked."""

    verdicts: tuple[FileVerdict, ...] = ()
    changes: Mapping[AbsPath, Comparison] = field(default_factory=dict[AbsPath, Comparison])
    candidates: int = 0
    complete: bool = True
    whole: bool = False
    """The servers were asked about their whole projects: all that they say of these is known."""
    uncompared: int = 0
    """Of the verdicts, those of which nobody knows what earlier edits broke."""
    unjudged: tuple[FileVerdict, ...] = ()
    """Files that no server can judge, however long one waits."""
    settled: bool = True
    """Whether nothing more can be known later."""
    left: tuple[AbsPath, ...] = ()
    """The files that were not checked, the likeliest first."""

    @property
    def unchecked(self) -> int:
        return self.candidates - len(self.verdicts) + self.uncompared

    def joined(self, more: "BrokenFiles") -> "BrokenFiles":
        """The same with what another search found; of a file that both have judged, that one knows more."""
        verdicts = {verdict.path: verdict for verdict in (*self.verdicts, *more.verdicts)}
        twice = len(self.verdicts) + len(more.verdicts) - len(verdicts)
        compared = {path: change for path, change in more.changes.items() if isinstance(change, Delta)}
        return BrokenFiles(
            tuple(verdicts.values()),
            {**more.changes, **self.changes, **compared},
            self.candidates + more.candidates - twice,
            self.complete and more.complete,
            uncompared=self.uncompared + more.uncompared,
            unjudged=(*self.unjudged, *more.unjudged),
            settled=self.settled and more.settled,
            left=(*self.left, *more.left),
        )


class KnownFindings(Struct, frozen=True):
    """What a conversation knows of other files."""

    untold: Mapping[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    """What was found late and has not been told."""
    told: Mapping[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    hear: Callable[[BrokenFiles], None] = lambda _: None
    """Called with all that is known after each part of a search: the rest may never come."""
