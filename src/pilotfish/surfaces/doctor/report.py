"""What the doctor found, and how it is said: to people, and as JSON. Pure.

A line begins with one word: `ok`, `note` (nothing to do, but good to know) or `todo`. Every `todo` says what to do, as
a command where there is one; all of them are listed again at the end.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.terminal.units import counted, latency

Grading = Literal["ok", "note", "todo"]

CAMEL = re.compile(r"_(\w)")

MAX_LINE = 1000
"""Code points of one line: some repeat what a server or a file says (T32)."""

MAX_LAST_WORDS = 5
"""Lines of a server's standard error in the text; JSON has all that was kept."""

MAX_FOLDERS = 3
"""Folders that were searched, in the text."""


class ServerReport(Struct, frozen=True):
    """One server at one root, examined by starting it, or not to be started."""

    id: str
    name: str
    root: str
    state: Literal["works", "broken", "missing", "withheld"]
    path: str | None = None
    version: str | None = None
    initialize_ms: int | None = None
    problem: str | None = None
    last_words: tuple[str, ...] = ()
    """Of a server that does not work, the end of its standard error."""
    given_up: str | None = None
    """What it does without, because the workspace is not trusted."""
    looked_in: tuple[str, ...] = ()
    """Where a program that is missing was looked for."""
    advice: tuple[str, ...] = ()
    """What to do; the further ones are other ways to the same."""
    needs: tuple[str, ...] = ()
    """What a server that is missing needs beside itself."""

    @property
    def grade(self) -> Grading:
        return "ok" if self.state == "works" else "todo"


class LanguageReport(Struct, frozen=True):
    """A language of which there are files."""

    language: str
    files: int
    example: str
    servers: tuple[ServerReport, ...]


class SetupFinding(Struct, frozen=True):
    """Anything else that was looked at."""

    subject: str
    grade: Grading
    message: str
    advice: tuple[str, ...] = ()


class DoctorReport(Struct, frozen=True):
    version: str
    system: str
    root: str
    trusted: bool
    languages: tuple[LanguageReport, ...]
    findings: tuple[SetupFinding, ...]
    unserved: int = 0
    """Files that no server is for."""

    @property
    def is_well(self) -> bool:
        return not any(True for _ in _todos(self))


def report_json(report: DoctorReport) -> dict[str, Any]:
    """Names are camel case, as everywhere on our wires."""
    return {"ok": report.is_well, **_camel_case(msgspec.to_builtins(report))}


def report_lines(report: DoctorReport) -> Iterator[str]:
    yield _clean(f"pilotfish {report.version} on {report.system}")
    yield _clean(f"Workspace {report.root} ({'trusted' if report.trusted else 'not trusted'})")
    yield from ("", "Languages")
    for language in report.languages:
        yield _clean(f"  {language.language} ({counted(language.files, 'file')}, such as {language.example})")
        for server in language.servers:
            yield from _server_lines(server)
    if not report.languages:
        yield "  There is no file here that a language server is for."
    yield from ("", "Set-up")
    for finding in report.findings:
        yield from _said("  ", finding.grade, f"{finding.subject}: {finding.message}", finding.advice)
    yield ""
    yield from _ending(report)


def _server_lines(server: ServerReport) -> Iterator[str]:
    match server.state:
        case "works":
            version = f" {server.version}" if server.version else ""
            message = f"{server.id}{version} answers after {latency(server.initialize_ms)}"
        case "broken":
            message = f"{server.id} does not start: {server.problem}"
        case "missing" | "withheld":
            message = f"{server.id}: {server.problem}"
    more = [f"program: {server.path}"] if server.path else []
    more += [f"not trusted, so {server.given_up}"] if server.given_up else []
    words = [line for line in server.last_words if sanitised(line, MAX_LINE)]
    more += [f"it said: {line}" for line in words[-MAX_LAST_WORDS:]]
    more += [f"it needs {', '.join(server.needs)}"] if server.needs else []
    if server.looked_in:
        rest = len(server.looked_in) - MAX_FOLDERS
        folders = ", ".join(server.looked_in[:MAX_FOLDERS]) + (f" and {rest} more" if rest > 0 else "")
        more.append(f"looked in: {folders}")
    yield from _said("    ", server.grade, message, server.advice, more)


def _said(indent: str, grade: Grading, message: str, advice: Sequence[str], more: Sequence[str] = ()) -> Iterator[str]:
    yield _clean(f"{indent}{grade:<5} {message}")
    steps = [f"{'or' if number else '→'} {step}" for number, step in enumerate(advice)]
    for line in (*more, *steps):
        yield _clean(f"{indent}      {line}")


def _ending(report: DoctorReport) -> Iterator[str]:
    todos = list(dict.fromkeys(_todos(report)))
    if not todos:
        yield "All is well."
        return
    yield f"{counted(len(todos), 'thing')} to do:"
    for number, step in enumerate(todos, 1):
        # On one line however long: it is there to be copied.
        yield _clean(f"  {number}. {step}")


def _todos(report: DoctorReport) -> Iterator[str]:
    for language in report.languages:
        for server in language.servers:
            if server.grade == "todo":
                yield server.advice[0] if server.advice else f"Look at {server.id}: {server.problem}"
    for finding in report.findings:
        if finding.grade == "todo":
            yield finding.advice[0] if finding.advice else f"{finding.subject}: {finding.message}"


def _camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {CAMEL.sub(lambda found: found[1].upper(), name): _camel_case(inner) for name, inner in fields}
    if isinstance(value, list | tuple):
        return [_camel_case(inner) for inner in cast("Sequence[Any]", value)]
    return value


def _clean(line: str) -> str:
    """The line without what could harm a terminal; its indentation stays."""
    bare = line.lstrip(" ")
    return " " * (len(line) - len(bare)) + sanitised(bare, MAX_LINE)
