"""`pilotfish daemon start|stop|status|logs`, and `pilotfish hook HOST` as the list of verbs shows it.

Everything but click is imported inside the verbs: listing them costs nothing. A hook that hosts run never comes here:
`__main__` runs it without click.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotfish.ipc.client import Link

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

STOP_MILLISECONDS = 12_000
"""The daemon ends within ten seconds, whatever its servers do."""


@click.group()
def daemon() -> None:
    """The daemon by hand: start, stop, status, logs.

    It starts by itself when somebody needs it, and ends when nobody has for a while.
    """


@daemon.command()
@json_option
def start(as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Start it, unless it runs; return when it answers."""
    from pilotfish.ipc.client import open_link

    with open_link() as link:
        _show(link.request("about"), as_json=as_json)


@daemon.command()
def stop() -> None:
    """Stop it and all its servers; return when it is gone."""
    from pilotfish.errors import Code, Unavailable

    link = _running()
    if link is None:
        click.echo("No daemon is running.")
        return
    with link:
        link.request("stop")
    if not _ended(int(link.welcome["pid"])):
        raise Unavailable(Code.SHUTTING_DOWN, f"the daemon (pid {link.welcome['pid']}) is still ending")
    click.echo("Stopped.")


@daemon.command()
@json_option
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """What it is doing; exit 1 when none runs."""
    link = _running()
    if link is None:
        click.echo(json.dumps({"running": False}) if as_json else "No daemon is running.")
        context.exit(1)
    with link:
        _show(link.request("about"), as_json=as_json)


@daemon.command()
@click.option("-n", "--lines", type=click.IntRange(1, 5000), default=100, show_default=True, help="How many lines.")
def logs(lines: int) -> None:
    """The end of its log, whether it runs or not."""
    from pilotfish.ipc.log_tail import last_lines
    from pilotfish.ipc.rendezvous import Place

    for line in last_lines(Place(os.environ).log, lines):
        click.echo(line)


@click.command()
@click.argument("host")
@click.option("--deadline-ms", type=click.IntRange(1), default=8000, show_default=True, help="The longest it may take.")
def hook(host: str, deadline_ms: int) -> None:
    """The hook program that hosts run after an edit.

    Reads the host's event on standard input and prints what the model shall see. Prints nothing and ends with 0 when
    anything goes wrong.
    """
    from pilotfish.ipc.hook_program import run

    run([host, "--deadline-ms", str(deadline_ms)])


def _running() -> Link | None:
    """A link to the daemon that runs; None when there is none."""
    from pilotfish.errors import Code, Unavailable
    from pilotfish.ipc.client import Terms, open_link

    try:
        return open_link(terms=Terms(start=False))
    except Unavailable as unavailable:
        if unavailable.code is Code.NOT_FOUND:
            return None
        raise


def _ended(pid: int) -> bool:
    """Wait until a process has ended; False when it takes too long."""
    import select

    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, AttributeError):
        # Gone, or a system without descriptors of processes: it has closed the connection, which must do.
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(STOP_MILLISECONDS))
    finally:
        os.close(descriptor)


def _show(about: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"running": True, **about}, indent=2))
        return
    from pilotfish.sanitise import sanitised

    servers = ", ".join(f"{name} × {count}" for name, count in about["servers"].items()) or "none"
    click.echo(f"Running for {about['seconds']:.0f} s as process {about['pid']}.")
    click.echo(f"Socket:   {about['socket']}\nLog:      {about['log']}\nServers:  {servers}")
    if about["superseded"]:
        click.echo("A newer version was installed: this one ends when nobody is connected.")
    for session in about["sessions"]:
        where = "connected" if session["attached"] else "by hooks"
        click.echo(sanitised(f"Session:  {session['host'] or 'no host'}, {where}, in {session['root']}", 1000))
