"""`pilotfish serve`: have the daemon listen on loopback, for as long as this program runs.

The daemon does the listening; this program holds the connection that keeps it going, and says where it is. Ctrl-C, or
any other end of this program, ends it.
"""

import json
import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import Any

import click

from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import Introduction, failure_of, open_link
from pilotfish.system import calls

ANSWER_SECONDS = 60.0
"""Until the daemon listens: it imports what it needs for that, on a machine that may be busy."""

END_SECONDS = 3.0
"""For the daemon to end the listening, which takes it a second at most."""

MAX_LINE = 64 * 1024

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>Pilotfish</title>
<a href="{link}">The live page</a> (this link works once)
"""


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen there; by default on any free port.")
@click.option("--open", "opened", is_flag=True, help="Open the live page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as JSON.")
def serve(port: int, opened: bool, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """The HTTP API, MCP over HTTP and a live page.

    On this machine only, until Ctrl-C. Clients send the token of the printed file: Authorization: Bearer TOKEN.
    """
    link = open_link(Introduction(cwd=os.getcwd(), host="serve", pid=os.getpid()))
    connection = link.upgraded("serve", {"port": port})
    try:
        served = _answer(connection)
        _say(served, as_json=as_json)
        with _opened(served) if opened else nullcontext():
            _stay(connection)
    except KeyboardInterrupt:
        _end(connection)
        click.echo("Stopped.", err=True)
    finally:
        connection.close()


def _answer(connection: socket.socket) -> Mapping[str, Any]:
    """Where it listens. Raises the `Failure` that the daemon answered with."""
    connection.settimeout(ANSWER_SECONDS)
    line = b""
    try:
        connection.sendall(b"\n")
        while not line.endswith(b"\n") and len(line) < MAX_LINE:
            data = connection.recv(MAX_LINE)
            if not data:
                break
            line += data
        answer: Mapping[str, Any] = json.loads(line)
    except (OSError, ValueError) as error:
        hint = "See its log: pilotfish daemon logs"
        raise Unavailable(Code.SHUTTING_DOWN, f"the daemon does not serve: {error}", hint=hint) from None
    if "error" in answer:
        raise failure_of(str(answer["error"]), {"kind": "refused", **answer})
    return answer


def _say(served: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(served))
        return
    click.echo(f"Listening on {served['address']} (this machine only); Ctrl-C ends it.")
    click.echo(f"Token in:   {served['token_file']}")
    click.echo(f"MCP:        {served['address']}/mcp")
    click.echo(f"Live page:  {served['page']}  (works once)")


@contextmanager
def _opened(served: Mapping[str, Any]) -> Generator[None]:
    """The live page in the browser, by way of a file that only the user can read: every other user sees the arguments
    of a program, and the link works for whoever is first (T54)."""
    link = escape(served["page"])
    path = Path(served["token_file"]).with_name(f"open-{token_hex(8)}.html")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | calls.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(link=link))
    try:
        click.launch(path.as_uri())
        yield
    finally:
        path.unlink(missing_ok=True)


def _end(connection: socket.socket) -> None:
    """Have the listening end, and wait until it has."""
    with suppress(OSError):  # the daemon is gone, or takes too long: closing the connection must do
        connection.settimeout(END_SECONDS)
        connection.shutdown(1)  # SHUT_WR
        while connection.recv(MAX_LINE):
            pass


def _stay(connection: socket.socket) -> None:
    """Return never, but raise when the daemon ends first."""
    connection.settimeout(None)
    try:
        while connection.recv(MAX_LINE):
            pass
    except ConnectionError:
        pass  # the same as its end
    raise Unavailable(Code.SHUTTING_DOWN, "the daemon has ended, and the server with it")
