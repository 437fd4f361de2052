"""`pilotfish logs [SERVER]`, `trace SERVER`, `restart SERVER`, `stop SERVER`: what one server does in this workspace.

All ask the daemon that runs, and never start one.
"""

import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import click
import msgspec

from pilotfish.api.status import InstanceDetails, Restarted
from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.logs import last_lines
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.completion import servers
from pilotfish.surfaces.cli.terminal.table import latency
from pilotfish.surfaces.cli.workspace import (
    NOT_RUNNING,
    ask_daemon,
    host_option,
    json_option,
    root_option,
    running_daemon,
)

MAX_LINE = 8000
"""Code points of one line: a traceback."""

MAX_OUTCOME = 2000
"""Code points of a folder, and of the error of a server that does not start."""

MAX_TRACE_LINE = 500
MAX_TRACE_BODY = 5000

RECEIVE_BYTES = 64 * 1024


@click.command()
@click.argument("server", metavar="[SERVER]", required=False, shell_complete=servers)
@click.option("-n", "--lines", type=click.IntRange(1, 5000), default=100, show_default=True, help="How many lines.")
@root_option
@host_option
@json_option
def logs(server: str | None, lines: int, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show the log of a server or of the daemon.

    Of a server, its standard error and its log messages; without SERVER, the end of the daemon's log.
    """
    found = daemon_log(lines) if server is None else _server_log(server, lines, root)
    if as_json:
        click.echo(json.dumps({"lines": found}))
        return
    for line in found:
        click.echo(line)
    if not found:
        click.echo(f"{server or 'The daemon'} has written nothing.", err=True)


@click.command()
@click.argument("server", metavar="SERVER", shell_complete=servers)
@click.option("--bodies", is_flag=True, help="Show message bodies, secrets removed, cut at 4000 characters.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this many messages.")
@root_option
@host_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def trace(server: str, bodies: bool, count: int | None, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show messages to and from one server, live.

    Ctrl-C stops it. Messages from before are not kept.
    """
    link = running_daemon(root)
    if link is None:
        raise Unavailable(Code.NOT_FOUND, NOT_RUNNING)
    with link:
        link.request("details", {"server": server})  # refuses an unknown server
        connection = link.upgraded("trace", {"server": server, "bodies": bodies})
    click.echo(f"Tracing {server}. Ctrl-C stops.", err=True)
    with closing(connection):
        for number, message in enumerate(_messages(connection), 1):
            click.echo(json.dumps(message) if as_json else _trace_line(message))
            if number == count:
                return


def daemon_log(count: int) -> list[str]:
    # The interpreter's own messages are in this file too, and were not sanitised.
    return [sanitised(line, MAX_LINE) for line in last_lines(DaemonPlace(os.environ).log, count)]


def _server_log(server: str, count: int, root: str | None) -> list[str]:
    details = ask_daemon(root, "details", tuple[InstanceDetails, ...], server=server)
    if details is None:
        hint = "For the daemon's log: pilotfish logs"
        raise Unavailable(Code.NOT_FOUND, "no daemon is running, so there is no server log", hint=hint)
    found: list[str] = []
    for one in details:
        root_shown = sanitised(one.root, MAX_LINE)
        found += [f"[{root_shown}] stderr: {line}" for line in one.stderr[-count:]]
        found += [f"[{root_shown}] log: {line}" for line in one.messages[-count:]]
    return found[-count:]


def _messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    rest = b""
    while data := connection.recv(RECEIVE_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _trace_line(message: dict[str, Any]) -> str:
    """`12:00:03.250 → textDocument/hover 17 (250 bytes)`."""
    at = datetime.fromtimestamp(message["at"] / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]
    lost = [f"({message['lost']} messages lost) "] if "lost" in message else []
    kind = message.get("method") or ("answer" if "id" in message else "message")
    words = [at, message["direction"], *lost, kind, *([str(message["id"])] if "id" in message else [])]
    words += ["failed"] if message.get("failed") else []
    line = sanitised(" ".join([*words, f"({message['bytes']} bytes)"]), MAX_TRACE_LINE)
    return f"{line}\n  {sanitised(message['body'], MAX_TRACE_BODY)}" if "body" in message else line


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
    outcomes = ask_daemon(root, "restart", tuple[Restarted, ...], server=server)
    lines = [
        f"{one.root}: {one.error or f'restarted as process {one.pid} in {latency(one.duration_ms)}'}"
        for one in outcomes or ()
    ]
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(outcomes or ()), indent=2))
    else:
        _say(outcomes, lines, f"{server} is not running here; it starts on first use.")
    context.exit(1 if any(one.error for one in outcomes or ()) else 0)


@click.command()
@server_argument
@root_option
@host_option
@json_option
def stop(server: str, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Stop a server until it is needed again.

    Everywhere it runs in this workspace.
    """
    roots = ask_daemon(root, "halt", list[str], server=server)
    if as_json:
        click.echo(json.dumps(roots or []))
    else:
        stopped = [f"{where}: stopped; it starts again when needed" for where in roots or ()]
        _say(roots, stopped, f"{server} is not running here.")


def _say(answer: object, lines: Sequence[str], nowhere: str) -> None:
    """What was done in each folder; `answer` is None when no daemon runs."""
    for line in lines or (NOT_RUNNING if answer is None else nowhere,):
        click.echo(sanitised(line, MAX_OUTCOME))
