"""What a check prints: the errors of each file as soon as those of the files before it are known, then all the rest.

The order is that of the files, whatever was known first, so that two checks can be compared. JSON and SARIF are one
document each, printed at the end. A check that is interrupted ends with what is known.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import click

from pilotfish.api.answers import DiagnosticsAnswer
from pilotfish.service.project_files import FilesToCheck
from pilotfish.surfaces.cli.check_request import CheckRequest
from pilotfish.surfaces.cli.check_run import merged, only
from pilotfish.surfaces.cli.terminal.answers import Screen
from pilotfish.surfaces.cli.terminal.check_formats import github_lines, github_remarks, sarif
from pilotfish.surfaces.cli.terminal.check_text import ListingOptions, first_lines
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_check
from pilotfish.surfaces.cli.terminal.printing import Printed, print_all, printed_answer, printed_check, screen_of
from pilotfish.surfaces.cli.terminal.relative_paths import relative_to


class CheckOutput:
    """The output of one check that runs."""

    def __init__(
        self,
        root: str,
        chosen: FilesToCheck,
        request: CheckRequest,
        started: float,
        aside: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`aside` keeps the progress out of the way of what is printed in its block."""
        self._root = root
        self._chosen = chosen
        self._request = request
        self._started = started
        self._aside = aside
        self._screen = screen_of(request.texts) if sys.stdout.isatty() else None
        self._known: dict[str, DiagnosticsAnswer] = {}
        self._printed = 0
        """How many files were, the first ones."""
        self._told = 0
        """How many errors were printed."""

    def add(self, path: str, answer: DiagnosticsAnswer) -> None:
        """Take the answer about one file, and print what can be printed now."""
        self._known[path] = answer
        files = self._chosen.files
        while self._printed < len(files) and files[self._printed] in self._known:
            self._print(self._known[files[self._printed]])
            self._printed += 1

    def end(self) -> DiagnosticsAnswer:
        """Print what is left, and return all that was found."""
        request, answers = (
            self._request,
            {path: self._known[path] for path in self._chosen.files if path in self._known},
        )
        duration = round((time.monotonic() - self._started) * 1000)
        answer = merged(self._chosen, answers, self._root, duration_ms=duration, skip_missing=request.skip_missing)
        print_all(printed_report(answer, self._root, os.getcwd(), request, self._screen, self._told))
        return answer

    def interrupted(self) -> None:
        """Print all that is known, also of files that stand behind one that is not."""
        for path in self._chosen.files[self._printed :]:
            if path in self._known:
                self._print(self._known[path])
        self.end()

    def _print(self, answer: DiagnosticsAnswer) -> None:
        lines = self._lines(answer)
        if lines:
            with self._aside():
                click.echo("\n".join(lines))
                # Whoever reads the other end of a pipe need not wait for more.
                sys.stdout.flush()

    def _lines(self, answer: DiagnosticsAnswer) -> list[str]:
        found = only(answer, self._request.is_wanted)
        match self._request.format:
            case "github":
                return [*github_lines(only(found, self._request.is_printed))]
            case "text":
                shown = relative_to(os.getcwd(), found, self._root)
                lines, told = first_lines(shown, listing(self._request), self._told, self._screen)
                self._told += told
                return lines if self._screen else [*map(click.unstyle, lines)]
            case _:
                return []


def exit_code(answer: DiagnosticsAnswer, request: CheckRequest) -> ExitCode:
    findings = only(only(answer, request.is_wanted), request.is_finding)
    return exit_code_of_check(answer, sum(map(len, (findings.data or {}).values())))


def printed_report(
    answer: DiagnosticsAnswer, root: str, cwd: str, request: CheckRequest, screen: Screen | None, told: int | None
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
            return printed_check(wanted, root, cwd, listing(request), screen, told or 0)


def listing(request: CheckRequest) -> ListingOptions:
    if request.everything:
        return ListingOptions("hint", "hint", None)
    if request.severity is not None:
        return ListingOptions(request.severity, request.severity, None)
    return ListingOptions()
