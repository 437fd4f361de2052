"""Which diagnostics an edit's feedback shows, whatever form the text takes.

In this order: severities, then the cap per file, then the lines in total, which the edited files use first and the
other files only when the edited ones have all found place.
Where a cap must choose, what the edit introduced comes before what is older, then the worse before the milder, then
the earlier; what is shown is shown by place all the same, or the worse first where the settings say so (`order`).
Other files compete in the same way: those in which the edit may have broken something come before those that were
broken before.

With `only_new`, what is known to be older is left out and counted. Where nothing from before the edit is known, an
edited file shows all of its findings, said to be possibly older, and another file shows nothing: what it had before is
not what the edit broke.

Nothing here says that a file is clean: a file without findings is simply not shown.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.schema import FeedbackSettings, TouchKind
from pilotfish.feedback.delta import Comparison, Delta, NoBaseline, place
from pilotfish.model import AbsPath, Diagnostic, Severity


class Checked(Struct, frozen=True):
    """One file and its change by the edit."""

    path: AbsPath
    change: Comparison
    text: str = ""


class Finding(Struct, frozen=True):
    """A diagnostic, and whether the edit introduced it; None without a baseline."""

    diagnostic: Diagnostic
    introduced: bool | None


class Tally(Struct, frozen=True):
    """How many diagnostics of the chosen severities the edit introduced, left and fixed, shown or not."""

    introduced: int
    older: int
    fixed: int


class Chosen(Struct, frozen=True):
    """One file of a selection."""

    path: AbsPath
    shown: tuple[Finding, ...]
    """By line, then column; the worse first where the settings say so."""
    left_out: int
    """How many more a cap left out."""
    tally: Tally | None
    """None without a baseline."""
    worst_first: bool = False
    text: str = ""
    """Of the file, for the source lines of its findings."""


class Selection(Struct, frozen=True):
    """What to show. Edited files are always here, other files only with something to show."""

    errors_only: bool
    only_new: bool = False
    edited: tuple[Chosen, ...] = ()
    others: tuple[Chosen, ...] = ()
    others_left_out: tuple[AbsPath, ...] = ()
    """Other files with something to show, left out by a cap."""
    changed: str = ""
    """What the edit changed and all places in other files mention, as it was; empty where that is not known."""

    @property
    def size(self) -> int:
        """How many findings are shown."""
        return sum(len(file.shown) for file in (*self.edited, *self.others))


def selection(
    edited: Sequence[Checked], others: Sequence[Checked], kind: TouchKind, limits: FeedbackSettings
) -> Selection:
    """The findings of the `edited` files in their order, then of the `others`.

    Without an edited file (some were deleted or moved), only what that broke is shown.
    """
    errors_only = limits.severities == frozenset({Severity.ERROR})
    changed = {file.path: file for file in edited}
    first = _allotted((_within(file, limits) for file in changed.values()), limits.max_total_lines)
    if kind not in limits.other_files_after:
        return Selection(errors_only, limits.only_new, first)
    limits = limits if changed else replace(limits, only_new=True)
    left = None if limits.max_total_lines is None else limits.max_total_lines - sum(len(file.shown) for file in first)
    known = [file for file in others if not (limits.only_new and isinstance(file.change, NoBaseline))]
    related = {file.path: file for file in known if file.path not in changed}
    candidates = [file for file in (_within(file, limits) for file in related.values()) if file.shown]
    candidates.sort(key=lambda file: file.path)
    if limits.other_files_order == "severity":
        candidates.sort(key=lambda file: min(found.diagnostic.severity for found in file.shown))
    best = sorted(candidates, key=_older_only)[: limits.max_other_files]
    second = {file.path: file for file in _allotted(best, left) if file.shown}
    shown = tuple(second[file.path] for file in candidates if file.path in second)
    left_out = tuple(file.path for file in candidates if file.path not in second)
    return Selection(errors_only, limits.only_new, first, shown, left_out)


def cut(chosen: Selection, most: int) -> Selection:
    """The same selection with only `most` findings: the most important of the edited files, then of the others.

    A file of which nothing is left stays, and counts what it lost.
    """
    edited = _allotted(chosen.edited, most)
    left = most - sum(len(file.shown) for file in edited)
    others = {file.path: file for file in _allotted(sorted(chosen.others, key=_older_only), left)}
    return replace(chosen, edited=edited, others=tuple(others[file.path] for file in chosen.others))


def findings(change: Comparison) -> tuple[Finding, ...]:
    """Every diagnostic after the edit, by place, and whether the edit introduced it."""
    if isinstance(change, NoBaseline):
        found = [Finding(one, introduced=None) for one in change.diagnostics]
    else:
        found = [Finding(one, introduced=True) for one in change.introduced]
        found += [Finding(one, introduced=False) for one in change.older]
    return tuple(sorted(found, key=_place))


def _within(file: Checked, limits: FeedbackSettings) -> Chosen:
    """The file after the severity filter and its own cap."""
    severities = limits.severities
    included = [found for found in findings(file.change) if found.diagnostic.severity in severities]
    wanted = [found for found in included if not (limits.only_new and found.introduced is False)]
    worst_first = limits.order == "severity"
    shown = tuple(sorted(wanted, key=_severity)) if worst_first else tuple(wanted)
    tally = None
    if isinstance(file.change, Delta):
        lists = (file.change.introduced, file.change.older, file.change.fixed)
        tally = Tally(*(sum(item.severity in severities for item in items) for items in lists))
    return _kept(Chosen(file.path, shown, 0, tally, worst_first, file.text), limits.max_per_file)


def _allotted(files: Iterable[Chosen], most: int | None) -> tuple[Chosen, ...]:
    """The files with at most so many findings in all, each taking what it can in the order given.

    What is older takes what is left: a patch of many files shows what it broke in the last of them, too.
    """
    everything = tuple(files)
    if most is None:
        return everything
    news = [sum(found.introduced is not False for found in file.shown) for file in everything]
    shares, left = _shares(news, most)
    rest, _ = _shares([len(file.shown) - new for file, new in zip(everything, news, strict=True)], left)
    return tuple(_kept(file, share + more) for file, share, more in zip(everything, shares, rest, strict=True))


def _shares(wanted: Sequence[int], most: int) -> tuple[list[int], int]:
    """What each gets, in order, and what is left."""
    shares = list[int]()
    for want in wanted:
        shares.append(min(want, most))
        most -= shares[-1]
    return shares, most


def _kept(file: Chosen, most: int) -> Chosen:
    lost = len(file.shown) - most
    if lost <= 0:
        return file
    best = sorted(sorted(file.shown, key=_weight)[:most], key=_place)
    shown = tuple(sorted(best, key=_severity)) if file.worst_first else tuple(best)
    return replace(file, shown=shown, left_out=file.left_out + lost)


def _place(found: Finding) -> tuple[int, int, Severity, str]:
    return place(found.diagnostic)


def _severity(found: Finding) -> Severity:
    return found.diagnostic.severity


def _weight(found: Finding) -> tuple[bool, Severity, tuple[int, int, Severity, str]]:
    return found.introduced is False, found.diagnostic.severity, place(found.diagnostic)


def _older_only(file: Chosen) -> bool:
    return all(found.introduced is False for found in file.shown)
