"""`pilotfish logs [SERVER]`: the last words of a server, or the end of the daemon's log."""

from __future__ import annotations

import json
import os

import click

from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.completing import servers
from pilotfish.surfaces.cli.workspace import root_option

MAX_LINE = 8000
"""Code points of one line: a traceback."""


@click.command()
@click.argument("server", metavar="[SERVER]", required=False, shell_complete=servers)
@click.option("-n", "--lines", type=click.IntRange(1, 5000), default=100, show_default=True, help="How many lines.")
@root_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def logs(server: str | None, lines: int, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """What a server or the daemon wrote last.

    Of a server, its standard error and its log; without SERVER, the end of the daemon's log.
    """
    found = _daemons(lines) if server is None else _servers(server, lines, root)
    if as_json:
        click.echo(json.dumps({"lines": found}))
        return
    for line in found:
        click.echo(line)
    if not found:
        click.echo(f"{server or 'The daemon'} has written nothing.", err=True)


def _daemons(count: int) -> list[str]:
    from pilotfish.ipc.log_tail import last_lines
    from pilotfish.ipc.rendezvous import Place

    # The file may have been written to by what the interpreter itself said, which nobody sanitised.
    return [sanitised(line, MAX_LINE) for line in last_lines(Place(os.environ).log, count)]


def _servers(server: str, count: int, root: str | None) -> list[str]:
    import msgspec

    from pilotfish.api.status import InstanceDetails
    from pilotfish.errors import Code, Unavailable
    from pilotfish.surfaces.cli.running_daemon import running_daemon

    link = running_daemon(root)
    if link is None:
        hint = "What the daemon wrote: pilotfish logs"
        raise Unavailable(Code.NOT_FOUND, "no daemon is running, and a server's words are kept by it", hint=hint)
    with link:
        details = msgspec.convert(link.request("details", {"server": server}), tuple[InstanceDetails, ...])
    found: list[str] = []
    for one in details:
        root_shown = sanitised(one.root, MAX_LINE)
        found += [f"[{root_shown}] stderr: {line}" for line in one.stderr[-count:]]
        found += [f"[{root_shown}] log: {line}" for line in one.messages[-count:]]
    return found[-count:]
