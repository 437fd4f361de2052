"""What a check prints: the errors of each file as soon as those of the files before it are known, then all the rest.

The order is that of the files, whatever was known first, so that two checks can be compared. JSON and SARIF are one
document each, printed at the end. A check that is interrupted ends with what is known.
"""

from collections.abc import Callable

import click
from msgspec import Struct, field

from pilotfish.api.answers import Diagnostic, DiagnosticsAnswer, Effort, answer_from, with_data
from pilotfish.api.questions import Operation
from pilotfish.service.check_answer import ALL_SKIPPED, CheckEvent, FilesToCheck, merged
from pilotfish.surfaces.cli.check_options import CheckOptions
from pilotfish.surfaces.cli.terminal.answers import Screen
from pilotfish.surfaces.cli.terminal.check_formats import github_lines, github_remarks, sarif
from pilotfish.surfaces.cli.terminal.check_text import MAX_LISTED, ListingOptions, first_lines
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_check
from pilotfish.surfaces.cli.terminal.printing import Printed, printed_answer, printed_check, relative_to
from pilotfish.surfaces.cli.terminal.progress import ProgressBar

PROGRESS = "checked {} of {} files"

NOTHING_CHANGED = "No file has changed since HEAD."


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
        """Print what is left."""
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
        lines = self._lines(answer)
        if lines:
            with self._progress.aside():
                self._write(Printed("\n".join(lines)))

    def _lines(self, answer: DiagnosticsAnswer) -> list[str]:
        found = only(answer, self._options.is_wanted)
        match self._options.format:
            case "github":
                return [*github_lines(only(found, self._options.is_printed))]
            case "text":
                shown = relative_to(self._cwd, found, self._root)
                lines, told = first_lines(shown, listing(self._options, self._screen), self._told, self._screen)
                self._told += told
                return lines if self._screen else [*map(click.unstyle, lines)]
            case _:
                return []


def only(answer: DiagnosticsAnswer, is_wanted: Callable[[Diagnostic], bool]) -> DiagnosticsAnswer:
    """The answer with the wanted diagnostics alone; every file that was checked stays in it."""
    return with_data(answer, {path: tuple(filter(is_wanted, items)) for path, items in (answer.data or {}).items()})


def printed_nothing_changed(root: str, form: str) -> Printed:
    match form:
        case "json":
            # No server was asked, so no answer may call itself fresh.
            nothing: DiagnosticsAnswer = answer_from(Operation.DIAGNOSTICS, None, Effort(caveats=(NOTHING_CHANGED,)))
            return printed_answer(nothing, root, "", None, as_json=True)
        case "sarif":
            return Printed(sarif(None, root))
        case "text":
            return Printed(NOTHING_CHANGED)
        case _:
            return Printed()


def exit_code(answer: DiagnosticsAnswer, request: CheckOptions) -> ExitCode:
    if answer.meta.reason == ALL_SKIPPED:
        return ExitCode.OK
    findings = only(only(answer, request.is_wanted), request.is_finding)
    return exit_code_of_check(answer, sum(map(len, (findings.data or {}).values())))


def printed_report(
    answer: DiagnosticsAnswer, root: str, cwd: str, request: CheckOptions, screen: Screen | None, told: int | None
) -> Printed:
    """The answer as it is printed in the folder `cwd`; without a `screen`, in a pipe.

    `told`: how many errors were printed file by file; None: nothing was.
    """
    wanted = only(answer, request.is_wanted)
    match request.format:
        case "json":
            return printed_answer(only(wanted, request.is_printed), root, cwd, None, as_json=True)
        case "sarif":
            return Printed(sarif(only(wanted, request.is_printed), root))
        case "github":
            printed = only(wanted, request.is_printed)
            lines = [*(github_lines(printed) if told is None else ()), *github_remarks(printed)]
            return Printed("\n".join(lines) or None)
        case _:
            return printed_check(wanted, root, cwd, listing(request, screen), screen, told or 0)


def listing(request: CheckOptions, screen: Screen | None) -> ListingOptions:
    if request.everything:
        return ListingOptions("hint", "hint", None)
    if request.severity is not None:
        return ListingOptions(request.severity, request.severity, None)
    return ListingOptions(limit=MAX_LISTED if screen else None)
