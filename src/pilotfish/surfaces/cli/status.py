"""`pilotfish status`: every known server as it stands for the workspace. Starts neither a daemon nor a server.

Exit codes: 0 nothing is broken, 1 a server is broken, 2 the service itself cannot run.
"""

from __future__ import annotations

import json
import shutil
import sys

import click

from pilotfish.surfaces.cli.workspace import root_option

BROKEN = 1
UNAVAILABLE = 2


@click.command()
@root_option
@click.option("--json", "as_json", is_flag=True, help="Print the snapshot as JSON.")
@click.pass_context
def status(context: click.Context, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Every language server and its state.

    In this workspace. Without a daemon, what the configuration says; none is started. Exit code: 0, 1 when a server is
    broken, 2 when nothing can run.
    """
    import msgspec

    from pilotfish.errors import Code, Failure
    from pilotfish.surfaces.cli.running_daemon import snapshot
    from pilotfish.surfaces.cli.terminal.status_text import status_lines

    try:
        found, daemon = snapshot(root)
    except Failure as failure:
        if failure.code in {Code.ROOT_GONE, Code.INVALID_INPUT}:
            raise
        _unavailable(failure, as_json=as_json)
        context.exit(UNAVAILABLE)
    if as_json:
        click.echo(json.dumps({"daemon": daemon, **msgspec.to_builtins(found)}, indent=2))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(status_lines(found, daemon=daemon, width=width)))
    context.exit(BROKEN if found.totals.broken else 0)


def _unavailable(failure: Exception, *, as_json: bool) -> None:
    from pilotfish.sanitise import sanitised

    reason = sanitised(str(failure), 1000)
    click.echo(json.dumps({"unavailable": reason}) if as_json else f"LSP unavailable: {reason}")
