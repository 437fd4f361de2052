"""What `check` is asked for, and what it prints for people: errors, what was not checked, then a summary. Pure.

On a terminal, diagnostics are grouped by file and shown with their source; in a pipe each is one line. Lesser
diagnostics than the listed ones are counted. The errors of a file can be told before the others are known: they come
first anyway, in the order of the files.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import click
from msgspec import Struct

from pilotfish.api.answers import SEVERITIES, Diagnostic, DiagnosticsAnswer, State, error_text
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_PATH
from pilotfish.operations.render import place_text
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.terminal.answers import STATE_COLOURS, Screen, diagnostic_lines, name_text, rule_text
from pilotfish.surfaces.cli.terminal.table import table

MAX_LISTED = 100
"""Diagnostics listed by default; `--all` lists all."""

TABLES_FROM = 10
"""With fewer findings, the list itself is the summary."""

TABLE_ROWS = 10

FORMATS = ("text", "json", "sarif", "github")


class CheckOptions(Struct, frozen=True):
    """What to check, and which of its diagnostics are findings, listed and printed: the verb's options."""

    paths: tuple[str, ...] = (".",)
    text: str | None = None
    """Of the one file, instead of what is on disk."""
    changed: bool = False
    only_new: bool = False
    severity: str | None = None
    everything: bool = False
    skip_missing: bool = False
    form: str = "text"
    as_json: bool = False

    @property
    def format(self) -> str:
        return "json" if self.as_json else self.form

    @property
    def least(self) -> str:
        """The least severity that text lists."""
        return "hint" if self.everything else self.severity or "error"

    def is_wanted(self, found: Diagnostic) -> bool:
        return not (self.only_new and found.introduced is False)

    def is_finding(self, found: Diagnostic) -> bool:
        return _rank(found) <= SEVERITIES.index(self.severity or "warning")

    def is_listed(self, found: Diagnostic) -> bool:
        return _rank(found) <= SEVERITIES.index(self.least)

    def is_counted(self, found: Diagnostic) -> bool:
        """Where it is not listed: what is below a severity that was named was not asked for."""
        return self.everything or self.severity is None or self.is_finding(found)

    def is_printed(self, found: Diagnostic) -> bool:
        """In JSON, SARIF or GitHub's lines."""
        return self.is_counted(found) if self.format == "json" else self.everything or self.is_finding(found)

    def limit(self, screen: Screen | None) -> int | None:
        """How many are listed."""
        return MAX_LISTED if screen and self.severity is None and not self.everything else None


def first_lines(
    answer: DiagnosticsAnswer, options: CheckOptions, told: int, screen: Screen | None
) -> tuple[list[str], int]:
    """The lines about the errors of an answer that is a part of a larger one, and how many errors these are.

    `told`: how many were told of the parts before it.
    """
    errors, limit = [one for one in _listed(answer, options) if _rank(one[1]) == 0], options.limit(screen)
    shown = errors if limit is None else errors[: max(0, limit - told)]
    return [*_diagnostic_lines(shown, screen)], len(shown)


def check_lines(
    answer: DiagnosticsAnswer, options: CheckOptions, screen: Screen | None, told: int = 0
) -> Iterator[str]:
    """Each diagnostic that is listed, without the first `told`, then notes and the summary; no `screen`: in a pipe,
    where each is a line and none is left out."""
    listed, limit = _listed(answer, options), options.limit(screen)
    yield from _diagnostic_lines(listed[told:limit], screen)
    if answer.meta.state is not State.FRESH:
        # Below a long list, where a person sees it.
        for why in _reasons(answer):
            yield click.style(_one_line(f"{answer.meta.state}: {why}"), fg=STATE_COLOURS[answer.meta.state])
    if limit is not None and len(listed) > limit:
        yield f"… and {len(listed) - limit} more (--all lists every one)"
    for error in answer.errors:
        if error.message not in (answer.meta.reason or ""):
            yield click.style(_one_line(error_text(error)), fg="red")
    for note in answer.meta.warnings:
        yield click.style(f"note: {_one_line(note)}", fg="yellow")
    if answer.ok:
        data = answer.data or {}
        counted = {path: [found for found in items if options.is_counted(found)] for path, items in data.items()}
        if screen:
            yield from _tables(counted)
        took = f" ({answer.meta.duration_ms / 1000:.1f} s)" if screen else ""
        yield _summary(answer, counted, options) + took


def _reasons(answer: DiagnosticsAnswer) -> Iterator[str]:
    """Why the answer is not fresh, one by one: the errors that its reason repeats, and what else it says."""
    rest = answer.meta.reason or ""
    for error in answer.errors:
        if (text := error_text(error)) in rest:
            rest = rest.replace(text, "").strip("; ")
            yield text
    if rest or not answer.errors:
        yield rest


def _diagnostic_lines(listed: Sequence[tuple[str, Diagnostic]], screen: Screen | None) -> Iterator[str]:
    heading = None
    for path, found in listed:
        if screen is None:
            code = f" ({name_text(found.code)})" if found.code else ""
            place = f"{sanitised(path, MAX_PATH)}:{place_text(found)}"
            yield f"{place}  {found.severity}: {sanitised(found.message, MAX_MESSAGE)}{code}"
            continue
        if path != heading:
            heading = path
            yield click.style(sanitised(path, MAX_PATH), bold=True)
        yield from diagnostic_lines(found, screen.line_of(path, found.line), screen)


def _listed(answer: DiagnosticsAnswer, options: CheckOptions) -> list[tuple[str, Diagnostic]]:
    """The worst first, then in the order of the answer."""
    every = [(path, found) for path, items in (answer.data or {}).items() for found in items]
    return sorted((one for one in every if options.is_listed(one[1])), key=lambda one: _rank(one[1]))


def _tables(counted: Mapping[str, Sequence[Diagnostic]]) -> Iterator[str]:
    findings = [(path, found) for path, items in counted.items() for found in items if _rank(found) <= 1]
    if len(findings) < TABLES_FROM:
        return
    yield ""
    yield from _table("By file:", findings, lambda path, _: sanitised(path, MAX_PATH))
    yield from _table("By rule:", findings, lambda _, found: rule_text(found))
    yield ""


def _table(
    title: str, findings: Sequence[tuple[str, Diagnostic]], name_of: Callable[[str, Diagnostic], str]
) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    for path, found in findings:
        counts.setdefault(name_of(path, found), Counter())[found.severity] += 1
    rows = sorted(counts.items(), key=lambda row: (-row[1]["error"], -row[1]["warning"], row[0]))
    yield title
    yield from table([(f"  {_counts(count)}", name) for name, count in rows[:TABLE_ROWS]])
    if len(rows) > TABLE_ROWS:
        yield f"  … and {len(rows) - TABLE_ROWS} more"


def _summary(answer: DiagnosticsAnswer, counted: Mapping[str, Sequence[Diagnostic]], options: CheckOptions) -> str:
    """`3 errors in 2 of 60 files. 12 warnings not listed (--all lists every one).`"""
    listed = Counter(found.severity for items in counted.values() for found in items if options.is_listed(found))
    others = Counter(found.severity for items in counted.values() for found in items if not options.is_listed(found))
    fresh = answer.meta.state is State.FRESH
    if listed:
        hit = sum(any(map(options.is_listed, items)) for items in counted.values())
        head = f"{click.style(_counts(listed), bold=True)} in {hit} of {_many(len(counted), 'file')}."
    else:
        what = "problems" if not others else _plural(options.least)
        head = click.style(f"No {what}{'' if fresh else ' found so far'}", fg="green" if fresh else "yellow")
        head += f" in {_many(len(counted), 'file')}."
    return f"{head} {_counts(others)} not listed (--all lists every one)." if others else head


def _counts(counts: Counter[str]) -> str:
    return ", ".join(_many(counts[name], name) for name in SEVERITIES if counts[name])


def _rank(found: Diagnostic) -> int:
    return SEVERITIES.index(found.severity)


def _one_line(text: str) -> str:
    return sanitised(" ".join(filter(None, map(str.strip, text.splitlines()))), MAX_MESSAGE)


def _plural(severity: str) -> str:
    return severity if severity == "information" else f"{severity}s"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else _plural(noun)}"
