"""`serve`, an upgrade of a connection to the daemon: listen on loopback for as long as its client stays connected.

The client speaks first, a line of nothing. The daemon answers with a line of JSON: where it listens and where the token
is, or why it cannot. What the client says after that means nothing, and its end is the end of the listening. What all
this takes is imported when somebody asks: a daemon that does not serve does not pay for it.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import ModuleType

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.ipc.messages import About
from pilotfish.ipc.upgrades import Upgraded
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.protocol.rpc import NULL
from pilotfish.store import Store
from pilotfish.surfaces.http.failures import body_of
from pilotfish.system.ports import BrokenPipe, Clock, Stalled

TOKEN_FILE = "http-token"  # noqa: S105 -- its name


class Wanted(Struct, frozen=True):
    """What a client says with the request. Port 0 is any that is free."""

    port: int = 0


class Served(Struct, frozen=True):
    """Where it listens. `page` works once."""

    address: str
    token_file: str
    page: str


class Daemon(Struct, frozen=True):
    """What is served, beside the service itself."""

    store: Store
    about: Callable[[], About]
    clock: Clock
    folder: str
    """Where the token goes."""


class Serving:
    """One listener at a time: the token is one file."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._address: str | None = None

    async def upgrade(self, upgraded: Upgraded) -> None:
        """Serve until the client that asked for it is gone."""
        if not await upgraded.wire.receive():
            return
        try:
            async with self._listening(upgraded) as served:
                await upgraded.wire.send(encode(served) + b"\n")
                while await upgraded.wire.receive():
                    pass
        except Failure as failure:
            await upgraded.wire.send(encode(body_of(failure)) + b"\n")
        except (BrokenPipe, Stalled):
            return

    @asynccontextmanager
    async def _listening(self, upgraded: Upgraded) -> AsyncGenerator[Served]:
        if self._address is not None:
            hint = "Stop the other `pilotfish serve` first, or use that address."
            raise Refused(Code.INVALID_INPUT, f"it is served already: {self._address}", hint=hint)
        _require_http()
        self._address = "starting"
        try:
            surface = await anyio.to_thread.run_sync(_surface)
            async with surface.serving(upgraded, self._daemon, _wanted(upgraded).port) as served:
                self._address = served.address
                yield served
        finally:
            self._address = None


def token_file(folder: str) -> str:
    return os.path.join(folder, TOKEN_FILE)


def _wanted(upgraded: Upgraded) -> Wanted:
    try:
        wanted = Wanted() if upgraded.params == NULL else decode(upgraded.params, Wanted)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, f"the parameters cannot be read: {malformed}") from None
    if not 0 <= wanted.port < 1 << 16:
        raise Refused(Code.INVALID_INPUT, f"{wanted.port} is no port")
    return wanted


def _require_http() -> None:
    """Raise `Unavailable`, with the way to get it, where what serves HTTP is not installed."""
    lacking = [name for name in ("starlette", "uvicorn", "mcp") if find_spec(name) is None]
    if lacking:
        message = f"HTTP needs packages that are not installed: {', '.join(lacking)}."
        raise Unavailable(Code.UNSUPPORTED, message, hint="pip install 'pilotfish[serve]'")


def _surface() -> ModuleType:
    from pilotfish.surfaces.http import application as http_surface

    return http_surface
