"""The doctor's report, as text and as JSON. Pure.

A line begins with `ok`, `note` (good to know, nothing to do) or `todo`. Every `todo` says what to do, as a command
where there is one; all of them are listed again at the end. A missing server for documents or settings is a footnote:
the code of the project is checked without it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from pilotfish.counting import counted
from pilotfish.sanitise import sanitised
from pilotfish.servers.toolchains import Shortfall
from pilotfish.surfaces.cli.terminal.table import latency
from pilotfish.system.ports import confinement_text

Grading = Literal["ok", "note", "todo"]

MAX_LINE = 1000  # Code points of one line: some repeat the words of a server or a file (T32)
MAX_STDERR = 5  # Lines of a server's standard error in the text; JSON has all that was kept
MAX_FOLDERS = 3  # Folders that were searched, in the text


class ServerReport(Struct, frozen=True, rename="camel"):
    """One server at one root, and what happened when it was started; `ready`: it was not."""

    id: str
    name: str
    root: str
    state: Literal["ready", "works", "broken", "missing", "withheld"]
    path: str | None = None
    version: str | None = None
    initialize_ms: int | None = None
    problem: str | None = None
    last_words: tuple[str, ...] = ()  # The end of its standard error, where it does not work
    given_up: str | None = None  # What it does without, because the workspace is not trusted
    incomplete: bool = False  # Whether it misses errors without that, or without what it `needs`
    looked_in: tuple[str, ...] = ()  # Where a missing program was looked for
    advice: tuple[str, ...] = ()  # What to do; further ones are alternatives
    needs: tuple[str, ...] = ()  # What a missing server needs besides itself, and what one that works does less without
    confined: tuple[str, ...] = ()  # What the system held it to while it started, because the workspace is not trusted
    optional: bool = False
    """Whether it is for documents, settings or a minor language, so that the main code is checked without it."""

    @property
    def grade(self) -> Grading:
        if self.is_footnote:
            return "note"
        return "ok" if self.state in {"ready", "works"} and not self.incomplete else "todo"

    @property
    def is_footnote(self) -> bool:
        return self.optional and self.state == "missing"


class LanguageReport(Struct, frozen=True, rename="camel"):
    language: str
    files: int
    example: str
    servers: tuple[ServerReport, ...]
    lacking: Shortfall | None = None  # What its files need besides a server


class SetupFinding(Struct, frozen=True, rename="camel"):
    subject: str
    grade: Grading
    message: str
    advice: tuple[str, ...] = ()


class DoctorReport(Struct, frozen=True, rename="camel"):
    version: str
    system: str
    root: str
    trusted: bool
    languages: tuple[LanguageReport, ...]
    findings: tuple[SetupFinding, ...]
    unserved: int = 0  # Files that no server handles

    @property
    def is_well(self) -> bool:
        return not any(True for _ in _todos(self))


def report_json(report: DoctorReport) -> dict[str, Any]:
    """Names are camel case, as everywhere on our wires."""
    return {"ok": report.is_well, **msgspec.to_builtins(report)}


def report_lines(report: DoctorReport) -> Iterator[str]:
    yield _clean(f"pilotfish {report.version} on {report.system}")
    yield _clean(f"Workspace {report.root} ({'trusted' if report.trusted else 'not trusted'})")
    yield from ("", "Languages")
    for language in report.languages:
        servers = [server for server in language.servers if not server.is_footnote]
        if servers:
            yield _clean(f"  {language.language} ({counted(language.files, 'file')}, such as {language.example})")
        for server in servers:
            yield from _server_lines(server)
        if servers and language.lacking is not None:
            steps = (language.lacking.step,) if language.lacking.step else ()
            yield from _entry("    ", "todo" if steps else "note", language.lacking.what, steps)
    if not report.languages:
        yield "  No language server handles any file here."
    yield from ("", "Setup")
    for finding in report.findings:
        yield from _entry("  ", finding.grade, f"{finding.subject}: {finding.message}", finding.advice)
    notes = [(one, server) for one in report.languages for server in one.servers if server.is_footnote]
    if notes:
        yield from ("", "Optional, not installed")
    for language, server in notes:
        how = f": {server.advice[0]}" if server.advice else ""
        yield _clean(f"  {server.id}, for {language.language} ({counted(language.files, 'file')}){how}")
    yield ""
    todos = list(dict.fromkeys(_todos(report)))
    yield f"{counted(len(todos), 'thing')} to do:" if todos else "Everything works."
    for number, step in enumerate(todos, 1):
        # On one line however long: it is there to be copied.
        yield _clean(f"  {number}. {step}")


def _server_lines(server: ServerReport) -> Iterator[str]:
    match server.state:
        case "ready":
            message = f"{server.id} is ready"
        case "works":
            version = f" {server.version}" if server.version else ""
            message = f"{server.id}{version} starts in {latency(server.initialize_ms)}"
        case "broken":
            message = f"{server.id} does not start: {server.problem}"
        case "missing" | "withheld":
            message = f"{server.id}: {server.problem}"
    more = [f"program: {server.path}"] if server.path else []
    more += [f"because the workspace is not trusted, {server.given_up}"] if server.given_up else []
    more += [f"confined: {confinement_text(server.confined)}"] if server.confined else []
    words = [line for line in server.last_words if sanitised(line, MAX_LINE)]
    more += [f"stderr: {line}" for line in words[-MAX_STDERR:]]
    more += [f"needs {', '.join(server.needs)}"] if server.needs else []
    if server.looked_in:
        rest = len(server.looked_in) - MAX_FOLDERS
        folders = ", ".join(server.looked_in[:MAX_FOLDERS]) + (f" and {rest} more" if rest > 0 else "")
        more.append(f"searched: {folders}")
    yield from _entry("    ", server.grade, message, server.advice, more)


def _entry(indent: str, grade: Grading, message: str, advice: Sequence[str], more: Sequence[str] = ()) -> Iterator[str]:
    yield _clean(f"{indent}{grade:<5} {message}")
    steps = [f"{'or' if number else '→'} {step}" for number, step in enumerate(advice)]
    for line in (*more, *steps):
        yield _clean(f"{indent}      {line}")


def _todos(report: DoctorReport) -> Iterator[str]:
    for language in report.languages:
        for server in language.servers:
            if server.grade == "todo":
                yield server.advice[0] if server.advice else f"{server.id}: {server.problem}"
        if language.lacking is not None and language.lacking.step:
            yield language.lacking.step
    for finding in report.findings:
        if finding.grade == "todo":
            yield finding.advice[0] if finding.advice else f"{finding.subject}: {finding.message}"


def _clean(line: str) -> str:
    """The line without control characters; its indentation stays."""
    bare = line.lstrip(" ")
    return " " * (len(line) - len(bare)) + sanitised(bare, MAX_LINE)
