"""What a check prints: the errors of each file as soon as those of the files before it are known, then all the rest.

The order is that of the files, whatever was known first, so that two checks can be compared. JSON and SARIF are one
document each, printed at the end. A check that is interrupted ends with what is known.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import click
from msgspec import Struct, field

from pilotfish.api.answers import Diagnostic, DiagnosticsAnswer, Effort, State, answer_from, error_text, with_data
from pilotfish.api.questions import Operation
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME
from pilotfish.operations.render import state_line
from pilotfish.protocol.uris import uri_of
from pilotfish.sanitise import sanitised, sanitised_lines
from pilotfish.service.check_answer import ALL_SKIPPED, CheckEvent, FilesToCheck, merged
from pilotfish.surfaces.cli.terminal.answers import Screen
from pilotfish.surfaces.cli.terminal.check_text import CheckOptions, check_lines, first_lines
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_check, is_refused
from pilotfish.surfaces.cli.terminal.printing import Printed, printed_answer, relative_to
from pilotfish.surfaces.cli.terminal.progress import ProgressBar
from pilotfish.version import VERSION

PROGRESS = "checked {} of {} files"

NOTHING_CHANGED = "No file that can be checked has changed since HEAD."


class CheckOutput(Struct):
    """The output of one check that runs. Without a `screen`, it is printed in a pipe."""

    _options: CheckOptions
    _root: str
    _cwd: str
    _screen: Screen | None
    _write: Callable[[Printed], None]
    _progress: ProgressBar
    _chosen: FilesToCheck = FilesToCheck()
    _known: dict[str, DiagnosticsAnswer] = field(default_factory=dict[str, DiagnosticsAnswer])
    _printed: int = 0
    """How many files were, the first ones."""
    _told: int = 0
    """How many errors were printed."""

    def take(self, event: CheckEvent) -> None:
        """Take what the check tells, and print what can be printed now."""
        if isinstance(event, FilesToCheck):
            self._chosen, self._progress.total = event, len(event.files)
            return
        self._known[event.path] = event.answer
        files = self._chosen.files
        while self._printed < len(files) and files[self._printed] in self._known:
            # Counted first: an interrupt comes when a line was read, which may be before the next statement.
            self._printed += 1
            self._print(self._known[files[self._printed - 1]])
        self._progress.step()

    def end(self, answer: DiagnosticsAnswer) -> ExitCode:
        if self._options.changed and not (self._chosen.files or self._chosen.unserved or answer.errors):
            self._write(printed_nothing_changed(self._root, self._options.format))
            return ExitCode.OK
        self._write(printed_report(answer, self._root, self._cwd, self._options, self._screen, self._told))
        return exit_code(answer, self._options)

    def interrupted(self) -> None:
        """Print all that is known, also of files that stand behind one that is not."""
        for path in self._chosen.files[self._printed :]:
            if path in self._known:
                self._print(self._known[path])
        skips = self._options.skip_missing
        self.end(merged(self._chosen, self._known, self._root, duration_ms=0, skip_missing=skips))

    def _print(self, answer: DiagnosticsAnswer) -> None:
        found, options, lines = only(answer, self._options.is_wanted), self._options, list[str]()
        if options.format == "github":
            lines = [*github_lines(only(found, options.is_printed))]
        elif options.format == "text":
            shown = relative_to(self._cwd, found, self._root)
            lines, told = first_lines(shown, options, self._told, self._screen)
            self._told += told
        if lines:
            with self._progress.aside():
                self._write(_printed(lines, self._screen))


def only(answer: DiagnosticsAnswer, is_wanted: Callable[[Diagnostic], bool]) -> DiagnosticsAnswer:
    """The answer with the wanted diagnostics alone; every file that was checked stays in it."""
    return with_data(answer, {path: tuple(filter(is_wanted, items)) for path, items in (answer.data or {}).items()})


def printed_report(
    answer: DiagnosticsAnswer, root: str, cwd: str, options: CheckOptions, screen: Screen | None, told: int | None
) -> Printed:
    """The answer as it is printed in the folder `cwd`; without a `screen`, in a pipe.

    `told`: how many errors were printed file by file; None: nothing was.
    """
    wanted = only(answer, options.is_wanted)
    printed = only(wanted, options.is_printed)
    match options.format:
        case "sarif":
            return Printed(sarif(printed, root))
        case "github":
            lines = [*(github_lines(printed) if told is None else ()), *github_remarks(printed)]
            return Printed("\n".join(lines) or None)
        case "text" if not is_refused(answer):
            shown = relative_to(cwd, wanted, root) if root else wanted
            return _printed([*check_lines(shown, options, screen, told or 0)], screen)
        case form:
            return printed_answer(printed, root, cwd, None, as_json=form == "json")


def _printed(lines: list[str], screen: Screen | None) -> Printed:
    return Printed("\n".join(lines if screen else map(click.unstyle, lines)) or None)


def printed_nothing_changed(root: str, form: str) -> Printed:
    match form:
        case "json":
            # No server was asked, so no answer may call itself fresh.
            nothing: DiagnosticsAnswer = answer_from(Operation.DIAGNOSTICS, None, Effort(caveats=(NOTHING_CHANGED,)))
            return printed_answer(nothing, root, "", None, as_json=True)
        case "sarif":
            return Printed(sarif(None, root))
        case _:
            return Printed(NOTHING_CHANGED if form == "text" else None)


def exit_code(answer: DiagnosticsAnswer, options: CheckOptions) -> ExitCode:
    if answer.meta.reason == ALL_SKIPPED:
        return ExitCode.OK
    findings = only(only(answer, options.is_wanted), options.is_finding)
    return exit_code_of_check(answer, sum(map(len, (findings.data or {}).values())))


# --- A verdict for other programs: SARIF 2.1.0, and the workflow commands of GitHub Actions ---------------------------

# Paths are relative to the workspace. Everything that is in the answer is printed.

SARIF_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
GITHUB_COMMANDS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}

ROOT = "WORKSPACE"
"""The name of the workspace's folder in a SARIF log."""


def sarif(answer: DiagnosticsAnswer | None, root: str) -> str:
    """One SARIF log with one run; a rule is `SERVER` or `SERVER/CODE`. None: there was nothing to check."""
    rules: dict[str, int] = {}
    data = answer.data if answer else None
    results = [
        _sarif_result(path, found, rules.setdefault(_rule(found), len(rules)), root)
        for path, items in (data or {}).items()
        for found in items
    ]
    run = {
        "tool": {"driver": {"name": "pilotfish", "version": VERSION, "rules": [{"id": rule} for rule in rules]}},
        "invocations": [
            {
                "executionSuccessful": answer is None or answer.meta.state is State.FRESH,
                "toolExecutionNotifications": [
                    {"level": level, "message": {"text": text}} for level, text in (_remarks(answer) if answer else ())
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if root:
        run["originalUriBaseIds"] = {ROOT: {"uri": uri_of(root) + "/"}}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def github_lines(answer: DiagnosticsAnswer) -> Iterator[str]:
    """`::error file=a.py,line=1,col=5,title=…::message`, a line for each diagnostic."""
    for path, items in (answer.data or {}).items():
        for found in items:
            place = {"file": path, "line": str(found.line), "col": str(found.character)}
            if found.end_line == found.line and found.end_character > found.character:
                place["endColumn"] = str(found.end_character - 1)
            place["title"] = sanitised(_rule(found), MAX_NAME)
            properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
            yield f"::{GITHUB_COMMANDS[found.severity]} {properties}::{_data(found.message)}"


def github_remarks(answer: DiagnosticsAnswer) -> Iterator[str]:
    for level, text in _remarks(answer):
        yield f"::{'notice' if level == 'note' else level}::{_data(f'pilotfish: {text}')}"


def _sarif_result(path: str, found: Diagnostic, rule: int, root: str) -> dict[str, Any]:
    region = {
        "startLine": found.line,
        "startColumn": found.character,
        "endLine": found.end_line,
        "endColumn": found.end_character,
    }
    # A path as a relative URI: that of the file without that of the folder.
    uri = uri_of(f"/{path}")[len(uri_of("/")) :]
    place: dict[str, str] = {"uri": uri, **({"uriBaseId": ROOT} if root else {})}
    result: dict[str, Any] = {
        "ruleId": _rule(found),
        "ruleIndex": rule,
        "level": SARIF_LEVELS[found.severity],
        "message": {"text": sanitised_lines(found.message, MAX_MESSAGE)},
        "locations": [{"physicalLocation": {"artifactLocation": place, "region": region}}],
    }
    if found.introduced is not None:
        result["baselineState"] = "new" if found.introduced else "unchanged"
    return result


def _remarks(answer: DiagnosticsAnswer) -> Iterator[tuple[str, str]]:
    """Why the verdict is not whole, and what else to know, each with its level."""
    if answer.meta.state is not State.FRESH:
        yield "error" if answer.meta.state is State.UNAVAILABLE else "warning", state_line(answer.meta)
    for error in answer.errors:
        if error.message not in (answer.meta.reason or ""):
            yield "warning", sanitised_lines(error_text(error), MAX_MESSAGE)
    yield from (("note", sanitised_lines(note, MAX_MESSAGE)) for note in answer.meta.warnings)


def _rule(found: Diagnostic) -> str:
    return f"{found.server}/{found.code}" if found.code else found.server


def _data(text: str) -> str:
    """Text behind `::`; a line break would end the command."""
    clean = sanitised_lines(text, MAX_MESSAGE)
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    escaped = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C")
