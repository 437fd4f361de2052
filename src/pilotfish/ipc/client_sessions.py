"""Client sessions: who works where, and when that is over.

A session is *attached* when a connection carries it, and ends with that at the latest. It is *kept* when it belongs to
a conversation whose every message is a connection of its own, as with hook programs. Both end with their `end`
message, with the process that they named, or when nothing has happened for long. Ending one twice is harmless.

The root is fixed when a session begins: whatever a client asks for later, it is served as that workspace (T24).
"""

import itertools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Bug, Code, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import ClientSession, Variables
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.worktree import top_of

MAX_SESSIONS = 256
"""Far more than one person's agents; a program that opens more has lost count."""

KEPT_SECONDS = 1800.0
"""How long a conversation may be silent: a model that thinks, or a person at lunch, finds its servers warm."""

ATTACHED_SECONDS = 12 * 3600.0
"""How long a connection may be silent: one that somebody forgot must not keep the daemon for ever."""

MAX_WORD = 200
"""Characters of a host's or conversation's name."""

OpenSession = Callable[[AbsPath | None], ClientSession]
"""Opens the client session of a root that the client named; for None, that of its first folder. May raise `Failure`."""

HangUp = Callable[[Code, str], None]
"""Ends the connection that carries a session, and says why."""


class Caller(Struct, frozen=True):
    """What a client says of itself."""

    cwd: str
    host: str | None = None
    conversation: str | None = None
    root: str | None = None
    """The workspace; by default the git worktree around `cwd`, or that folder."""
    pid: int | None = None
    """The process that the session shall not outlive."""
    environment: Variables = ()


class SessionRecord(Struct):
    """One client session and what is known of its life."""

    client: ClientSession
    caller: Caller
    last_used: float
    hang_up: HangUp | None = None
    """None for one that no connection carries."""
    calls: int = 0
    """Calls under way."""
    life: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Around whatever watches it."""

    @property
    def silent_at(self) -> float:
        """When it will have been silent for too long."""
        return self.last_used + (KEPT_SECONDS if self.hang_up is None else ATTACHED_SECONDS)


class ClientSessions:
    """All that there are. `running` owns the tasks that watch them."""

    def __init__(self, release: Callable[[ClientSession], None], gone: Callable[[int], Awaitable[None]]) -> None:
        self._release = release
        """Told of every session that has ended."""
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
        """Calls under way, of all sessions."""
        return sum(session.calls for session in self._known.values())

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["ClientSessions"]:
        """While this lasts, sessions end by themselves; at its end, all do."""
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

    def attach(self, caller: Caller, hang_up: HangUp) -> ClientSession:
        """A session for a connection; raises `Refused` for an impossible folder, `Unavailable` for one too many."""
        return self._begun(caller, hang_up)

    def keep(self, caller: Caller) -> ClientSession:
        """The session of a conversation in its workspace: the one there is, or a new one."""
        key = (caller.host, caller.conversation or "", _root(caller))
        known = self._known.get(self._kept.get(key, ""))
        if known is not None:
            # A conversation may walk about in its workspace: paths count from where it is now.
            known.client = _client(known.client.id, known.client.root, caller)
            return known.client
        client = self._begun(caller, None)
        self._kept[key] = client.id
        return client

    @contextmanager
    def connection(self) -> Generator[None]:
        """A connection is open: who is about to say hello must not find that we have just left."""
        self.connections += 1
        try:
            yield
        finally:
            self.connections -= 1
            self.changed.beat()

    @contextmanager
    def using(self, client: ClientSession) -> Generator[None]:
        """A call of this session is under way."""
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
            self.changed.beat()

    def used(self, *identifiers: str) -> None:
        """Something happened in these sessions just now."""
        for session in (self._known[identifier] for identifier in identifiers if identifier in self._known):
            session.last_used = current_time()

    def end(self, identifier: str) -> bool:
        """End a session; False when there was none."""
        session = self._known.pop(identifier, None)
        if session is None:
            return False
        self._kept = {key: kept for key, kept in self._kept.items() if kept != identifier}
        session.life.cancel()
        self._release(session.client)
        self.changed.beat()
        return True

    def end_conversation(self, host: str | None, conversation: str) -> None:
        """End what was kept of a conversation, in every workspace."""
        for key, identifier in tuple(self._kept.items()):
            if key[:2] == (host, conversation):
                self.end(identifier)

    def _begun(self, caller: Caller, hang_up: HangUp | None) -> ClientSession:
        root = _root(caller)
        _check_words(caller)
        self._make_room()
        if self._tasks is None:
            raise Bug("a session was opened while nobody watches over sessions")
        client = _client(f"session {next(self._numbers)}", root, caller)
        session = self._known[client.id] = SessionRecord(client, caller, current_time(), hang_up)
        if caller.pid is not None:
            self._tasks.start_soon(self._outlive, session, caller.pid)
        self.changed.beat()
        return client

    def _make_room(self) -> None:
        """Forget the conversation that has been silent longest; whoever is attached or asks stays."""
        if len(self._known) < MAX_SESSIONS:
            return
        silent = [session for session in self._known.values() if session.hang_up is None and not session.calls]
        if not silent:
            raise Unavailable(Code.OVERLOADED, f"there are {MAX_SESSIONS} client sessions already")
        self.end(min(silent, key=lambda session: session.last_used).client.id)

    async def _outlive(self, session: SessionRecord, pid: int) -> None:
        with session.life:
            try:
                await self._gone(pid)
            except ProcessLookupError:
                # Of another machine or container, or gone already: then the other ways to end must do.
                return
            self._cut(session, f"process {pid}, to which this session belonged, has ended")

    async def _expire(self) -> None:
        while True:
            idle = [session for session in self._known.values() if not session.calls]
            with anyio.CancelScope(deadline=min((session.silent_at for session in idle), default=float("inf"))):
                await self.changed.wait()
            now = current_time()
            for session in self.all():
                if not session.calls and session.silent_at <= now:
                    self._cut(session, "nothing was asked for too long")

    def _cut(self, session: SessionRecord, why: str) -> None:
        if self.end(session.client.id) and session.hang_up is not None:
            session.hang_up(Code.SHUTTING_DOWN, why)


def _client(identifier: str, root: AbsPath, caller: Caller) -> ClientSession:
    return ClientSession(identifier, root, AbsPath(caller.cwd), caller.host, caller.environment)


def _root(caller: Caller) -> AbsPath:
    for folder in (caller.cwd, caller.root):
        if folder is not None and (not os.path.isabs(folder) or "\0" in folder):
            raise Refused(Code.INVALID_INPUT, f"not an absolute path: {folder!r}")
    root = os.path.normpath(caller.root or top_of(os.path.normpath(caller.cwd)))
    if not os.path.isdir(root):
        raise Refused(Code.ROOT_GONE, f"the workspace {root} is not a folder")
    return AbsPath(root)


def _check_words(caller: Caller) -> None:
    for word in (caller.host, caller.conversation):
        if word is not None and len(word) > MAX_WORD:
            raise Refused(Code.INVALID_INPUT, f"a name of {len(word)} characters is too long")
