"""`pilotfish check`: diagnostics of files and folders, or of a text that is not on disk.

Findings are errors and warnings, or what `--severity` says; they decide the exit code. Text lists the errors and counts
the rest (`--all` lists everything); JSON has everything unless `--severity` is given.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from pilotfish.api.answers import Effort, answer_from
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.surfaces.cli import completion
from pilotfish.surfaces.cli.check_request import FORMATS, SEVERITIES, CheckRequest
from pilotfish.surfaces.cli.open_workspace import with_workspace
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, refusal
from pilotfish.surfaces.cli.workspace import OpenWorkspace, daemon_option, root_option
from pilotfish.system.real_path import real_path

if TYPE_CHECKING:
    from pilotfish.api.answers import DiagnosticsAnswer
    from pilotfish.surfaces.cli.check_output import CheckOutput
    from pilotfish.system.ports import Interest


@click.command()
@click.argument("paths", metavar="[FILE|DIR]…", nargs=-1, shell_complete=completion.files)
@click.option("--project", "whole", is_flag=True, help="The whole project, from any folder of it.")
@click.option("--changed", is_flag=True, help="Only files that git lists as changed since HEAD, or untracked.")
@click.option("--all", "everything", is_flag=True, help="List every diagnostic, not only the first errors.")
@click.option("--severity", type=click.Choice(SEVERITIES), help="The least that is a finding; by default warning.")
@click.option("--only-new", is_flag=True, help="Leave out what was there before, where that is known.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Check the text on standard input as that of the one FILE.")
@click.option("--skip-missing", is_flag=True, help="Accept files in folders whose server is not installed.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="The output format."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the same as --format json.")
@root_option
@daemon_option
def check(
    paths: tuple[str, ...],
    whole: bool,  # noqa: FBT001 -- click passes flags
    changed: bool,  # noqa: FBT001
    everything: bool,  # noqa: FBT001
    severity: str | None,
    only_new: bool,  # noqa: FBT001
    from_stdin: bool,  # noqa: FBT001
    skip_missing: bool,  # noqa: FBT001
    watch: bool,  # noqa: FBT001
    form: str,
    as_json: bool,  # noqa: FBT001
    root: str | None,
) -> None:
    """Check files and folders for errors and warnings.

    Without a path, the current folder. A second check asks only about what may have changed since. Lists errors and
    counts warnings; --all lists everything. Exit code: 0 clean, 1 findings, 2 no verdict, 3 wrong use.
    """
    if from_stdin and (len(paths) != 1 or watch or changed):
        raise click.UsageError("--stdin takes exactly one FILE, and neither --watch nor --changed.")
    if whole and (paths or from_stdin):
        raise click.UsageError("--project is everything: it takes no FILE or DIR.")
    text = _standard_input() if from_stdin else None
    form = "json" if as_json else form
    request = CheckRequest(paths or (".",), text, changed, only_new, severity, everything, skip_missing, form)

    async def work(workspace: OpenWorkspace) -> ExitCode:
        asked = replace(request, paths=(workspace.root,)) if whole else request
        if watch:
            await _check_forever(workspace, asked, run)
        answer = await run.check(workspace, asked)
        missing.extend(_missing_servers(answer))
        return ExitCode.OK if answer is None else _exit_code(answer, asked)

    missing, run = list[str](), CheckRun()
    try:
        code = with_workspace(root, work)
        if missing and form == "text" and not from_stdin and _install(missing):
            code = with_workspace(root, work)
    except KeyboardInterrupt:
        run.interrupted()
        raise
    except Failure as failure:
        code = _print_refusal(failure, request)
    click.get_current_context().exit(code)


def _missing_servers(answer: DiagnosticsAnswer | None) -> list[str]:
    """The servers for code that are not installed, as far as we can install them."""
    from pilotfish.servers.install import bundles

    errors = () if answer is None else answer.errors
    return [one.server_id for one in errors if one.code is Code.SERVER_MISSING and one.server_id in bundles()]


def _install(servers: Sequence[str]) -> bool:
    """Offer to install servers to a person at a terminal, who is asked once; whether any was installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    names = list(dict.fromkeys(servers))
    if not click.confirm(f"Install {' and '.join(names)} now?", default=True):
        return False
    from pilotfish.surfaces.install.verb import install

    click.get_current_context().invoke(install, servers=names)
    return True


async def _check_forever(workspace: OpenWorkspace, request: CheckRequest, run: CheckRun) -> None:
    """Check after every change, until interrupted."""
    async with watching(request.paths) as changed:
        while True:
            await run.check(workspace, request)
            await changed()


class CheckRun:
    """Checks, and prints as it goes, with a bar or a line on standard error for whoever waits."""

    def __init__(self) -> None:
        self._output: CheckOutput | None = None
        """Of the check that is under way."""

    async def check(self, workspace: OpenWorkspace, request: CheckRequest) -> DiagnosticsAnswer | None:
        """What was found; None when no file has changed."""
        from pilotfish.service.project_files import select
        from pilotfish.surfaces.cli.check_output import CheckOutput
        from pilotfish.surfaces.cli.check_run import check_files
        from pilotfish.surfaces.cli.terminal.progress import progress_bar, spinner

        started = time.monotonic()
        changed = _changed_files(workspace.root) if request.changed else None
        chosen = await select(workspace.root, workspace.unserved, request.paths, changed)
        if changed is not None and not (chosen.files or chosen.unserved):
            _print_nothing_changed(workspace.root, request.format)
            return None
        texts = None if request.text is None else {request.paths[0]: request.text}
        if texts is not None and request.only_new:
            # The proposed text is compared with what is on disk.
            await workspace.check(request.paths[0])
        with progress_bar(len(chosen.files), in_pipes="checked {} of {} files") as bar:
            self._output = output = CheckOutput(workspace.root, chosen, request, started, bar.aside)

            def done(path: str, answer: DiagnosticsAnswer) -> None:
                output.add(path, answer)
                bar.step()

            if len(chosen.files) == 1:
                async with spinner(workspace):
                    answer = await workspace.check(chosen.files[0], texts=texts)
                done(chosen.files[0], answer)
            else:
                await check_files(workspace, chosen, done=done)
        self._output = None
        return output.end()

    def interrupted(self) -> None:
        """Print what is known by now."""
        if self._output is not None:
            self._output.interrupted()


def _exit_code(answer: DiagnosticsAnswer, request: CheckRequest) -> ExitCode:
    from pilotfish.surfaces.cli.check_output import exit_code

    return exit_code(answer, request)


def _print_refusal(failure: Failure, request: CheckRequest) -> ExitCode:
    from pilotfish.surfaces.cli.check_output import printed_report
    from pilotfish.surfaces.cli.terminal.printing import print_all

    answer = refusal(Operation.DIAGNOSTICS, failure)
    print_all(printed_report(answer, "", "", request, None, None))
    return _exit_code(answer, request)


def _print_nothing_changed(root: str, form: str) -> None:
    message = "No file has changed since HEAD."
    if form == "json":
        from pilotfish.surfaces.cli.terminal.printing import print_answer

        # No server was asked, so no answer may call itself fresh.
        print_answer(answer_from(Operation.DIAGNOSTICS, None, Effort(caveats=(message,))), root, as_json=True)
    elif form == "sarif":
        from pilotfish.surfaces.cli.terminal.check_formats import sarif

        click.echo(sarif(None, root))
    elif form == "text":
        click.echo(message)


def _changed_files(root: str) -> Sequence[str]:
    """What git lists; raises `Refused` where git cannot say."""
    import shutil

    from pilotfish.servers.environment import search_path
    from pilotfish.system.git import changed_files

    # Never a git that the project brings along.
    path = os.pathsep.join(search_path(os.environ.get("PATH", ""), (AbsPath(root),), trusted=False))
    git = shutil.which("git", path=path)
    found = None if git is None else changed_files(git, AbsPath(root))
    if found is None:
        why = "git was not found" if git is None else f"git cannot list the changes of {root}"
        raise Refused(Code.INVALID_INPUT, f"--changed needs a git repository: {why}")
    return found


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(Code.INVALID_INPUT, "standard input is not UTF-8 text") from None


@asynccontextmanager
async def watching(paths: Sequence[str]) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Yields a function that waits until a file in `paths`, or below one, has changed since the last call."""
    from pilotfish.paths import is_inside
    from pilotfish.system.watching.watcher import open_watcher

    interest = _interest(paths)
    files = frozenset(map(_real, paths)) - frozenset(interest.roots)

    def is_watched(path: AbsPath) -> bool:
        return path in files or any(is_inside(path, folder) for folder in interest.roots)

    async with open_watcher() as watcher:
        await watcher.cover(interest)

        async def changed() -> None:
            while not any(is_watched(change.path) for change in await watcher.drain()):
                await watcher.wait_for_changes()

        yield changed


def _interest(paths: Sequence[str]) -> Interest:
    """Everything below the folders, and the folders that hold the files."""
    from pilotfish.protocol.globs import file_glob
    from pilotfish.protocol.uris import uri_of
    from pilotfish.protocol.watching import WatchRegistration
    from pilotfish.system.ports import Interest

    real = [_real(path) for path in paths]
    folders = tuple(path for path in real if os.path.isdir(path))
    globs = [file_glob({"baseUri": uri_of(folder), "pattern": "**/*"}) for folder in folders]
    beside = frozenset(AbsPath(os.path.dirname(path)) for path in real if path not in folders)
    return Interest(folders, tuple(map(WatchRegistration, globs)), beside)


def _real(path: str) -> AbsPath:
    return AbsPath(real_path(path))
