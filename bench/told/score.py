"""What was told beside what is true: pure, so that one can trust it.

Told is what a model can read: `ERROR [12:5] message (rule)` below the file that it is about. It is
- *right* where the checker reports it as new after this edit,
- *late* where it was new after an earlier edit, was not told then, and still is,
- *old* or *unknown* otherwise, and then false: the checker reports it, but not as new; or not at all.
Two messages are the same when their letters are, or when one begins with the other (long ones are cut); else when line
and rule are. Positions decide nothing more, since edits move them.
"""

import html
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from told.edits import Edit
from told.truth import Findings, Problem, Truth, letters

LEAST_LETTERS = 24
"""Of a message that was cut: shorter ones begin alike without being the same."""

_FILE = re.compile(r'<diagnostics file="(?P<tagged>.*)">|File: (?P<plain>.+)')
_FINDING = re.compile(
    r"\s*(?P<severity>ERROR|WARNING|INFO|HINT|OPEN) \[(?P<line>\d+):(?P<column>\d+)\] ?"
    r"(?:not defined yet: )?(?P<message>.*?)"
    r"(?: \((?P<rule>[^()\s]+)\))?(?: \[new\])?\s*"
)
_QUOTED = re.compile(r"[\"'`]([^\"'`]+)[\"'`]")
UNRESOLVED = {
    *("reportMissingImports", "reportMissingModuleSource", "unresolved-import", "import-not-found", "missing-import"),
    *("2307", "7016"),
}
"""What the checkers call an import that leads nowhere."""

_MORE = re.compile(r"\.\.\. and (?P<count>\d+) more\b")


@dataclass(frozen=True)
class Said:
    """A feedback, read."""

    findings: tuple[Problem, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """How many more a file has, as the text says."""
    rest: str = ""
    """The lines that are about no single finding."""


def said(text: str, root: str) -> Said:
    """Read what a model reads."""
    findings, left_out, rest, file = list[Problem](), dict[str, int](), list[str](), ""
    for line in text.replace(f"{root}/", "").splitlines():
        if match := _FILE.fullmatch(line.strip()):
            file = html.unescape(match["tagged"] or match["plain"]).removeprefix(f"{root}/")
        elif match := _FINDING.fullmatch(line):
            severity = {"INFO": "information", "OPEN": "error"}.get(match["severity"], match["severity"].lower())
            message = html.unescape(match["message"])
            place = int(match["line"]), int(match["column"])
            findings.append(Problem(file, *place, severity, html.unescape(match["rule"] or ""), message))
        elif (match := _MORE.match(line)) and file:
            left_out[file] = left_out.get(file, 0) + int(match["count"])
        else:
            if line.strip() == "</diagnostics>":
                file = ""
            elif line.strip() and not line.startswith("| "):
                rest.append(line)
    return Said(tuple(findings), left_out, "\n".join(rest))


@dataclass(frozen=True)
class Verdict:
    """How one feedback does beside the truth."""

    right: tuple[Problem, ...] = ()
    late: tuple[Problem, ...] = ()
    late_for: tuple[tuple[int, str], ...] = ()
    """The edits and files that these should have been told with."""
    old: tuple[Problem, ...] = ()
    unknown: tuple[Problem, ...] = ()
    missing: tuple[Problem, ...] = ()
    """New errors of the edited files that were not told, nor counted as left out."""
    own_new: int = 0
    broken: tuple[str, ...] = ()
    """Other files with new errors."""
    told: tuple[str, ...] = ()
    """Those of them that were named with an error of theirs, or in a list of more files."""

    @property
    def false(self) -> tuple[Problem, ...]:
        return (*self.old, *self.unknown)

    @property
    def untold(self) -> tuple[str, ...]:
        return tuple(file for file in self.broken if file not in self.told)


class Judge:
    """Goes along with a run: what was not told when it was new may be told later."""

    def __init__(self, *, installed: bool = True, own: Iterable[str] = ()) -> None:
        """`installed`: the project has its packages. Otherwise imports of them are not errors of any edit.

        `own`: the names of the project's own modules and packages.
        """
        self._installed = installed
        self._own = frozenset(own)
        self._pending: list[tuple[int, Problem]] = []
        """What has not been told, with the number of the edit that brought it."""
        self._optional: list[tuple[int, Problem]] = []
        """What might have been told, and was not: it may still be."""
        self._gone: dict[str, tuple[Problem, ...]] = {}
        """What deleted files had: it is not new when they come back."""

    def verdict(self, edit: Edit, truth: Truth, feedback: Said, between: Said | None = None) -> Verdict:
        """`between` is what was told since the edit before and before this one, of the state that this one found."""
        edited = {change.path for change in edit.changes}
        before = [problem for found in truth.before.values() for problem in found]
        earlier, rest, heard = self._late(between or Said(), (between or Said()).findings, before, ())
        earlier_old, earlier_unknown = matched(rest, before)
        truth = replace(truth, new=self._counting(edit, truth))
        new = [problem for found in truth.new.values() for problem in found]
        after = [problem for found in truth.after.values() for problem in found]
        right, rest = matched(feedback.findings, new)
        self._optional += [(edit.number, problem) for found in truth.optional.values() for problem in found]
        self._optional = _still(self._optional, after)
        words, rest = matched(rest, [problem for _, problem in self._optional])
        said = {id(problem) for _, problem in words}
        self._optional = [(number, problem) for number, problem in self._optional if id(problem) not in said]
        late, rest, since = self._late(feedback, rest, after, edited)
        old, rest = matched(rest, after)
        told = {id(problem) for _, problem in right}
        untold = [problem for problem in new if id(problem) not in told]
        self._pending += [(edit.number, problem) for problem in untold]
        own = [problem for problem in untold if problem.file in edited and problem.severity == "error"]
        broken = broken_files(truth.new, edited)
        named = {problem.file for _, problem in right} | {file for file in broken if names(feedback, file)}
        return Verdict(
            right=tuple(finding for finding, _ in (*right, *words)),
            late=tuple(finding for finding, _ in (*earlier, *late)),
            late_for=tuple(dict.fromkeys((*heard, *since))),
            old=tuple(finding for finding, _ in (*earlier_old, *old)),
            unknown=(*earlier_unknown, *rest),
            missing=tuple(_not_counted(own, feedback.left_out)),
            own_new=sum(problem.severity == "error" for problem in new if problem.file in edited),
            broken=broken,
            told=tuple(file for file in broken if file in named),
        )

    def _late(
        self, feedback: Said, findings: Sequence[Problem], there: Sequence[Problem], edited: Container[str]
    ) -> tuple[list[tuple[Problem, Problem]], list[Problem], list[tuple[int, str]]]:
        """What of these should have been told before, what is left, and the edits and files that it is late for."""
        # Nobody need be told of what has been fixed in the meantime.
        pending = _still(self._pending, there)
        late, rest = matched(findings, [problem for _, problem in pending])
        told = {id(problem) for _, problem in late}
        told |= {id(problem) for _, problem in pending if problem.file not in edited and names(feedback, problem.file)}
        since = [(number, problem.file) for number, problem in pending if id(problem) in told]
        self._pending = [(number, problem) for number, problem in pending if id(problem) not in told]
        return late, rest, since

    def _counting(self, edit: Edit, truth: Truth) -> dict[str, tuple[Problem, ...]]:
        """What is new and should be told."""
        back = {change.path for change in edit.changes if change.before is None} & self._gone.keys()
        known = {path: {problem.key for problem in self._gone.pop(path)} for path in back}
        for change in edit.changes:
            if change.after is None:
                self._gone[change.path] = tuple(truth.before.get(change.path, ()))
        counting = {
            file: tuple(
                one
                for one in found
                if one.key not in known.get(file, ()) and (self._installed or not is_missing_package(one, self._own))
            )
            for file, found in truth.new.items()
        }
        return {file: found for file, found in counting.items() if found}


def is_missing_package(problem: Problem, own: Container[str] = ()) -> bool:
    """Whether it is about an import that is no file of the project."""
    found = _QUOTED.search(problem.message) if problem.rule in UNRESOLVED else None
    module = "" if found is None else found[1]
    return bool(module) and not module.startswith((".", "/")) and module.partition(".")[0] not in own


def broken_files(new: Findings, edited: Iterable[str]) -> tuple[str, ...]:
    """Files with new errors that were not edited themselves."""
    without = set(edited)
    return tuple(
        file for file, found in new.items() if file not in without and any(one.severity == "error" for one in found)
    )


def same(told: Problem, true: Problem) -> bool:
    """Whether these are about the same, by their words."""
    if told.file != true.file:
        return False
    one, other = letters(told.message.rstrip("….")), letters(true.message)
    if one == other or (one and told.key[0] == true.key[0]):
        return True
    # How it is explained below its headline depends on what the checker has met first.
    headline, _, explained = true.message.partition("\n")
    shorter, longer = sorted((one, letters(headline) if explained else other), key=len)
    return len(shorter) >= LEAST_LETTERS and longer.startswith(shorter)


def same_place(told: Problem, true: Problem) -> bool:
    """Whether these are about the same, by line and rule: a server may use other words than its command line."""
    return (
        told.file == true.file and told.line == true.line and (told.rule == true.rule or not told.rule or not true.rule)
    )


def matched(told: Sequence[Problem], true: Sequence[Problem]) -> tuple[list[tuple[Problem, Problem]], list[Problem]]:
    """Pairs, each true one in at most one, those of the same line first; and what was told beside them."""
    pairs, left, rest = list[tuple[Problem, Problem]](), list(true), list(told)
    for test in (_same_on_its_line, same, same_place):
        unmatched = list[Problem]()
        for finding in rest:
            index = next((number for number, problem in enumerate(left) if test(finding, problem)), None)
            if index is None:
                unmatched.append(finding)
            else:
                pairs.append((finding, left.pop(index)))
        rest = unmatched
    return pairs, rest


def _same_on_its_line(told: Problem, true: Problem) -> bool:
    return told.line == true.line and same(told, true)


def _still(pending: Sequence[tuple[int, Problem]], after: Sequence[Problem]) -> list[tuple[int, Problem]]:
    there = {(problem.file, *problem.key) for problem in after}
    return [(number, problem) for number, problem in pending if (problem.file, *problem.key) in there]


def _not_counted(untold: Sequence[Problem], left_out: dict[str, int]) -> list[Problem]:
    counted, found = dict(left_out), list[Problem]()
    for problem in untold:
        if counted.get(problem.file, 0):
            counted[problem.file] -= 1
        else:
            found.append(problem)
    return found


def names(feedback: Said, file: str) -> bool:
    return re.search(rf"(?<![\w/.]){re.escape(file)}(?![\w/])", feedback.rest) is not None


# --- What others tell -----------------------------------------------------------------------------------------------

SEVERITIES = {1: "error", 2: "warning"}

_LINE = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<column>\d+)\s+(?P<severity>\w+): (?P<message>.*?)"
    r"(?: \((?P<rule>[^()\s]+)\))?\s*"
)
_CLAUDE = re.compile(
    r"\s*(?P<mark>\S) \[Line (?P<line>\d+):(?P<column>\d+)\] (?P<message>.*?)"
    r"(?: \[(?P<rule>[^\[\]]*)\])?(?: \([^()]*\))?\s*"
)
_TABLE = re.compile(r'## "?(?P<file>[^"\s]+)"? \[\d+\](?:\{(?P<fields>.*)\})?')
_START = ("start>line", "start>character")
_CLAUDE_MARKS = {"✘": "error", "⚠": "warning"}


def read(text: str, root: str, form: str) -> Said:
    """What a text says that is written in this form."""
    if not form:
        return said(text, root)
    findings = list[Problem]()
    for finding in FORMS[form](text.replace(f"{root}/", ""), root):
        # One question after the other may be answered with the same.
        if finding.severity in SEVERITIES.values() and finding not in findings:
            findings.append(finding)
    return Said(tuple(findings))


def _lines(text: str, root: str) -> Iterator[Problem]:
    """`file:line:column  error: message (rule)`."""
    del root
    for line in text.splitlines():
        if found := _LINE.fullmatch(line):
            place = int(found["line"]), int(found["column"])
            yield Problem(found["file"], *place, found["severity"], found["rule"] or "", found["message"])


def _claude_code(text: str, root: str) -> Iterator[Problem]:
    """A file by its last name, and its findings below it."""
    file = ""
    for line in text.splitlines():
        if found := _CLAUDE.fullmatch(line):
            severity = _CLAUDE_MARKS.get(found["mark"], "hint")
            place = int(found["line"]), int(found["column"])
            yield Problem(file, *place, severity, found["rule"] or "", found["message"])
        elif line.endswith(":"):
            file = _meant(line[:-1].strip(), root)


def _meant(name: str, root: str) -> str:
    """The file of this last name that was changed last."""
    found = [path for path in Path(root).rglob(name) if ".git" not in path.parts]
    return str(max(found, key=lambda path: path.stat().st_mtime).relative_to(root)) if found else name


def _serena(text: str, root: str) -> Iterator[Problem]:
    """JSON for each file that was asked about: file, severity, symbol, findings."""
    del root
    for document in _documents(text):
        for file, severity, one in _grouped(document):
            start = one["range"]["start"]
            place = start["line"] + 1, start["character"] + 1
            yield Problem(file, *place, severity.lower(), str(one.get("code", "")), one["message"])


def _grouped(document: Mapping[str, Mapping[str, Mapping[str, list[Any]]]]) -> Iterator[tuple[str, str, Any]]:
    for file, severities in document.items():
        for severity, symbols in severities.items():
            for several in symbols.values():
                yield from ((file, severity, one) for one in several)


def _agent_lsp(text: str, root: str) -> Iterator[Problem]:
    """`## "file:///…" [count]{fields}`, and a row for each finding with its cells between bars."""
    file, fields = "", list[str]()
    for line in text.splitlines():
        if found := _TABLE.match(line):
            file = found["file"].removeprefix("file://").removeprefix("/").removeprefix(f"{root}/".lstrip("/"))
            # It writes them as its own structures or as the server's: `Range>Start>Line`, `range>start>line`.
            fields = (found["fields"] or "").replace('"', "").lower().split(",")
        elif len(cells := [cell.strip().strip('"') for cell in line.split("|")]) == len(fields) > 1:
            row = dict(zip(fields, cells, strict=True))
            line_, column = (next((int(row[name]) + 1 for name in row if name.endswith(one)), 0) for one in _START)
            severity = row.get("severity", "1")
            named = SEVERITIES.get(int(severity), "hint") if severity.isdigit() else severity.lower()
            yield Problem(file, line_, column, named, row.get("code", ""), row.get("message", ""))


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("{", place)) >= 0:
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError:
            place += 1
            continue
        yield document


FORMS: Mapping[str, Callable[[str, str], Iterable[Problem]]] = {
    "lines": _lines,
    "claude-code": _claude_code,
    "serena": _serena,
    "agent-lsp": _agent_lsp,
}
