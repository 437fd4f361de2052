"""`pilotfish daemon start|stop|status|logs`, and the help of `pilotfish hook HOST`.

When a host runs the hook, `__main__` runs it without click and this module is not imported.
"""

import json
from collections.abc import Mapping
from typing import Any

import click

from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import open_link
from pilotfish.ipc.hook_program import run
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.one_server import daemon_log
from pilotfish.surfaces.cli.workspace import connect, json_option

STOP_SECONDS = 12.0
"""The daemon stops within ten seconds, whatever its servers do."""


@click.group()
def daemon() -> None:
    """Start, stop and inspect the daemon.

    It starts by itself when it is needed, and ends when it has been idle for a while.
    """


@daemon.command()
@json_option
def start(as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Start the daemon, unless it runs; return when it answers."""
    with open_link() as link:
        _print_about(link.request("about"), as_json=as_json)


@daemon.command()
def stop() -> None:
    """Stop the daemon and all its servers; return when it has ended."""
    click.echo(stop_daemon())


def stop_daemon() -> str:
    """Stop it and say so; raises `Unavailable` when it takes too long."""
    link = connect()
    if link is None:
        return "No daemon is running."
    with link:
        link.request("stop")
    import psutil

    pid = int(link.welcome["pid"])
    try:
        psutil.Process(pid).wait(STOP_SECONDS)
    except psutil.NoSuchProcess:
        pass
    except psutil.TimeoutExpired:
        raise Unavailable(Code.SHUTTING_DOWN, f"the daemon (pid {pid}) is still stopping") from None
    return "Stopped."


@daemon.command()
@json_option
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show what the daemon is doing; exit code 1 if none runs."""
    link = connect()
    if link is None:
        click.echo(json.dumps({"running": False}) if as_json else "No daemon is running.")
        context.exit(1)
    with link:
        _print_about(link.request("about"), as_json=as_json)


@daemon.command()
@click.option("-n", "--lines", type=click.IntRange(1, 5000), default=100, show_default=True, help="How many lines.")
def logs(lines: int) -> None:
    """Show the end of the daemon's log, whether it runs or not."""
    for line in daemon_log(lines):
        click.echo(line)


@click.command()
@click.argument("host")
@click.option("--deadline-ms", type=click.IntRange(1), default=8000, show_default=True, help="Time limit.")
def hook(host: str, deadline_ms: int) -> None:
    """The hook program that hosts run after an edit.

    Reads the host's event from standard input and prints what the model should see. If anything goes wrong, it prints
    nothing and exits with 0.
    """
    run([host, "--deadline-ms", str(deadline_ms)])


def _print_about(about: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"running": True, **about}, indent=2))
        return

    servers = ", ".join(f"{name} × {count}" for name, count in about["servers"].items()) or "none"
    click.echo(f"Running for {about['seconds']:.0f} s as process {about['pid']}.")
    click.echo(f"Socket:   {about['socket']}\nLog:      {about['log']}\nServers:  {servers}")
    if about["superseded"]:
        click.echo("A newer version is installed: this daemon ends when no client is connected.")
    for session in about["sessions"]:
        where = "connected" if session["attached"] else "connects for each call"
        click.echo(sanitised(f"Session:  {session['host'] or 'no host'}, {where}, in {session['root']}", 1000))
