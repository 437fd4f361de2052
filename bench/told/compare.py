"""Two results of the same edits side by side, by what was told; how long it took depends on who else was there."""

from collections.abc import Sequence
from dataclasses import dataclass

from told import figures
from told.figures import Row

MORE_BYTES = 1.1
"""Texts name folders, whose names are longer on one machine than on another."""

HEAD = "| project | server | subject | edits | wrong | missing in the edited file | other files untold | bytes | |"


@dataclass(frozen=True)
class Counts:
    edits: int
    wrong: int
    missing: int
    untold: int
    size: int

    def is_worse_than(self, other: "Counts") -> bool:
        counts = zip((self.wrong, self.missing, self.untold), (other.wrong, other.missing, other.untold), strict=True)
        # Fewer edits would be compared with more.
        return self.edits != other.edits or any(one > two for one, two in counts) or self.size > other.size * MORE_BYTES


def counts(found: Sequence[Row]) -> Counts:
    one = figures.figures(found)
    size = sum(map(figures.size, found))
    return Counts(one.edits, one.false, one.own_new - one.own_told, one.broken - one.told, size)


def compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, bool]:
    """A table of what both have, and whether anything in it is worse than it was."""
    old, new = figures.runs(before), figures.runs(after)
    lines, worse = [HEAD, figures.rule(HEAD)], not old.keys() & new.keys()
    for key in [key for key in old if key in new]:
        was, is_ = counts(old[key]), counts(new[key])
        pairs = zip(vars(was).values(), vars(is_).values(), strict=True)
        mark = "worse" if is_.is_worse_than(was) else ""
        lines.append(f"| {' | '.join([*key, *(f'{one} → {two}' for one, two in pairs), mark])} |")
        worse = worse or bool(mark)
    return "\n".join(lines), worse
