"""How other programs write what they tell, read into the same findings as ours.

Hints and information are left out of these: they are no errors, and a list that has them costs bytes, not precision.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from told.score import Said, said
from told.truth import Problem

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
            fields = (found["fields"] or "").replace('"', "").split(",")
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
