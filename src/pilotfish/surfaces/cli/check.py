"""`pilotfish check`: the verdict on files and folders, or on a text that is not on disk.

Findings are errors and warnings, or what `--severity` says. Text shows the findings and counts the rest; without
`--severity`, JSON carries everything. The exit code is that of the findings.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Diagnostic
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.surfaces.cli import completing
from pilotfish.surfaces.cli.terminal.exit_codes import Ending, ending_of_check, refused
from pilotfish.surfaces.cli.workspace import OpenWorkspace, daemon_option, json_option, root_option, with_workspace

if TYPE_CHECKING:
    from pilotfish.library.questions import Diagnostics

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
@click.argument("paths", metavar="[FILE|DIR]…", nargs=-1, shell_complete=completing.files)
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
    """Fresh errors and warnings of files or folders.

    Without a path, the current folder. Exit code: 0 clean, 1 findings, 2 no verdict, 3 wrong use.
    """
    if from_stdin and (len(paths) != 1 or watch):
        raise click.UsageError("--stdin takes exactly one FILE, and no --watch.")
    text = _standard_input() if from_stdin else None
    order = Order(paths or (".",), text, only_new, severity, skip_missing, as_json)

    async def work(workspace: OpenWorkspace) -> Ending:
        if watch:
            await _for_ever(workspace, order)
        return report(await checked(workspace, order), workspace.root, order)

    try:
        result = with_workspace(root, work)
    except Failure as failure:
        result = report(refused(Operation.DIAGNOSTICS, failure), "", order)
    click.get_current_context().exit(result)


async def _for_ever(workspace: OpenWorkspace, order: Order) -> None:
    """Check after every change, until somebody interrupts it."""
    from pilotfish.surfaces.cli.check_watch import watching

    async with watching(order.paths) as changed:
        while True:
            report(await checked(workspace, order), workspace.root, order)
            await changed()


async def checked(workspace: OpenWorkspace, order: Order) -> Diagnostics:
    """The verdict, with a bar or a line for a person who waits."""
    from pilotfish.surfaces.cli.check_files import gathered, shortfalls
    from pilotfish.surfaces.cli.check_run import merged, verdict
    from pilotfish.surfaces.cli.terminal.progress import progress
    from pilotfish.surfaces.cli.terminal.spinner import waiting_shown

    started = time.monotonic()
    found = await gathered(workspace, order.paths)
    texts = None if order.text is None else {order.paths[0]: order.text}
    if texts is not None and order.only_new:
        # What is on disk is what the proposed text is compared with.
        await workspace.check(order.paths[0])
    alone = len(found.files) == 1
    with progress(len(found.files)) as bar:
        async with waiting_shown(workspace) if alone else nullcontext():
            answers = await verdict(workspace, found, texts=texts, done=bar.step)
    missing = shortfalls(found)
    return merged(
        answers,
        duration_ms=round((time.monotonic() - started) * 1000),
        errors=() if order.skip_missing else missing,
        notes=[one.message for one in missing] if order.skip_missing else [],
    )


def report(said: Diagnostics, root: str, order: Order) -> Ending:
    """Print the verdict, and say how the command ends."""
    from pilotfish.surfaces.cli.check_run import only
    from pilotfish.surfaces.cli.terminal.printing import print_answer

    findings = only(said, order.is_finding)
    if order.as_json:
        shown = only(said, order.is_wanted) if order.severity is None else findings
    else:
        shown = replace(findings, meta=replace(findings.meta, warnings=(*findings.meta.warnings, *_rest(said, order))))
    print_answer(shown, root, as_json=order.as_json, texts=_texts(order))
    return ending_of_check(said, _count(findings.data))


def _rest(said: Diagnostics, order: Order) -> tuple[str, ...]:
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
