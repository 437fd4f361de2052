"""What to do with a demand for a server, and with servers that no client needs. Pure: facts and time in, decision out.

A *slot* is what is known about one key: nothing yet, starting, running, stopping, or resting for a reason that has a
date. A failure is never for ever unless the configuration says so, and never causes a retry storm.
"""

from collections.abc import Mapping
from enum import StrEnum
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.schema import RestartPolicy
from pilotfish.errors import Code, Failure, Unavailable
from pilotfish.model import AbsPath

FIRST_DELAY = 5.0
LONGEST_DELAY = 60.0
JITTER = 0.2
"""Back-off after a failed start: 5 s × 2ⁿ up to 60 s, ±20 %, so that many roots do not come back at once."""

CRASH_LIMIT = 5
CRASH_WINDOW = 180.0
"""Five crashes in three minutes open the circuit; it closes when the window has passed."""

OUTDATED_SECONDS = 1.0
"""For the requests that have waited for the start of a server whose configuration has changed meanwhile."""

UNKNOWN_MIB = 1024.0
"""What a server may need of whose id none was measured yet: those of ordinary projects have 300 to 3,000. Where less is
left, such servers are started one at a time, each when the one before was measured. None is stopped for a guess."""

LONGEST_REST = 3600.0
"""How long the documents of a stopped server are kept while a client session that used it is still there. After an
hour without a question the next one opens what it needs."""


class Key(Struct, frozen=True):
    """What makes two demands share one server: the server, its root, its effective configuration, its environment."""

    server: str
    root: AbsPath
    config: str = ""
    environment: str = ""
    """Differs for two clients whose variables would make two different servers of one program (T48)."""

    def __str__(self) -> str:
        return f"{self.server}::{self.root}"


class Why(StrEnum):
    """Why a server was stopped on purpose."""

    IDLE = "idle"
    UNUSED = "no client session left"
    MEMORY = "memory budget"
    CROWDED = "made room for another"
    CONFIG = "configuration changed"
    INPUTS = "what it had read has changed"
    ASKED = "stopped by hand"


class Starting(Struct, frozen=True):
    since: float


class Running(Struct, frozen=True):
    since: float
    last_used: float
    in_flight: int = 0
    leases: int = 0
    """Client sessions that have asked for it and have not ended; the same in the slots of servers that do not run."""
    memory_mib: float | None = None
    """Of its process."""
    outdated: bool = False
    """Its configuration has changed: no later request uses it."""
    proven: bool = False
    """It has answered and was measured after that: before, it may be far from its size."""
    process: str = ""
    """The same in all slots of worktrees that share a process; empty where it has one of its own."""


class Stopping(Struct, frozen=True):
    why: Why


class Rested(Struct, frozen=True):
    """Stopped on purpose; comes back on use."""

    why: Why
    since: float = 0.0
    leases: int = 0


class Broken(Struct, frozen=True):
    """Failed to start, or crashed."""

    failure: Failure
    attempts: int
    """Failures in a row without one good answer between them."""
    retry_at: float
    crashes: tuple[float, ...] = ()
    """When it failed, within the crash window."""
    leases: int = 0
    witnesses: int = 0
    """Of these, the client sessions that used it when it failed."""


class Missing(Struct, frozen=True):
    """Its program was not found; looked for again when `fingerprint` (search path and configuration) changes."""

    failure: Failure
    fingerprint: str
    since: float = 0.0
    leases: int = 0


Slot = Starting | Running | Stopping | Rested | Broken | Missing


class Limits(Struct, frozen=True):
    """How much may run. Memory is of the whole process tree; None means no limit."""

    idle_seconds: float = 900.0
    unused_seconds: float = 60.0
    """How long a server outlives its last client session: an agent that restarts finds it warm. Once stopped, it is
    remembered for as long again."""
    memory_mib_per_server: float | None = None
    memory_mib: float | None = None
    servers: int = 64
    share_worktrees: bool = True
    """One server for several worktrees, where the configuration wants it and the catalogue says that it can."""


class Demand(Struct, frozen=True):
    restart: RestartPolicy = "backoff"
    fingerprint: str = ""


class Start(Struct, frozen=True):
    pass


class Join(Struct, frozen=True):
    """It runs or is starting: share it."""


class Wait(Struct, frozen=True):
    """It is being stopped: decide again when that is over."""


class Evict(Struct, frozen=True):
    """Stop the process of `key` first: there is no room."""

    key: Key


class Refuse(Struct, frozen=True):
    failure: Failure


class WaitForRoom(Struct, frozen=True):
    """It would not fit beside those that are answering: decide again when one of them has answered."""


Decision = Start | Join | Wait | WaitForRoom | Evict | Refuse

Sizes = Mapping[str, float]
"""The largest that a server of each id was, in MiB: what another one is expected to need."""


class Retire(Struct, frozen=True):
    key: Key
    why: Why
    """For `MEMORY`, all that share its process are stopped with it."""


def admission(
    key: Key, slots: Mapping[Key, Slot], demand: Demand, limits: Limits, now: float, sizes: Sizes | None = None
) -> Decision:
    """What to do for a client that needs `key` now."""
    match slots.get(key):
        case Starting() | Running():
            return Join()
        case Stopping():
            return Wait()
        case Broken() as broken if refusal := _after_breakage(broken, demand, now):
            return refusal
        case Missing(failure, fingerprint) if fingerprint == demand.fingerprint:
            return Refuse(failure)
        case _:
            return _room(key, slots, limits, sizes or {})


def room_to_spare(slots: Mapping[Key, Slot], limits: Limits) -> int:
    """How many servers may be started that nobody has asked for yet: without stopping another one for them."""
    alive = [slot for slot in _processes(slots).values() if isinstance(slot, Starting | Running | Stopping)]
    in_all = sum(slot.memory_mib or 0.0 for slot in alive if isinstance(slot, Running))
    return limits.servers - len(alive) if limits.memory_mib is None or in_all < limits.memory_mib else 0


def setback(before: Slot | None, failure: Failure, *, healthy: bool, now: float, jitter: float) -> Broken:
    """The slot after a failure. `healthy`: it had given a good answer; `jitter` lies in [-1, 1].

    A server that worked and then crashed is started again at once, so that the next answer is right without anyone
    acting; one that fails again before any good answer backs off.
    """
    known = before if isinstance(before, Broken) else None
    attempts = 1 if healthy or known is None else known.attempts + 1
    crashes = tuple(when for when in (known.crashes if known else ()) if now - when < CRASH_WINDOW)
    delay = 0.0 if healthy else min(LONGEST_DELAY, FIRST_DELAY * 2 ** (attempts - 1)) * (1 + JITTER * jitter)
    return Broken(failure, attempts, now + delay, (*crashes, now))


def upkeep(slots: Mapping[Key, Slot], limits: Limits, now: float) -> tuple[Retire, ...]:
    """What to stop, least recently used first; never one that is answering.

    The memory of all is for several: the one that was used last stays, however large. It would only start again.
    """
    retired = [
        Retire(key, Why.CONFIG if slot.outdated else Why.IDLE if slot.leases else Why.UNUSED)
        for key, slot in _idle_first(slots)
        if now - slot.last_used >= _patience(slot, limits)
    ]
    stopped = {retire.key for retire in retired}
    left = _processes({key: slot for key, slot in slots.items() if key not in stopped})
    idle, alive = _idle_first(left), [slot for slot in left.values() if isinstance(slot, Running)]
    in_all = sum(slot.memory_mib or 0.0 for slot in alive)
    kept = idle[-1][0] if len(idle) == len(alive) > 0 else None
    for key, slot in sorted(idle, key=lambda pair: not _is_too_large(pair[1], limits)):
        is_over = limits.memory_mib is not None and in_all > limits.memory_mib and key != kept
        if is_over or _is_too_large(slot, limits):
            retired.append(Retire(key, Why.MEMORY))
            in_all -= slot.memory_mib or 0.0
    return tuple(retired)


def of_process(key: Key, slots: Mapping[Key, Slot]) -> tuple[Key, ...]:
    """All that share the process of this one."""
    slot = slots[key]
    process = slot.process if isinstance(slot, Running) else ""
    shared = (one for one, other in slots.items() if isinstance(other, Running) and other.process == process)
    return tuple(shared) if process else (key,)


def forgettable(slots: Mapping[Key, Slot], limits: Limits, now: float) -> tuple[Key, ...]:
    """The servers that do not run and of which nothing needs to be remembered any more: no text, no failure."""
    return tuple(key for key, slot in slots.items() if _forget_at(slot, limits) <= now)


def next_upkeep(slots: Mapping[Key, Slot], limits: Limits) -> float:
    """When `upkeep` or `forgettable` may next have something to say because of time alone."""
    due = [slot.last_used + _patience(slot, limits) for _, slot in _idle_first(slots)]
    return min((*due, *(_forget_at(slot, limits) for slot in slots.values())), default=inf)


def _after_breakage(broken: Broken, demand: Demand, now: float) -> Refuse | None:
    failure, scene = broken.failure, broken.failure.scene
    if demand.restart == "never" and broken.witnesses:
        return Refuse(failure)
    recent = [when for when in broken.crashes if now - when < CRASH_WINDOW]
    if len(recent) >= CRASH_LIMIT:
        message = f"{scene.server} failed {len(recent)} times in {CRASH_WINDOW:g} s; the last time: {failure.message}"
        hint = "It is tried again when three minutes have passed, or after `pilotfish restart`."
        again = recent[0] + CRASH_WINDOW
        return Refuse(Unavailable(Code.CRASH_LOOP, message, hint=hint, scene=scene, retry_at=again))
    if now < broken.retry_at:
        message = f"{failure.message}; tried again in {broken.retry_at - now:.0f} s"
        return Refuse(Unavailable(failure.code, message, hint=failure.hint, scene=scene, retry_at=broken.retry_at))
    return None


def _room(key: Key, slots: Mapping[Key, Slot], limits: Limits, sizes: Sizes) -> Decision:
    slots = _processes(slots)
    alive = sum(isinstance(slot, Starting | Running | Stopping) for slot in slots.values())
    if _is_guess(key, slots, limits, sizes):
        return WaitForRoom()
    fits = not alive or _fits(key, slots, limits, sizes)
    if alive < limits.servers and fits:
        return Start()
    idle = _idle_first(slots)
    if idle:
        return Evict(idle[0][0])
    if not fits:
        return WaitForRoom()
    message = f"{alive} language servers are running and all are busy"
    return Refuse(Unavailable(Code.OVERLOADED, message, hint="Try again shortly."))


def _is_guess(key: Key, slots: Mapping[Key, Slot], limits: Limits, sizes: Sizes) -> bool:
    """Whether nobody knows how large it gets, it may not fit, and others of unknown size are about to be measured."""
    if limits.memory_mib is None or key.server in sizes:
        return False
    measured_soon = (
        other
        for other, slot in slots.items()
        if isinstance(slot, Starting) or (isinstance(slot, Running) and not slot.proven and slot.in_flight > 0)
    )
    unmeasured = [other for other in measured_soon if other.server not in sizes]
    known = sum(_expected(other.server, slot, sizes) for other, slot in slots.items() if other not in unmeasured)
    return bool(unmeasured) and known + (len(unmeasured) + 1) * UNKNOWN_MIB > limits.memory_mib


def _fits(key: Key, slots: Mapping[Key, Slot], limits: Limits, sizes: Sizes) -> bool:
    """Whether one more stays within the memory of all, as large as its like have been."""
    if limits.memory_mib is None or key.server not in sizes:
        return True
    in_all = sum(_expected(other.server, slot, sizes) for other, slot in slots.items())
    return in_all + sizes[key.server] <= limits.memory_mib


def _expected(server: str, slot: Slot, sizes: Sizes) -> float:
    match slot:
        case Running(memory_mib=known, proven=True):
            return known or 0.0
        case Running(memory_mib=known):
            return max(known or 0.0, sizes.get(server, 0.0))
        case Starting() | Stopping():
            return sizes.get(server, 0.0)
        case _:
            return 0.0


def _processes(slots: Mapping[Key, Slot]) -> dict[Key, Slot]:
    """The same with one slot for each process: one is idle when nobody of those that share it has asked for anything,
    and as old as the youngest of them."""
    found: dict[Key, Slot] = {}
    first: dict[str, Key] = {}
    for key, slot in slots.items():
        if not isinstance(slot, Running) or not slot.process:
            found[key] = slot
            continue
        one = first.setdefault(slot.process, key)
        known = found.get(one)
        found[one] = (
            slot
            if not isinstance(known, Running)
            else replace(
                slot,
                last_used=max(known.last_used, slot.last_used),
                in_flight=known.in_flight + slot.in_flight,
                memory_mib=max(known.memory_mib or 0.0, slot.memory_mib or 0.0),
                proven=known.proven or slot.proven,
            )
        )
    return found


def _idle_first(slots: Mapping[Key, Slot]) -> list[tuple[Key, Running]]:
    """The running ones with nothing in flight, least recently used first."""
    idle = [(key, slot) for key, slot in slots.items() if isinstance(slot, Running) and not slot.in_flight]
    return sorted(idle, key=lambda pair: pair[1].last_used)


def _is_too_large(slot: Running, limits: Limits) -> bool:
    return limits.memory_mib_per_server is not None and (slot.memory_mib or 0.0) > limits.memory_mib_per_server


def _patience(slot: Running, limits: Limits) -> float:
    if slot.outdated:
        return OUTDATED_SECONDS
    return limits.idle_seconds if slot.leases else min(limits.unused_seconds, limits.idle_seconds)


def _forget_at(slot: Slot, limits: Limits) -> float:
    """When a slot may be forgotten. A failure is remembered while a client session is there that it was reported to."""
    match slot:
        case Rested(why=Why.CONFIG):
            return slot.since
        case Rested(leases=0) | Missing(leases=0):
            return slot.since + limits.unused_seconds
        case Rested():
            return slot.since + LONGEST_REST
        case Broken(leases=0):
            return max((slot.retry_at, *(when + CRASH_WINDOW for when in slot.crashes)))
        case _:
            return inf
