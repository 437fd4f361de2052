"""The accept loop: our own user only, a bounded number of clients, and a client that fails affects no other.

A program that leaks connections must not keep the hooks out, which connect anew for every edit: those that have said
nothing make room for newer ones, and only clients that say hello, and so stay, count towards `MAX_CONNECTIONS`.
"""

import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import nullcontext, suppress

import anyio
from anyio.abc import TaskGroup

from pilotfish.client.pulse import Pulse
from pilotfish.daemon.claim import DaemonClaim
from pilotfish.daemon.connection import FULL_HOUSE, ClientConnection
from pilotfish.errors import Code
from pilotfish.ipc.rendezvous import peer_user
from pilotfish.model import AbsPath
from pilotfish.protocol.rpc import Peer
from pilotfish.system.pipes import End
from pilotfish.system.ports import ByteStream, Interest, OpenWatcher

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
"""Clients that have said hello. One person's agents and panels are far fewer; more is a program that leaks them."""

MAX_SILENT = 256
"""Connections that have said nothing yet; the oldest makes room."""

MAX_OPEN = 1024
"""All of them, hooks at work included: a quarter of our descriptors."""

FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of `accept` for lack of resources: it is tried again when a connection has ended."""

RETRY_SECONDS = 1.0
"""… or after this, because what uses up descriptors need not be a connection."""

LOOK_SECONDS = 10.0
"""How often to look whether our socket is still where clients look for it, should the watcher not say so: the folder
may have been moved as a whole."""


class Acceptor:
    """Owns the listening socket, and every connection that came through it."""

    def __init__(
        self,
        claim: DaemonClaim,
        connection: Callable[[ByteStream, Callable[[], bool]], ClientConnection],
        user: int | None = None,
    ) -> None:
        self._claim = claim
        self._connection = connection
        self._user = os.geteuid() if user is None else user
        self._listener = claim.listener
        self._inode = _inode(claim.place.socket)
        self._connections: dict[ClientConnection, None] = {}
        """In the order of their arrival."""
        self._left = Pulse()
        self._closed = False

    async def run(self, tasks: TaskGroup) -> None:
        """Accept clients until `close`; `tasks` owns what serves them."""
        while not self._closed:
            try:
                await anyio.wait_readable(self._listener)
                end, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError, anyio.ClosedResourceError):
                continue
            except OSError as error:
                if error.errno not in FULL:
                    raise
                logger.warning("no room for a client error=%s", error)
                with anyio.move_on_after(RETRY_SECONDS):
                    await self._left.wait()
                continue
            self._enter(end, tasks)

    async def wait_until_gone(self, watch: OpenWatcher | None) -> None:
        """Return when our socket or our lock is not where clients look for them any more."""
        place = self._claim.place
        folders = frozenset({AbsPath(place.state), AbsPath(place.folder), AbsPath(place.socket_folder)})
        async with watch() if watch is not None else nullcontext() as watcher:
            while self._claim.holds() and self._is_there():
                if watcher is not None:
                    await watcher.cover(Interest((), folders=folders))
                    await watcher.drain()
                    if not (self._claim.holds() and self._is_there()):
                        return
                with anyio.move_on_after(LOOK_SECONDS):
                    await (watcher.wait_for_changes() if watcher is not None else anyio.sleep_forever())

    def close(self) -> None:
        """Accept no more clients."""
        if not self._closed:
            self._closed = True
            if self._is_there():
                os.unlink(self._claim.place.socket)
                if self._claim.place.short:
                    with suppress(OSError):  # something else lies in it
                        os.rmdir(self._claim.place.socket_folder)
            anyio.notify_closing(self._listener)
            self._listener.close()

    async def close_all(self, why: str) -> None:
        """Close every connection, and wait until all have ended."""
        for connection in tuple(self._connections):
            connection.hang_up(Code.SHUTTING_DOWN, why)
        while self._connections:
            await self._left.wait()

    def _enter(self, end: socket.socket, tasks: TaskGroup) -> None:
        user = peer_user(end)
        if user != self._user:
            logger.warning("refused another user uid=%s", user)
            end.close()
        elif len(self._connections) >= MAX_OPEN:
            logger.warning("refused a client connections=%d", len(self._connections))
            _turn_away(end)
        else:
            silent = [connection for connection in self._connections if connection.is_silent]
            if len(silent) >= MAX_SILENT:
                silent[0].hang_up(Code.OVERLOADED, FULL_HOUSE)
            connection = self._connection(End(end), self._is_full)
            self._connections[connection] = None
            tasks.start_soon(self._serve, connection)

    def _is_full(self) -> bool:
        return sum(connection.stays for connection in self._connections) >= MAX_CONNECTIONS

    async def _serve(self, connection: ClientConnection) -> None:
        try:
            await connection.run()
        except Exception:
            # A fault in what serves one client must not end the others, who share the task group.
            logger.exception("connection failed")
        finally:
            del self._connections[connection]
            self._left.notify()

    def _is_there(self) -> bool:
        """Whether the socket at our path is ours, and not missing or another daemon's."""
        return self._inode is not None and _inode(self._claim.place.socket) == self._inode


def _turn_away(end: socket.socket) -> None:
    end.setblocking(False)  # noqa: FBT003 - its only signature
    with suppress(OSError):  # it has gone by itself
        end.send(Peer().notify("closing", {"code": Code.OVERLOADED, "message": FULL_HOUSE}))
    end.close()


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
