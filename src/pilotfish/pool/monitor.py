"""What time alone changes: servers that no client uses, that use too much, or that hang.

Nothing is polled: it sleeps until the plan says that something may be due, and a question moves that forward only when
it is due sooner than anything else.
"""

import math
from collections.abc import Callable, Mapping

import anyio

from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Key, Limits, Running, Why, forgettable, next_upkeep, of_process, upkeep
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Vitals

SUSPICION_SECONDS = 3.0
"""A request of this age, to a server that has sent nothing since, makes us check whether the server works at all."""

SIGN_OF_LIFE_SECONDS = 2.0
"""How long a suspected server may use no processor time before it counts as hung."""

IDLE_CPU_SECONDS = 0.01
"""Less processor time than this over `SIGN_OF_LIFE_SECONDS` counts as idle: timers alone cost that much."""

MEASURE_SECONDS = 30.0
"""How often the memory of running servers is measured while a budget is set."""


class Monitor:
    def __init__(
        self, entries: Mapping[Key, Entry], vitals: Vitals, limits: Limits, forget: Callable[[Key], None]
    ) -> None:
        self._entries = entries
        self._forget = forget
        self._vitals = vitals
        self._limits = limits
        self.sizes: dict[str, float] = {}
        """The largest that a server of each id was, in MiB."""
        self._woken = Pulse()
        self._next_look = math.inf
        self._suspects: dict[Key, tuple[float, float]] = {}
        """Since when a server is suspected, and the processor time that it had used by then."""

    def note_request(self, now: float) -> None:
        """A request was sent: the server may turn out to hang on it."""
        if now + SUSPICION_SECONDS < self._next_look:
            self.look_again()

    def look_again(self) -> None:
        self._woken.notify()

    async def watch(self) -> None:
        while True:
            now = current_time()
            await self._stop_hung(now)
            await self._measure()
            slots = {key: entry.slot for key, entry in self._entries.items()}
            for retire in upkeep(slots, self._limits, now):
                for key in of_process(retire.key, slots) if retire.why is Why.MEMORY else (retire.key,):
                    self._entries[key].stop(retire.why)
            for key in forgettable(slots, self._limits, now):
                self._forget(key)
            self._next_look = self._due(now)
            with anyio.CancelScope(deadline=self._next_look):
                await self._woken.wait()

    async def _stop_hung(self, now: float) -> None:
        silent = {key: session for key, entry in self._entries.items() if (session := _silent(entry, now)) is not None}
        self._suspects = {key: since for key, since in self._suspects.items() if key in silent}
        for key, session in silent.items():
            used = await self._vitals.cpu_seconds(session.pid)
            if used is None:
                continue
            since, used_then = self._suspects.setdefault(key, (now, used))
            if now - since < SIGN_OF_LIFE_SECONDS:
                continue
            if used - used_then < IDLE_CPU_SECONDS:
                session.fail(f"has neither answered nor used the processor for {now - since + SUSPICION_SECONDS:.0f} s")
            self._suspects[key] = (now, used)

    async def _measure(self) -> None:
        if not self.budgeted:
            return
        for entry in tuple(self._entries.values()):
            await self.measure(entry)

    async def measure(self, entry: Entry) -> None:
        """Of a server that has answered, the size is what another one of its id is expected to need."""
        if entry.session is None:
            return
        whole = await self._vitals.memory_mib(entry.session.pid)
        entry.set_memory(whole)
        if entry.proven:
            server = entry.key.server
            self.sizes[server] = max(self.sizes.get(server, 0.0), whole or 0.0)

    @property
    def budgeted(self) -> bool:
        return self._limits.memory_mib is not None or self._limits.memory_mib_per_server is not None

    def _due(self, now: float) -> float:
        slots = {key: entry.slot for key, entry in self._entries.items()}
        due = [when for when in (next_upkeep(slots, self._limits),) if when is not None]
        for key, entry in self._entries.items():
            if key in self._suspects:
                due.append(self._suspects[key][0] + SIGN_OF_LIFE_SECONDS)
            elif entry.works:
                due.append(now + SUSPICION_SECONDS)
        if self.budgeted and any(isinstance(slot, Running) for slot in slots.values()):
            due.append(now + MEASURE_SECONDS)
        return min(due, default=math.inf)


def _silent(entry: Entry, now: float) -> Session | None:
    """The session, if it has owed an answer for long and sent nothing since; reported progress excuses it."""
    session = entry.session
    if session is None or session.readiness.busy or (entry.process and not entry.works):
        # Or what it owes waits for its turn.
        return None
    since = session.silent_since
    return session if since is not None and now - since >= SUSPICION_SECONDS else None
