"""The daemon's end of one client connection: JSON-RPC, framed by `Content-Length`. Clients do not affect each other.

Rules:
- A client has a bounded number of running and of waiting calls; one more is answered `overloaded` at once (F75).
- A call is cancelled when its client says so or disconnects, and with it its requests to language servers (F72).
- A client must send hello in time, and complete in time each message that it begins (F73).
- A client that does not read is disconnected, after a notification of the reason (F74).
- A connection ends once: its calls are cancelled, and its sessions end. End of file means that the client is gone.

The first message on a connection is `hello`, or a single `hook` or `command`. The last one from the daemon may be the
notification `closing`, with the code and the reason.

The accept loop lets in our own user only, and a bounded number of clients. A program that leaks connections must not
keep the hooks out, which connect anew for every edit: those that have said nothing make room for newer ones, and only
clients that say hello, and so stay, count towards `MAX_CONNECTIONS`.
"""

import errno
import logging
import math
import os
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from msgspec import Raw

from pilotfish.client.pulse import Pulse
from pilotfish.daemon.claim import DaemonClaim
from pilotfish.daemon.methods import SocketMethods
from pilotfish.errors import Bug, Code, Failure, Refused, Unavailable
from pilotfish.ipc.client import KINDS
from pilotfish.ipc.client_sessions import Caller, Upgraded, Upgrades
from pilotfish.ipc.loopback import KnownStream
from pilotfish.ipc.rendezvous import peer_user
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import encode
from pilotfish.protocol.rpc import (
    Answered,
    CancelRequested,
    Dropped,
    DropReason,
    ErrorCode,
    Event,
    Failed,
    Notified,
    Peer,
    Requested,
    ResponseError,
)
from pilotfish.service.workspaces import ClientSession
from pilotfish.system import calls
from pilotfish.system.channel import RpcChannel, Turns
from pilotfish.system.clock import current_time
from pilotfish.system.pipes import End, SourcedStream
from pilotfish.system.ports import BrokenPipe, ByteStream, Interest, OpenWatcher, Stalled

logger = logging.getLogger(__name__)


HELLO_SECONDS = 10.0
"""From connecting to a `hello` that was accepted."""

FRAME_SECONDS = 30.0
"""From the first byte of a message to its last: the largest takes a second."""

LAST_WORD_SECONDS = 1.0
"""For the notification `closing`, to a client that may not be reading."""

FULL_HOUSE = "too many clients are connected"


class ClientConnection:
    """One client: a `methods.MethodContext`. `run` owns its tasks."""

    def __init__(
        self, stream: ByteStream, methods: SocketMethods, upgrades: Upgrades, is_full: Callable[[], bool] = bool
    ) -> None:
        self.stays = False
        """It has said hello, and so may be followed by any number of calls."""
        self.client: ClientSession | None = None
        self.greeted = False
        self._stream = stream
        self._methods = methods
        self._upgrades = upgrades
        self._is_full = is_full
        """Whether one more client that stays is too many."""
        self._channel = RpcChannel(self._take, self._overflowed)
        self.notify = self._channel.notify
        self._tasks = anyio.create_task_group()
        self._turns = Turns(self._tasks, self._channel, self._work, "cancelled")
        self._writing = anyio.CancelScope()
        self._written = anyio.Event()
        self._opened = current_time()
        self._upgraded = False
        self._hung_up = False
        self._others: set[str] = set()
        """Sessions beside `client`, of an upgraded connection."""

    async def run(self) -> None:
        sessions = self._methods.sessions
        try:
            with sessions.connection():
                async with self._tasks:
                    self._tasks.start_soon(self._write)
                    fault = await self._channel.read(self._receive)
                    if fault is not None:
                        self.hang_up(fault.code, fault.message)
                        await self._written.wait()
                    self._tasks.cancel_scope.cancel()
        finally:
            for session in self._carried():
                sessions.end(session)
            self._stream.close()

    def hang_up(self, code: Code, why: str) -> None:
        """Close the connection; a client that reads is told why. Harmless when it has ended."""
        if self._hung_up:
            return
        self._hung_up = True
        logger.info("hanging up code=%s why=%s", code, why)
        if self._upgraded:
            self._tasks.cancel_scope.cancel()
            return
        self._turns.cancel_all()
        closing = self._channel.peer.notify("closing", {"code": code, "message": why})
        self._channel.queue.close(closing, drop=code is Code.OVERLOADED)
        self._writing.deadline = current_time() + LAST_WORD_SECONDS

    @property
    def is_silent(self) -> bool:
        """It has said nothing, not even the beginning of a message."""
        return not (self.greeted or self._hung_up or self._turns.busy) and self._channel.incomplete_since is None

    # --- Reading ----------------------------------------------------------------------------------------------------

    async def _receive(self) -> bytes:
        if self._upgraded:
            return b""
        if self._channel.has_junk:
            self.hang_up(Code.PROTOCOL_ERROR, "malformed message")
        while True:
            begun = self._channel.incomplete_since
            deadline = math.inf if begun is None else begun + FRAME_SECONDS
            deadline = deadline if self.greeted else self._opened + HELLO_SECONDS
            if current_time() >= deadline:
                break
            # The first message may be accepted while we wait for the next: then the deadline is lifted.
            with anyio.CancelScope(deadline=deadline):
                return await self._stream.receive()
        late = "a message was not completed in time" if self.greeted else "no hello in time"
        self.hang_up(Code.REQUEST_TIMEOUT, late)
        await self._written.wait()
        return b""

    async def _take(self, event: Event) -> None:
        if self._hung_up:
            return
        match event:
            case Requested():
                await self._requested(event)
            case CancelRequested(identifier):
                self._turns.cancel(identifier)
            case Notified() | Dropped(DropReason.UNKNOWN_CANCEL):
                pass
            case Dropped(reason, detail):
                self.hang_up(Code.PROTOCOL_ERROR, f"{reason}: {detail}")
            case Answered() | Failed():
                # The daemon sends no requests, so there is nothing to respond to.
                self.hang_up(Code.PROTOCOL_ERROR, "a response without a request")
        # One read may bring thousands of messages: let other tasks run in between.
        await anyio.lowlevel.checkpoint()

    # --- Answering --------------------------------------------------------------------------------------------------

    async def _requested(self, request: Requested) -> None:
        method = request.method
        if method in self._upgrades:
            await self._upgrade(request)
        elif not self._methods.knows(method):
            self._channel.answer(request.id, ResponseError(ErrorCode.METHOD_NOT_FOUND, f"there is no method {method}"))
        elif not self.greeted and method not in {"hello", "hook", "command"}:
            self._channel.answer(request.id, _error(Refused(Code.INVALID_INPUT, "must send hello first")))
        elif method == "hello" and not self.stays and self._is_full():
            self.hang_up(Code.OVERLOADED, FULL_HOUSE)
        elif self._methods.is_immediate(method):
            self.stays = self.stays or method == "hello"
            await self._work(request)
        elif not self._turns.admit(request):
            many = Unavailable(Code.OVERLOADED, "too many calls of this client are waiting", hint="Ask again later.")
            self._channel.answer(request.id, _error(many))

    async def _work(self, request: Requested) -> None:
        try:
            self._channel.answer(request.id, await self._methods.answer(request.method, request.params, self))
        except Failure as failure:
            logger.info("refused method=%s code=%s message=%s", request.method, failure.code, failure.message)
            self._channel.answer(request.id, _error(failure))
        except Exception as error:
            logger.exception("call failed method=%s", request.method)
            self._channel.answer(request.id, _error(Bug(f"{type(error).__name__} in {request.method}")))

    def _overflowed(self) -> None:
        self.hang_up(Code.OVERLOADED, "the client does not read its answers")

    async def _write(self) -> None:
        try:
            with self._writing:
                await self._channel.queue.run(self._stream.send)
        except Stalled:
            logger.warning("client stopped reading session=%s", self.client.id if self.client else None)
        except BrokenPipe:
            pass
        self._written.set()
        if not self._upgraded:
            self._tasks.cancel_scope.cancel()

    # --- Upgrades ---------------------------------------------------------------------------------------------------

    async def _upgrade(self, request: Requested) -> None:
        """Hand the connection to a surface until it ends. The client sends nothing until it has our answer."""
        if self.client is None or self._turns.busy:
            why = "send hello with a cwd first" if self.client is None else "calls are in progress"
            self._channel.answer(
                request.id, _error(Refused(Code.INVALID_INPUT, f"{request.method} is not possible now: {why}"))
            )
            return
        self._upgraded = True
        self._channel.answer(request.id, reply=True)
        self._channel.queue.close()
        await self._written.wait()
        sessions = self._methods.sessions

        async def receive() -> bytes:
            data = await self._stream.receive()
            sessions.used(*self._carried())
            return data

        stream, service = SourcedStream(self._stream, receive), self._methods.service
        await self._upgrades[request.method](Upgraded(stream, service, sessions, self._session_of, request.params))

    def _session_of(self, root: AbsPath | None) -> ClientSession:
        if self.client is None:
            raise Bug("an upgraded connection has a session")
        if root is None or root == self.client.root:
            return self.client
        caller = Caller(root, self.client.host, self.client.conversation, root, environment=self.client.environment)
        client = self._methods.sessions.attach(caller, self.hang_up)
        self._others.add(client.id)
        return client

    def _carried(self) -> set[str]:
        return ({self.client.id} if self.client else set[str]()) | self._others


def _error(failure: Failure) -> ResponseError:
    """A failure on the wire: `ipc.client.failure_of` turns it back into the same kind."""
    kind = next(name for name, kind in KINDS.items() if isinstance(failure, kind))
    data = {"kind": kind, "code": failure.code, "hint": failure.hint}
    code = ErrorCode.INTERNAL_ERROR if isinstance(failure, Bug) else ErrorCode.REQUEST_FAILED
    return ResponseError(code, failure.message, Raw(encode(data)))


MAX_CONNECTIONS = 256
"""Clients that have said hello. One person's agents and panels are far fewer; more is a program that leaks them."""

MAX_SILENT = 256
"""Connections that have said nothing yet; the oldest makes room."""

MAX_OPEN = 450 if sys.platform == "win32" else 1024
"""All of them, hooks at work included: a quarter of our descriptors; Windows waits for 512 sockets at most."""

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
        self._user = calls.user() if user is None else user
        self._listener = claim.listener
        self._inode = _inode(claim.place.socket)
        self._connections: dict[ClientConnection, None] = {}
        """In the order of their arrival."""
        self._left = Pulse()
        self._closed = False

    async def run(self, tasks: TaskGroup) -> None:
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
            while True:
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
        endpoint = self._claim.endpoint
        user = peer_user(end) if endpoint is None else self._user
        if user != self._user:
            logger.warning("refused another user uid=%s", user)
            end.close()
        elif len(self._connections) >= MAX_OPEN:
            logger.warning("refused a client connections=%d", len(self._connections))
            end.setblocking(False)  # noqa: FBT003 - its only signature
            with suppress(OSError):  # it has gone by itself
                end.send(Peer().notify("closing", {"code": Code.OVERLOADED, "message": FULL_HOUSE}))
            end.close()
        else:
            silent = [connection for connection in self._connections if connection.is_silent]
            if len(silent) >= MAX_SILENT:
                silent[0].hang_up(Code.OVERLOADED, FULL_HOUSE)
            stream = End(end)
            connection = self._connection(stream if endpoint is None else KnownStream(stream, endpoint), self._is_full)
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


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
