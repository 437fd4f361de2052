"""Client sessions: which client works in which workspace, and when a session ends.

A session is *attached* when it belongs to a connection, and ends with that at the latest. It is *kept* when it belongs
to a conversation that connects anew for every message, as hook programs do. Both end with their `end` message, with the
process that they named, or when idle for too long. Ending one twice is harmless.

The root is fixed when a session begins: later requests are served in that workspace, whatever they name (T24).
"""

import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup
from msgspec import Raw, Struct, field

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Bug, Code, Refused, Unavailable
from pilotfish.ipc.messages import About
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession, Variables
from pilotfish.store import Store
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import top_of
from pilotfish.system.ports import ByteStream, Clock
from pilotfish.system.tasks import owned_tasks

MAX_SESSIONS = 256
"""Far more than one person's agents need; more is a program that leaks sessions."""

KEPT_SECONDS = 1800.0
"""How long a conversation may be idle: a model that thinks, or a person at lunch, finds its servers warm."""

ATTACHED_SECONDS = 12 * 3600.0
"""How long a connection may be idle: a forgotten one must not keep the daemon running for ever."""

MAX_WORD = 200
"""Characters of a host's or conversation's name."""

OpenSession = Callable[[AbsPath | None], ClientSession]
"""Opens the client session of a root that the client named; for None, that of its first folder. May raise `Failure`."""

HangUp = Callable[[Code, str], None]
"""Closes the connection of a session, with the reason."""


class Caller(Struct, frozen=True):
    """Who the client is, in its own words."""

    cwd: str
    host: str | None = None
    conversation: str | None = None
    root: str | None = None
    """The workspace; by default the git worktree around `cwd`, or that folder."""
    pid: int | None = None
    """The process with which the session ends."""
    environment: Variables = ()


class SessionRecord(Struct):
    client: ClientSession
    last_used: float
    hang_up: HangUp | None = None
    """None for a kept session."""
    calls: int = 0
    """Calls in progress."""
    began: float = field(default_factory=current_time)
    life: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancels the task that watches its process."""

    @property
    def expires_at(self) -> float:
        """When it will have been idle for too long."""
        return self.last_used + (KEPT_SECONDS if self.hang_up is None else ATTACHED_SECONDS)


class ClientSessions:
    """All sessions. `running` owns the tasks that watch them."""

    def __init__(self, release: Callable[[ClientSession], None], gone: Callable[[int], Awaitable[None]]) -> None:
        self._release = release
        """Called for every session that has ended."""
        self._gone = gone
        """Returns when a process has ended; raises `ProcessLookupError` when it cannot be watched from here."""
        self._known: dict[str, SessionRecord] = {}
        self._kept: dict[tuple[str | None, str, AbsPath], str] = {}
        self._numbers = itertools.count(1)
        self._tasks: TaskGroup | None = None
        self.connections = 0
        """How many are open, whether they carry a session or not."""
        self.changed = Pulse()
        """Beats when one begins, ends, or has been used, and when a connection has ended."""

    def all(self) -> tuple[SessionRecord, ...]:
        return tuple(self._known.values())

    @property
    def attached(self) -> int:
        return sum(session.hang_up is not None for session in self._known.values())

    @property
    def calls(self) -> int:
        return sum(session.calls for session in self._known.values())

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["ClientSessions"]:
        """Within the block, sessions expire; at its end, all end."""
        async with owned_tasks() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._expire)
            try:
                yield self
            finally:
                self._tasks = None
                for session in self.all():
                    self.end(session.client.id)
                tasks.cancel_scope.cancel()

    def attach(self, caller: Caller, hang_up: HangUp | None) -> ClientSession:
        """A session for a connection; raises `Refused` for an impossible folder, `Unavailable` for one too many."""
        root = _root(caller)
        for word in (caller.host, caller.conversation):
            if word is not None and len(word) > MAX_WORD:
                raise Refused(Code.INVALID_INPUT, f"a name of {len(word)} characters is too long")
        if len(self._known) >= MAX_SESSIONS:
            # The kept session that has been idle longest makes room; attached and busy ones stay.
            silent = [session for session in self._known.values() if session.hang_up is None and not session.calls]
            if not silent:
                raise Unavailable(Code.OVERLOADED, f"there are {MAX_SESSIONS} client sessions already")
            self.end(min(silent, key=lambda session: session.last_used).client.id)
        if self._tasks is None:
            raise Bug("a session was opened outside of `running`")
        client = _client(f"session {next(self._numbers)}", root, caller)
        session = self._known[client.id] = SessionRecord(client, current_time(), hang_up)
        if caller.pid is not None:
            self._tasks.start_soon(self._outlive, session, caller.pid)
        self.changed.notify()
        return client

    def keep(self, caller: Caller) -> ClientSession:
        """The session of a conversation in its workspace: the existing one, or a new one."""
        key = (caller.host, caller.conversation or "", _root(caller))
        known = self._known.get(self._kept.get(key, ""))
        if known is not None:
            # A conversation may change its folder in the workspace: paths are relative to the present one.
            known.client = _client(known.client.id, known.client.root, caller)
            return known.client
        client = self.attach(caller, None)
        self._kept[key] = client.id
        return client

    @contextmanager
    def connection(self) -> Generator[None]:
        """Count an open connection: the daemon must not end just before its hello."""
        self.connections += 1
        try:
            yield
        finally:
            self.connections -= 1
            self.changed.notify()

    @contextmanager
    def using(self, client: ClientSession) -> Generator[None]:
        """Count a call of this session in progress."""
        session = self._known.get(client.id)
        if session is None:
            yield
            return
        session.calls += 1
        try:
            yield
        finally:
            session.calls -= 1
            session.last_used = current_time()
            self.changed.notify()

    def used(self, *identifiers: str) -> None:
        for identifier in self._known.keys() & identifiers:
            self._known[identifier].last_used = current_time()

    def end(self, identifier: str) -> bool:
        """End a session; False when there was none."""
        session = self._known.pop(identifier, None)
        if session is None:
            return False
        self._kept = {key: kept for key, kept in self._kept.items() if kept != identifier}
        session.life.cancel()
        self._release(session.client)
        self.changed.notify()
        return True

    def end_conversation(self, host: str | None, conversation: str) -> list[ClientSession]:
        """End the kept sessions of a conversation, in every workspace; returns them."""
        meant = [kept for key, kept in self._kept.items() if key[:2] == (host, conversation)]
        ended = [self._known[identifier].client for identifier in meant if identifier in self._known]
        for client in ended:
            self.end(client.id)
        return ended

    async def _outlive(self, session: SessionRecord, pid: int) -> None:
        with session.life:
            try:
                await self._gone(pid)
            except ProcessLookupError:
                # It runs in another container, or has ended already: the session ends in one of the other ways.
                return
            self._end_with(session, f"process {pid}, the owner of this session, has ended")

    async def _expire(self) -> None:
        while True:
            idle = [session for session in self._known.values() if not session.calls]
            with anyio.CancelScope(deadline=min((session.expires_at for session in idle), default=float("inf"))):
                await self.changed.wait()
            now = current_time()
            for session in self.all():
                if not session.calls and session.expires_at <= now:
                    self._end_with(session, "idle for too long")

    def _end_with(self, session: SessionRecord, why: str) -> None:
        if self.end(session.client.id) and session.hang_up is not None:
            session.hang_up(Code.SHUTTING_DOWN, why)


def _client(identifier: str, root: AbsPath, caller: Caller) -> ClientSession:
    cwd = AbsPath(caller.cwd)
    return ClientSession(identifier, root, cwd, caller.host, caller.environment, conversation=caller.conversation)


def _root(caller: Caller) -> AbsPath:
    for folder in (caller.cwd, caller.root):
        if folder is not None and (not os.path.isabs(folder) or "\0" in folder):
            raise Refused(Code.INVALID_INPUT, f"not an absolute path: {folder!r}")
    root = os.path.normpath(caller.root or top_of(os.path.normpath(caller.cwd)))
    if not os.path.isdir(root):
        raise Refused(Code.ROOT_GONE, f"the workspace {root} is not a folder")
    return AbsPath(root)


# --- A connection becomes something else ------------------------------------------------------------------------------

# A surface with a protocol of its own over the same socket. A client asks with a request that bears the upgrade's name.
# After the answer there are no more frames: every byte in either direction is the surface's until one side closes. The
# client speaks first.


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
