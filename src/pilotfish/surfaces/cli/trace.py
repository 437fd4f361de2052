"""`pilotfish trace SERVER`: the messages between the daemon and one server as they go, until interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from pilotfish.surfaces.cli.completing import servers
from pilotfish.surfaces.cli.workspace import root_option

if TYPE_CHECKING:
    import socket

RECEIVE_BYTES = 64 * 1024


@click.command()
@click.argument("server", metavar="SERVER", shell_complete=servers)
@click.option("--bodies", is_flag=True, help="Show the messages themselves, secrets taken out and cut at 4000 letters.")
@click.option("-n", "--count", type=click.IntRange(1), help="End after so many messages.")
@root_option
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each message.")
def trace(server: str, bodies: bool, count: int | None, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """The messages to and from one server, as they go.

    Ctrl-C ends it. Nothing is kept: only what goes while this runs is shown.
    """
    from pilotfish.errors import Code, Unavailable
    from pilotfish.surfaces.cli.running_daemon import NO_DAEMON, running_daemon

    link = running_daemon(root)
    if link is None:
        raise Unavailable(Code.NOT_FOUND, NO_DAEMON)
    with link:
        link.request("details", {"server": server})  # refuses a server that nobody knows
        connection = link.upgraded("trace", {"server": server, "bodies": bodies})
    click.echo(f"Listening to {server}; Ctrl-C ends it.", err=True)
    with closing(connection):
        for number, message in enumerate(_messages(connection), 1):
            click.echo(json.dumps(message) if as_json else _line(message))
            if number == count:
                return


def _messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    rest = b""
    while data := connection.recv(RECEIVE_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _line(message: dict[str, Any]) -> str:
    """`12:00:03.250 → textDocument/hover 17 (250 bytes)`."""
    from datetime import datetime

    from pilotfish.sanitise import sanitised

    at = datetime.fromtimestamp(message["at"] / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]
    lost = [f"({message['lost']} messages lost) "] if "lost" in message else []
    kind = message.get("method") or ("answer" if "id" in message else "message")
    said = [at, message["direction"], *lost, kind, *([str(message["id"])] if "id" in message else [])]
    said += ["failed"] if message.get("failed") else []
    line = sanitised(" ".join([*said, f"({message['bytes']} bytes)"]), 500)
    return f"{line}\n  {sanitised(message['body'], 5000)}" if "body" in message else line
