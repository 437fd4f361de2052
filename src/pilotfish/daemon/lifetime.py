"""How long the daemon runs: until it is stopped, has been idle for a while, or a client has newer code.

`departure` decides; `Lifetime` waits. A daemon that a client with newer code has called still serves the attached
clients, and ends when none is left: the next client starts the newer daemon (F71).
"""

import logging
import math
import os
from collections.abc import Callable

import anyio
from msgspec import Struct

from pilotfish.ipc.client_sessions import ClientSessions
from pilotfish.ipc.rendezvous import BUILD
from pilotfish.system import calls
from pilotfish.system.clock import current_time

logger = logging.getLogger(__name__)

POLL_SECONDS = 10.0
"""How often to look for a process where the system has no process descriptors."""

GONE = "its socket, its lock or its state folder is gone"


class Load(Struct, frozen=True):
    sessions: int
    attached: int
    """Those of them that a connection carries."""
    calls: int
    """Calls under way."""
    connections: int = 0
    """Those without a session included: a client may be about to begin one."""


def departure(load: Load, *, superseded: bool, alone_since: float, idle_seconds: float) -> float:
    """When to end, if nothing changes: infinity while the daemon is needed, in the past when it is not."""
    if load.attached or load.calls:
        return math.inf
    if superseded:
        return -math.inf
    return math.inf if load.sessions or load.connections else alone_since + idle_seconds


class Lifetime:
    """`ending` is set once, and `why` says why."""

    def __init__(
        self,
        sessions: ClientSessions,
        idle_seconds: float,
        build: int = BUILD,
        can_be_found: Callable[[], bool] = lambda: True,
    ) -> None:
        self._sessions = sessions
        self._can_be_found = can_be_found
        self._idle_seconds = idle_seconds
        self._build = build
        self.superseded = False
        self.ending = anyio.Event()
        self.why = ""

    def met(self, build: int) -> bool:
        """A client of that build has called; False when it should call again, to start another daemon."""
        if not self._can_be_found():
            self.stop(GONE)
            return False
        if build > self._build and not self.superseded:
            # Another process will be the daemon: this one ends when no client is attached.
            logger.info("superseded")
            self.superseded = True
            self._sessions.changed.notify()
        leave_at = departure(self._load(), superseded=self.superseded, alone_since=math.inf, idle_seconds=0.0)
        if leave_at > current_time():
            return True
        self.stop("replaced by newer code")
        return False

    def stop(self, why: str) -> None:
        if not self.ending.is_set():
            logger.info("ending why=%s", why)
            self.why = why
            self.ending.set()

    async def run(self) -> None:
        alone_since, was_alone = current_time(), True
        while True:
            load = self._load()
            alone = not (load.sessions or load.connections)
            if not (alone and was_alone):
                alone_since = current_time()
            was_alone = alone
            leave_at = departure(
                load, superseded=self.superseded, alone_since=alone_since, idle_seconds=self._idle_seconds
            )
            if leave_at <= current_time():
                self.stop("replaced by newer code" if self.superseded else "idle")
                return
            with anyio.CancelScope(deadline=leave_at):
                await self._sessions.changed.wait()

    def _load(self) -> Load:
        sessions = self._sessions
        return Load(len(sessions.all()), sessions.attached, sessions.calls, sessions.connections)


async def wait_for_process(pid: int) -> None:
    """Wait for the end of a process that is not our child; raises `ProcessLookupError` when it cannot be watched."""
    if pid <= 0:
        raise ProcessLookupError(pid)
    try:
        descriptor = calls.open_process(pid)
    except OSError:
        if not calls.lives(pid):
            raise ProcessLookupError(pid) from None
        while calls.lives(pid):  # noqa: ASYNC110 -- the system has no event for it
            await anyio.sleep(POLL_SECONDS)  # noqa: TID251 -- the system has no process descriptors
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
