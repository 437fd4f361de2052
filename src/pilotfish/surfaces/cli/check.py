"""`pilotfish check`: the verdict on files and folders, or on a text that is not on disk.

Findings are errors and warnings, or what `--severity` says. Text shows the findings and counts the rest; without
`--severity`, JSON carries everything. The exit code is that of the findings.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Diagnostic
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath
from pilotfish.surfaces.cli import completion
from pilotfish.surfaces.cli.open_workspace import with_workspace
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode, exit_code_of_check, refusal
from pilotfish.surfaces.cli.workspace import OpenWorkspace, daemon_option, json_option, root_option

if TYPE_CHECKING:
    from pilotfish.api.answers import DiagnosticsAnswer
    from pilotfish.system.ports import Interest

SEVERITIES = ("error", "warning", "information", "hint")


class Order(Struct, frozen=True):
    """What to check, and what of it to tell."""

    paths: tuple[str, ...]
    text: str | None
    only_new: bool
    severity: str | None
    skip_missing: bool
    as_json: bool

    def is_finding(self, found: Diagnostic) -> bool:
        limit = self.severity or "warning"
        return SEVERITIES.index(found.severity) <= SEVERITIES.index(limit) and self.is_wanted(found)

    def is_wanted(self, found: Diagnostic) -> bool:
        return not (self.only_new and found.introduced is False)


@click.command()
@click.argument("paths", metavar="[FILE|DIR]…", nargs=-1, shell_complete=completion.files)
@click.option("--stdin", "from_stdin", is_flag=True, help="Judge the text on standard input as that of the one FILE.")
@click.option("--only-new", is_flag=True, help="Only what was not there before, where that is known.")
@click.option("--severity", type=click.Choice(SEVERITIES), help="The least that counts; warnings by default.")
@click.option("--skip-missing", is_flag=True, help="Leave out files of folders whose server is not installed.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
@root_option
@daemon_option
@json_option
def check(
    paths: tuple[str, ...],
    from_stdin: bool,  # noqa: FBT001 -- click passes flags
    only_new: bool,  # noqa: FBT001
    severity: str | None,
    skip_missing: bool,  # noqa: FBT001
    watch: bool,  # noqa: FBT001
    root: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Check files and folders for errors and warnings.

    Without a path, the current folder. Exit code: 0 clean, 1 findings, 2 no verdict, 3 wrong use.
    """
    if from_stdin and (len(paths) != 1 or watch):
        raise click.UsageError("--stdin takes exactly one FILE, and no --watch.")
    text = _standard_input() if from_stdin else None
    order = Order(paths or (".",), text, only_new, severity, skip_missing, as_json)

    async def work(workspace: OpenWorkspace) -> ExitCode:
        if watch:
            await _for_ever(workspace, order)
        return report(await checked(workspace, order), workspace.root, order)

    try:
        result = with_workspace(root, work)
    except Failure as failure:
        result = report(refusal(Operation.DIAGNOSTICS, failure), "", order)
    click.get_current_context().exit(result)


async def _for_ever(workspace: OpenWorkspace, order: Order) -> None:
    """Check after every change, until somebody interrupts it."""
    async with watching(order.paths) as changed:
        while True:
            report(await checked(workspace, order), workspace.root, order)
            await changed()


async def checked(workspace: OpenWorkspace, order: Order) -> DiagnosticsAnswer:
    """The verdict, with a bar or a line for a person who waits."""
    from pilotfish.surfaces.cli.check_run import gathered, merged, shortfalls, verdict
    from pilotfish.surfaces.cli.terminal.progress import progress_bar, spinner

    started = time.monotonic()
    found = await gathered(workspace, order.paths)
    texts = None if order.text is None else {order.paths[0]: order.text}
    if texts is not None and order.only_new:
        # What is on disk is what the proposed text is compared with.
        await workspace.check(order.paths[0])
    alone = len(found.files) == 1
    with progress_bar(len(found.files)) as bar:
        async with spinner(workspace) if alone else nullcontext():
            answers = await verdict(workspace, found, texts=texts, done=bar.step)
    missing = shortfalls(found)
    return merged(
        answers,
        duration_ms=round((time.monotonic() - started) * 1000),
        errors=() if order.skip_missing else missing,
        notes=[one.message for one in missing] if order.skip_missing else [],
    )


def report(said: DiagnosticsAnswer, root: str, order: Order) -> ExitCode:
    """Print the verdict, and say how the command ends."""
    from pilotfish.surfaces.cli.check_run import only
    from pilotfish.surfaces.cli.terminal.printing import print_answer

    findings = only(said, order.is_finding)
    if order.as_json:
        shown = only(said, order.is_wanted) if order.severity is None else findings
    else:
        shown = replace(findings, meta=replace(findings.meta, warnings=(*findings.meta.warnings, *_rest(said, order))))
    print_answer(shown, root, as_json=order.as_json, texts=_texts(order))
    return exit_code_of_check(said, _count(findings.data))


def _rest(said: DiagnosticsAnswer, order: Order) -> tuple[str, ...]:
    if order.severity is not None:
        return ()
    wanted = [found for items in (said.data or {}).values() for found in items if order.is_wanted(found)]
    lesser = sum(not order.is_finding(found) for found in wanted)
    return (f"{lesser} of lesser severity not shown (--severity hint)",) if lesser else ()


def _count(data: Mapping[str, tuple[Diagnostic, ...]] | None) -> int:
    return sum(map(len, (data or {}).values()))


def _texts(order: Order) -> Mapping[str, str]:
    return {} if order.text is None else {os.path.normpath(order.paths[0]): order.text}


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
                await watcher.stirred()

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
    return AbsPath(os.path.realpath(path))
