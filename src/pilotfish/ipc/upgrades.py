"""How a connection to the daemon becomes something else: a surface with a protocol of its own over the same socket.

A client asks with a request that bears the upgrade's name. After the answer there are no more frames: every byte in
either direction belongs to the surface until one side closes. The client speaks first.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Raw, Struct

from pilotfish.ipc.client_sessions import ClientSessions, OpenSession
from pilotfish.ipc.messages import About
from pilotfish.service.service import Service
from pilotfish.store import Store
from pilotfish.system.ports import ByteStream, Clock


class Upgraded(Struct, frozen=True):
    """What a surface gets: the bytes, the service, and a way to open sessions, which end with the connection."""

    stream: ByteStream
    service: Service
    sessions: ClientSessions
    session: OpenSession
    params: Raw


class DaemonContext(Struct, frozen=True):
    """What an upgrade may use of the daemon beside the service."""

    store: Store
    about: Callable[[], About]
    clock: Clock
    folder: str
    """Of its own state."""


Upgrade = Callable[[Upgraded], Awaitable[None]]
"""Serves the connection until it ends."""

Upgrades = Mapping[str, Upgrade]
"""By the name of the method that asks for it."""
