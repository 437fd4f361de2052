"""`pilotfish setup`: write what a host needs in order to call us, show it, and take it back.

Nothing is written before it was shown and kept a copy of; what cannot be read is refused, and then nothing is changed.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import click

from pilotfish.errors import Code, Failure, Refused
from pilotfish.surfaces.cli.completion import hosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pilotfish.hosts.shared.changes import HostFileChange
    from pilotfish.hosts.shared.host_spec import HostSpec, SetupScope, Way, Where
    from pilotfish.hosts.shared.receipts import Receipts


@click.command()
@click.argument("host", required=False, shell_complete=hosts)
@click.option("--project", "scope", flag_value="project", help="In this project's files.")
@click.option("--global", "scope", flag_value="global", help="In your own files, for every project. (default)")
@click.option("--all", "every", is_flag=True, help="Every host that is on this machine.")
@click.option("--dry-run", is_flag=True, help="Show the changes and write nothing.")
@click.option("--remove", is_flag=True, help="Take out what setup put in.")
@click.option("--status", is_flag=True, help="What is wired where, and whether it works.")
@click.option(
    "--by",
    "way",
    type=click.Choice(["command", "mcp"]),
    default="command",
    show_default=True,
    help="How the host calls after an edit, where it knows both: it starts a program, or asks the MCP server.",
)
@click.option("--root", metavar="DIR", help="The project, for --project; by default the one around this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
@click.pass_context
def setup(
    context: click.Context,
    host: str | None,
    scope: SetupScope | None,
    every: bool,  # noqa: FBT001 -- click passes flags
    dry_run: bool,  # noqa: FBT001
    remove: bool,  # noqa: FBT001
    status: bool,  # noqa: FBT001
    way: Way,
    root: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Wire a coding agent to Pilotfish, and undo it.

    It gets hooks after its edits, and tools for its model. What is changed is shown first, and a copy is kept. HOST is
    one of: aider, claude-code, cline, codex, crush, cursor, gemini, goose, llxprt, opencode, pi, qwen, zed.
    """
    from pilotfish.config.places import user_places
    from pilotfish.hosts.shared.receipts import Receipts

    receipts = Receipts(os.path.join(user_places(os.environ).state, "setup"))
    rows = _rows(host, every=every or (status and host is None))
    if status:
        context.exit(_print_status(rows, root, receipts, as_json=as_json))
    where = _where(scope or "global", root, way)
    if every:
        rows = [row for row in rows if _is_here(row, where) and where.scope in row.scopes]
        click.echo(f"Found here: {', '.join(row.title for row in rows) or 'none'}.")
    refused = [
        row for row in rows if not _carried_out(row, where, receipts, dry_run=dry_run, remove=remove, every=every)
    ]
    context.exit(1 if refused else 0)


def _rows(host: str | None, *, every: bool) -> list[HostSpec]:
    from pilotfish.hosts.registry import load_host, load_hosts

    if every == (host is not None):
        raise click.UsageError("Name one HOST, or say --all.")
    return list(load_hosts().values()) if host is None else [load_host(host)]


def _where(scope: SetupScope, root: str | None, way: Way = "command") -> Where:
    from pilotfish.config.places import user_places
    from pilotfish.hosts.shared.host_spec import Where
    from pilotfish.hosts.shared.programs import installed_programs
    from pilotfish.system.worktree import top_of

    places = user_places(os.environ)
    folder = os.path.abspath(root) if root else top_of(os.getcwd())
    return Where(scope, places.home, places.config, folder, os.environ, installed_programs(os.environ), way)


def _is_here(row: HostSpec, where: Where) -> bool:
    programs = any(shutil.which(name) for name in row.programs)
    return programs or any(os.path.exists(os.path.join(where.home, folder)) for folder in row.folders)


def _carried_out(row: HostSpec, where: Where, receipts: Receipts, *, dry_run: bool, remove: bool, every: bool) -> bool:
    """Do one host; with several, one that is refused does not keep the others from it."""
    from pilotfish.hosts.shared.changes import carry_out, plan_removal, plan_setup

    if where.scope not in row.scopes:
        raise Refused(Code.INVALID_INPUT, f"{row.title} has no files in a project", hint="Say --global.")
    try:
        if remove:
            changes = [plan_removal(file, receipts) for file in row.files(where)]
        else:
            planned = [plan_setup(file, receipts) for file in row.files(where)]
            changes = [change for change in planned if change is not None]
        _show(row, changes)
        if not dry_run:
            carry_out(changes, receipts, remove=remove)
    except Failure as failure:
        if not every:
            raise
        click.echo(f"{row.title}: {failure.message} {failure.hint or ''}".rstrip(), err=True)
        return False
    if not remove:
        _say_what_is_left(row, where, changes, receipts, dry_run=dry_run)
    return True


def _show(row: HostSpec, changes: Sequence[HostFileChange]) -> None:
    from pilotfish.hosts.shared.changes import diff_of

    needed = [change for change in changes if change.is_needed]
    if not needed:
        click.echo(f"{row.title}: nothing to change.")
    for change in needed:
        click.echo(diff_of(change))


def _say_what_is_left(
    row: HostSpec, where: Where, changes: Sequence[HostFileChange], receipts: Receipts, *, dry_run: bool
) -> None:
    for caution, holds in row.cautions.items():
        if holds(where):
            click.echo(f"{row.title}: {caution}")
    if dry_run or not any(change.is_needed for change in changes):
        return
    for change in changes:
        if change.without is not None and change.is_needed:
            click.echo(f"Kept as it was: {change.now.path} in {receipts.backup(change.now.target)}")
    for sentence in row.afterwards:
        click.echo(f"{row.title}: {sentence}")
    click.echo(f"Undo it with `pilotfish setup {row.name}{' --project' if not where.is_global else ''} --remove`.")


# --- Status ---------------------------------------------------------------------------------------------------------


def _print_status(rows: Sequence[HostSpec], root: str | None, receipts: Receipts, *, as_json: bool) -> int:
    """Print what is wired; 1 when something of it does not work."""
    from pilotfish.hosts.shared.status import check_host

    found = [check_host(row, _where(scope, root), receipts) for row in rows for scope in row.scopes]
    told = [status for status in found if status is not None]
    if as_json:
        click.echo(json.dumps([status.as_json() for status in told]))
    else:
        for status in told:
            for line in status.lines():
                click.echo(line)
        if not told:
            click.echo("No host is wired. `pilotfish setup --all` wires those that are on this machine.")
    return 1 if any(status.trouble for status in told) else 0
