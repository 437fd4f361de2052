"""What was found in other files than the edited ones, and what a conversation knows of them."""

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from pilotfish.feedback.delta import CheckedText, Comparison, Delta
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.verdicts import FileVerdict


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
