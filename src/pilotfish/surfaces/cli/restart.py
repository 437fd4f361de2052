"""`pilotfish restart SERVER` and `pilotfish stop SERVER`: through the daemon, in this workspace only."""

from __future__ import annotations

import json

import click

from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.completion import servers
from pilotfish.surfaces.cli.workspace import host_option, json_option, root_option

MAX_LINE = 2000
"""Code points of one line: a folder, and the error of a server that does not start."""

server_argument = click.argument("server", metavar="SERVER", shell_complete=servers)


@click.command()
@server_argument
@root_option
@host_option
@json_option
@click.pass_context
def restart(context: click.Context, server: str, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Restart a server.

    Everywhere it runs or has failed in this workspace. Exit code: 0, 1 if it does not start.
    """
    import msgspec

    from pilotfish.api.status import Restarted
    from pilotfish.surfaces.cli.running_daemon import NOT_RUNNING, running_daemon
    from pilotfish.surfaces.cli.terminal.table import latency

    link = running_daemon(root)
    if link is None:
        click.echo("[]" if as_json else NOT_RUNNING)
        return
    with link:
        outcomes = msgspec.convert(link.request("restart", {"server": server}), tuple[Restarted, ...])
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(outcomes), indent=2))
    elif not outcomes:
        click.echo(f"{server} is not running here; it starts on first use.")
    for one in () if as_json else outcomes:
        done = f"restarted as process {one.pid} in {latency(one.duration_ms)}" if one.error is None else one.error
        click.echo(sanitised(f"{one.root}: {done}", MAX_LINE))
    context.exit(1 if any(one.error for one in outcomes) else 0)


@click.command()
@server_argument
@root_option
@host_option
@json_option
def stop(server: str, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Stop a server until it is needed again.

    Everywhere it runs in this workspace.
    """
    from pilotfish.surfaces.cli.running_daemon import NOT_RUNNING, running_daemon

    link = running_daemon(root)
    if link is None:
        click.echo("[]" if as_json else NOT_RUNNING)
        return
    with link:
        roots: list[str] = link.request("halt", {"server": server})
    if as_json:
        click.echo(json.dumps(roots))
    elif not roots:
        click.echo(f"{server} is not running here.")
    for where in () if as_json else roots:
        click.echo(sanitised(f"{where}: stopped; it starts again when needed", MAX_LINE))
