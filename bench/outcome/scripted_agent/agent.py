"""A scripted agent: no model, and honest rules about what it knows.

It has planned the first half of the files of a real change, one turn for each, and knows what to write there. Of the
other files it knows nothing until it is told of a place in one, or of a line that names one (an import of something
that is not there yet); then it knows what to write there, too.

- A file of which a place is told without its source line must be read; with its source line it need not be.
- A line that is worded as an error, in a file that it has written already, is looked at: a turn, and a read of the
  file. If the error is gone when the agent has stopped, that was a premature detour. What is worded as open is not.
- It repairs all files that it was told of in one turn, and stops when there is none left. What it hears before the
  stop it takes up once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import PurePosixPath

from told.edits import Edit, words
from told.truth import Findings, Problem, difference

from scripted_agent.arms import Feedback, Told

MOST_TURNS = 60
"""More than any change needs, so that no rule of ours can loop."""


@dataclass
class Outcome:
    """One change under one arm."""

    project: str
    change: str
    order: str
    arm: str
    turns: int = 0
    reads: int = 0
    bytes_read: int = 0
    """Of feedback and of files."""
    told: int = 0
    looked_at: list[tuple[str, int, str, str]] = field(default_factory=list[tuple[str, int, str, str]])
    """Errors that it turned aside for: the file, the line, the rule, the words."""
    premature: int = 0
    left: int = 0
    found: int = 0
    """Files that it had not planned and has repaired."""
    unplanned: int = 0
    written: int = 0
    """Bytes of its edits, as patches."""
    tokens: int = 0
    """That a model has read and written, where one was run."""

    @property
    def key(self) -> tuple[str, ...]:
        return self.project, self.change, self.order, self.arm


def halves(made: Sequence[Edit]) -> tuple[Sequence[Edit], Sequence[Edit]]:
    """What the agent has planned, and the rest."""
    half = (len(made) + 1) // 2
    return made[:half], made[half:]


class Agent:
    def work(
        self, made: Sequence[Edit], texts: Mapping[str, str], arm: Feedback, outcome: Outcome
    ) -> Mapping[str, str]:
        """Make the change; the texts as the agent leaves them."""
        planned, self._rest = halves(made)
        self._arm, self._state = arm, dict(texts)
        self._written = set[str]()
        outcome.unplanned = len(self._rest)
        for edit in planned:
            self._turn([edit], outcome)
        self._hear(self._arm.stopping(), outcome)
        return self._state

    def _turn(self, made: Sequence[Edit], outcome: Outcome) -> None:
        """Edits at once, and what follows from what is told then."""
        outcome.turns += 1
        outcome.written += sum(len(diff(edit).encode()) for edit in made)
        for change in (change for edit in made for change in edit.changes):
            self._written.add(change.path)
            if change.after is None:
                self._state.pop(change.path, None)
            else:
                self._state[change.path] = change.after
        self._hear(self._arm.edited(made, self._state), outcome)

    def _hear(self, told: Told, outcome: Outcome) -> None:
        outcome.bytes_read += told.size
        outcome.told += len(told.places)
        self._look(told, outcome)
        seen = self._seen(told, outcome)
        known = [edit for edit in self._rest if _is_known(edit, seen)]
        if known and outcome.turns < MOST_TURNS:
            self._rest = [edit for edit in self._rest if edit not in known]
            outcome.found += len(known)
            self._turn(known, outcome)

    def _look(self, told: Told, outcome: Outcome) -> None:
        """Turn aside for what is called an error in what it has written."""
        errors = [one for one in told.places if one.is_error and one.problem.file in self._written]
        if errors and outcome.turns < MOST_TURNS:
            outcome.turns += 1
            outcome.looked_at += [
                (one.file, one.line, one.rule, one.message) for one in (each.problem for each in errors)
            ]
            for file in {one.problem.file for one in errors if one.source}:
                self._read(file, outcome)

    def _seen(self, told: Told, outcome: Outcome) -> list[tuple[str, str]]:
        """The files that it was told of, each with the lines that it knows: told, or read."""
        for file in {one.problem.file for one in told.places if not one.source and one.problem.file in self._state}:
            self._read(file, outcome)
        lines = {file: text.splitlines() for file, text in self._state.items()}
        found = list[tuple[str, str]]()
        for one in told.places:
            below = lines.get(one.problem.file, [])[one.problem.line - 1 : one.problem.line]
            found.append((one.problem.file, " ".join([one.problem.message, one.source, *below])))
        return found

    def _read(self, file: str, outcome: Outcome) -> None:
        outcome.reads += 1
        outcome.bytes_read += len(self._state.get(file, "").encode())


def _is_known(edit: Edit, seen: Sequence[tuple[str, str]]) -> bool:
    """Whether a place is in a file of this edit, or names it."""
    names = {PurePosixPath(path).stem for path in edit.paths}
    return any(file in edit.paths or names & words(line) for file, line in seen)


def left_over(base: Findings, end: Findings, whole: Findings) -> int:
    """Errors beside what was there and what the real change leaves."""
    found = 0
    for file, several in difference(base, end).items():
        errors = Counter(one.key for one in several if one.severity == "error")
        found += (errors - Counter(one.key for one in whole.get(file, ()))).total()
    return found


def scored(outcome: Outcome, base: Findings, end: Findings, whole: Findings) -> None:
    """Count what the agent leaves, and detours for nothing."""
    outcome.left = left_over(base, end, whole)
    there = {place for one in (each for several in end.values() for each in several) for place in _places(one)}
    looked_at = [Problem(file, line, 1, "error", rule, message) for file, line, rule, message in outcome.looked_at]
    outcome.premature = sum(there.isdisjoint(_places(one)) for one in looked_at)


def _places(one: Problem) -> set[tuple[object, ...]]:
    """By which it is known again: its words, or its line and rule."""
    return {(one.file, one.key), (one.file, one.line, one.rule)}


def diff(edit: Edit) -> str:
    """An edit as a patch."""
    lines = list[str]()
    for one in edit.changes:
        old, new = (text.splitlines(keepends=True) if text else [] for text in (one.before, one.after))
        lines += unified_diff(old, new, f"a/{one.path}", f"b/{one.path}")
    return "".join(lines)
