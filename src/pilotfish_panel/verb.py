"""`pilotfish panel`: the workspace's servers, live; without a terminal, a summary of the problems."""

import os
import sys
from collections.abc import Iterator

import click

from pilotfish.api.status import Snapshot
from pilotfish.errors import Code, Unavailable
from pilotfish.surfaces.cli.project import servers_in_use
from pilotfish.surfaces.cli.terminal.status_text import totals_line, trouble
from pilotfish.surfaces.cli.workspace import host_option, root_of, root_option
from pilotfish_panel.source import DaemonSource

MAX_TROUBLES = 10


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every server of the catalogue, not only this project's.")
@root_option
@host_option
def panel(everything: bool, root: str | None) -> None:  # noqa: FBT001 -- click passes flags
    """Show the same live, in the terminal.

    Every language server of this project with its state, memory, latency and recent output; restart and stop them
    there. Press ? for the keys.
    """
    used = None if everything else servers_in_use(os.path.abspath(root_of(root)))
    source = DaemonSource(root, used=used)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        snapshot, _ = source.snapshot()
        click.echo("\n".join(summary(snapshot)))
        return
    try:
        from pilotfish_panel.app import PanelApp
    except ImportError:
        from pilotfish.servers.install import extra_command

        hint = f"Install it with: {extra_command('panel')}. `pilotfish status` shows the same as text."
        raise Unavailable(Code.UNSUPPORTED, "the panel needs the textual package", hint=hint) from None
    PanelApp(source).run()


def summary(snapshot: Snapshot) -> Iterator[str]:
    """The totals, and the servers with problems."""
    yield snapshot.disabled or totals_line(snapshot.totals)
    troubled = [(row, why) for row in snapshot.rows if (why := trouble(row, snapshot.generated_at)) is not None]
    for row, why in troubled[:MAX_TROUBLES]:
        yield f"{row.server_id}: {why}"
    if len(troubled) > MAX_TROUBLES:
        yield f"… and {len(troubled) - MAX_TROUBLES} more: pilotfish status"
