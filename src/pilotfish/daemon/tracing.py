"""The daemon's side of `pilotfish trace`: the traffic of one server as lines of JSON, while the client listens.

Off until a client asks, and it ends with the client. Lines that the client does not read in time are dropped and
counted: tracing never slows a server down. Without `bodies` a line says the method, direction and size of a message;
with them, the body is added, cut, after secrets were removed.
"""

import json
from collections import deque
from contextlib import suppress

import anyio
import msgspec
from msgspec import Struct

from pilotfish.client.connection import Direction
from pilotfish.client.pulse import Pulse
from pilotfish.ipc.client_sessions import Upgraded
from pilotfish.ipc.messages import read_params
from pilotfish.model import AbsPath
from pilotfish.sanitise import sanitised
from pilotfish.service.workspace import Workspace
from pilotfish.surfaces.redaction import redacted
from pilotfish.system.ports import BrokenPipe, Clock, Stalled
from pilotfish.system.tasks import first_of

MAX_WAITING = 1000
"""Lines that wait for the client."""

MAX_READ = 256 * 1024
"""Bytes of a message that is parsed: parsing a larger one would block the loop."""

MAX_BODY = 4000
"""Code points of a message that is shown."""


class TraceParams(Struct, frozen=True):
    server: str
    bodies: bool = False


class TracedMessage(msgspec.Struct):
    method: str | None = None
    id: int | str | None = None
    error: msgspec.Raw | None = None


async def trace(upgraded: Upgraded, clock: Clock) -> None:
    """Send the traffic of one server for as long as the client stays."""
    wanted = read_params(upgraded.params, TraceParams)
    workspace = upgraded.service.workspaces.of(upgraded.session(None))
    lines = TraceLines(workspace, clock, bodies=wanted.bodies)
    with upgraded.service.pool.taps[wanted.server].listening(lines.take):

        async def send() -> None:
            with suppress(BrokenPipe, Stalled):
                while True:
                    await upgraded.stream.send(await lines.next())
                    await anyio.lowlevel.checkpoint()

        async def wait_for_end() -> None:
            while await upgraded.stream.receive():
                pass

        await first_of(send, wait_for_end)


class TraceLines:
    def __init__(self, workspace: Workspace, clock: Clock, *, bodies: bool) -> None:
        self._workspace = workspace
        self._clock = clock
        self._bodies = bodies
        self._waiting: deque[tuple[float, AbsPath, Direction, bytes]] = deque(maxlen=MAX_WAITING)
        self._lost = 0
        self._came = Pulse()

    def take(self, root: AbsPath, direction: Direction, body: bytes) -> None:
        """A listener of a `Tap`: all that tracing costs the server's connection."""
        if self._workspace.holds(root):
            self._lost += len(self._waiting) == MAX_WAITING
            self._waiting.append((self._clock.wall(), root, direction, body))
            self._came.notify()

    async def next(self) -> bytes:
        while not self._waiting:
            await self._came.wait()
        at, root, direction, body = self._waiting.popleft()
        said = {"at": round(at * 1000), "root": root, "direction": direction, "bytes": len(body)}
        if self._lost:
            said["lost"], self._lost = self._lost, 0
        return json.dumps(said | self._content(body)).encode() + b"\n"

    def _content(self, body: bytes) -> dict[str, object]:
        if len(body) > MAX_READ:
            return {"large": True}
        try:
            named = msgspec.json.decode(body, type=TracedMessage)
            found: dict[str, object] = {"method": named.method, "id": named.id, "failed": named.error is not None}
            if self._bodies:
                found["body"] = sanitised(json.dumps(redacted(json.loads(body)), ensure_ascii=False), MAX_BODY)
        except (ValueError, RecursionError):
            return {"unreadable": True}
        return {name: value for name, value in found.items() if value not in {None, False}}
