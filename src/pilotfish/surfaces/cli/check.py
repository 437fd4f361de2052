"""`pilotfish check`: diagnostics of files and folders, or of a text that is not on disk.

Findings are errors and warnings, or what `--severity` says; they decide the exit code. Text lists the errors and counts
the rest (`--all` lists everything); JSON has everything unless `--severity` is given.
"""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import click
from msgspec.structs import replace

from pilotfish.api.answers import SEVERITIES, DiagnosticsAnswer, refused
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.service.check_answer import CheckedFile, CheckEvent, CheckRequest
from pilotfish.surfaces.cli import completion
from pilotfish.surfaces.cli.check_output import PROGRESS, CheckOutput, exit_code, printed_report
from pilotfish.surfaces.cli.terminal.check_text import FORMATS, CheckOptions
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode
from pilotfish.surfaces.cli.terminal.printing import find_screen, print_all
from pilotfish.surfaces.cli.terminal.progress import ProgressBar, spinner
from pilotfish.surfaces.cli.workspace import (
    OpenWorkspace,
    daemon_option,
    find_git,
    host_option,
    root_option,
    with_workspace,
)
from pilotfish.system.ports import Interest
from pilotfish.system.real_path import real_path

WAS_ASKED = "pilotfish.was_asked"
"""In the context of a command: whether its person was asked already which servers to install."""


@click.command()
@click.argument("paths", metavar="[FILE|DIR]…", nargs=-1, shell_complete=completion.files)
@click.option("--project", "whole", is_flag=True, help="The whole project, from any folder of it.")
@click.option("--changed", is_flag=True, help="Only files that git lists as changed since HEAD, or untracked.")
@click.option("--all", "everything", is_flag=True, help="List every diagnostic, not only the first errors.")
@click.option("--severity", type=click.Choice(SEVERITIES), help="The least that is a finding; by default warning.")
@click.option("--only-new", is_flag=True, help="Leave out what was there before, where that is known.")
@click.option("--stdin", "from_stdin", is_flag=True, help="Check the text on standard input as that of the one FILE.")
@click.option("--skip-missing", is_flag=True, help="Accept files without a server that is installed and may run.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="The output format."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the same as --format json.")
@root_option
@host_option
@daemon_option
def check(paths: tuple[str, ...], root: str | None, *, whole: bool, from_stdin: bool, watch: bool, **more: Any) -> None:
    """Check files and folders for errors and warnings.

    Without a path, the current folder. A second check asks only about what may have changed since. Lists errors and
    counts warnings; --all lists everything. Exit code: 0 clean, 1 findings, 2 no verdict, 3 wrong use.
    """
    if from_stdin and (len(paths) != 1 or watch or more["changed"]):
        raise click.UsageError("--stdin takes exactly one FILE, and neither --watch nor --changed.")
    if whole and (paths or from_stdin):
        raise click.UsageError("--project is everything: it takes no FILE or DIR.")
    if from_stdin:
        try:
            more["text"] = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refused(Code.INVALID_INPUT, "standard input is not UTF-8 text") from None
    options = CheckOptions(paths or (".",), **more)
    click.get_current_context().exit(_checked(options, root, whole=whole, watch=watch))


def _checked(options: CheckOptions, root: str | None, *, whole: bool, watch: bool) -> ExitCode:
    """Check and print; a person whose server is missing is asked whether to install it, and then checks again."""
    missing = list[str]()

    def work(workspace: OpenWorkspace) -> ExitCode:
        asked = replace(options, paths=(workspace.root,)) if whole else options
        if watch:
            _check_forever(workspace, asked)
        answer, code = check_and_print(workspace, asked)
        missing.extend(one.server_id for one in answer.errors if one.code is Code.SERVER_MISSING)
        return code

    try:
        code = with_workspace(root, work)
        if missing and options.format == "text" and options.text is None and _install(missing):
            code = with_workspace(root, work)
    except Failure as failure:
        answer = refused(Operation.DIAGNOSTICS, failure)
        print_all(printed_report(answer, "", "", options, None, None))
        code = exit_code(answer, options)
    return code


def _install(missing: Sequence[str]) -> bool:
    """Offer to install servers to a person at a terminal, who is asked once; whether any was installed."""
    from pilotfish.servers.install import bundles

    servers = [server for server in dict.fromkeys(missing) if server in bundles()]
    was_asked = click.get_current_context().meta.get(WAS_ASKED, False)
    if not servers or was_asked or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if not click.confirm(f"Install {' and '.join(servers)} now?", default=True):
        return False
    from pilotfish.surfaces.install import install

    click.get_current_context().invoke(install, servers=servers)
    return True


def _check_forever(workspace: OpenWorkspace, options: CheckOptions) -> None:
    from anyio.from_thread import start_blocking_portal

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(watching(options.paths)) as changed,
    ):
        while True:
            check_and_print(workspace, options)
            portal.call(changed)


def check_and_print(workspace: OpenWorkspace, options: CheckOptions) -> tuple[DiagnosticsAnswer, ExitCode]:
    """Check, and print as it goes, with a bar or a line on standard error for whoever waits."""
    changed = tuple(_changed_files(workspace.root)) if options.changed else None
    texts = {} if options.text is None else {os.path.normpath(options.paths[0]): options.text}
    bar = ProgressBar(0, in_pipes=PROGRESS)
    output = CheckOutput(options, workspace.root, os.getcwd(), find_screen(texts), print_all, bar)
    try:
        with bar, spinner(workspace) as stop:

            def take(event: CheckEvent) -> None:
                if isinstance(event, CheckedFile):
                    stop()
                output.take(event)

            if options.text is None:
                answer = workspace.check_files(CheckRequest(options.paths, changed, options.skip_missing), take)
            else:
                path = options.paths[0]
                if options.only_new:
                    # The proposed text is compared with what is on disk.
                    workspace.check(path)
                answer = workspace.check(path, texts={path: options.text})
    except KeyboardInterrupt:
        output.interrupted()
        raise
    return answer, output.end(answer)


def _changed_files(root: str) -> Sequence[str]:
    """What git lists, with what was deleted; raises `Refused` where git cannot say."""
    from pilotfish.system.git import changed_files, why_silent

    git = find_git(root)
    found = None if git is None else changed_files(git, AbsPath(root))
    if found is None:
        raise Refused(Code.INVALID_INPUT, f"--changed needs a git repository: {why_silent(AbsPath(root), git)}")
    return found


@asynccontextmanager
async def watching(paths: Sequence[str]) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Yields a function that waits until a file in `paths`, or below one, has changed since the last call."""
    from pilotfish.paths import is_inside
    from pilotfish.protocol.globs import file_glob
    from pilotfish.protocol.uris import uri_of
    from pilotfish.protocol.watching import WatchRegistration
    from pilotfish.system.watching.watcher import open_watcher

    real = [AbsPath(real_path(path)) for path in paths]
    folders = tuple(filter(os.path.isdir, real))
    files = frozenset(real) - frozenset(folders)
    globs = [file_glob({"baseUri": uri_of(folder), "pattern": "**/*"}) for folder in folders]
    beside = frozenset(AbsPath(os.path.dirname(path)) for path in files)

    def is_watched(path: AbsPath) -> bool:
        return path in files or any(is_inside(path, folder) for folder in folders)

    async with open_watcher() as watcher:
        await watcher.cover(Interest(folders, tuple(map(WatchRegistration, globs)), beside))

        async def changed() -> None:
            while not any(is_watched(change.path) for change in await watcher.drain()):
                await watcher.wait_for_changes()

        yield changed
