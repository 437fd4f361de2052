"""The state of all servers of a workspace, as `status` and the panel show it. Read only."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal
from weakref import WeakKeyDictionary

from msgspec import Struct, structs

from pilotfish.api.status import (
    BrokenState,
    Counts,
    Instance,
    ProcessRow,
    ServerRow,
    SidecarRow,
    Snapshot,
    Totals,
    WatchState,
)
from pilotfish.config.merge import ConfigSource
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Key, Missing, Rested, Running, Slot, Starting, Stopping
from pilotfish.pool.sidecar import SidecarState
from pilotfish.sanitise import sanitised
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.status.current import ByFile, counts_of, current_diagnostics
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, WatchHealth

ORDER = ("broken", "spawning", "connected", "idle", "unavailable", "disabled")
"""What needs attention comes first."""

STATES: Mapping[type[Slot], Literal["starting", "active", "stopping", "idle", "broken"]] = {
    Starting: "starting",
    Running: "active",
    Stopping: "stopping",
    Broken: "broken",
    Rested: "idle",
    Missing: "idle",
}
"""Of an instance, by its slot in the pool."""

DISABLED = "LSP disabled by configuration"

MAX_TITLE = 100
"""Code points of a server's progress title."""


Watched = Callable[[AbsPath], WatchHealth | None]
"""The state of the watcher of a root; None without one."""


class Snapshots:
    def __init__(
        self,
        clock: Clock,
        watched: Watched = lambda _root: None,
        states: FileStates | None = None,
        memory_limit_mib: float | None = None,
    ) -> None:
        self._clock = clock
        self._memory_limit_mib = memory_limit_mib
        self._watched = watched
        self._states = states or FileStates()
        self._unused: WeakKeyDictionary[Workspace, tuple[Mapping[str, str], dict[str, ServerRow]]] = WeakKeyDictionary()
        """The rows of servers that are not in use, which are nearly all, with the shortcomings they were made from."""

    def of(
        self, workspace: Workspace, entries: Mapping[Key, Entry], memory: Mapping[int, float] | None = None
    ) -> Snapshot:
        """Every known and configured server: those in trouble first, then by id. `memory` is in MiB, by pid."""
        # Slots use the monotonic clock, people read wall time.
        now = current_time()
        ahead, shortcomings = self._clock.wall() - now, workspace.shortcomings()
        found, shared = self.diagnostics(workspace, entries), _roots_by_process(entries)
        moment = _Moment(now, ahead, self._watched, memory or {}, shortcomings, found, shared)
        rows = sorted(
            self._rows(workspace, entries, moment), key=lambda row: (ORDER.index(state_of(row)), row.server_id)
        )
        return Snapshot(
            generated_at=_milliseconds(now + moment.ahead),
            rows=tuple(rows),
            totals=totals_of(rows),
            root=workspace.root,
            trusted=workspace.config.trusted,
            disabled=None if workspace.config.enabled else DISABLED,
            warnings=(*workspace.warnings, *workspace.replacements()),
            processes=tuple(_processes(entries, moment)),
            memory_limit_mib=self._memory_limit_mib,
        )

    def diagnostics(self, workspace: Workspace, entries: Mapping[Key, Entry]) -> ByFile:
        """What is wrong in each file now, as far as anybody knows."""
        return current_diagnostics(self._states, entries, workspace)

    def _rows(self, workspace: Workspace, entries: Mapping[Key, Entry], moment: "_Moment") -> Iterator[ServerRow]:
        own: dict[str, list[tuple[Key, Entry]]] = {server: [] for server in workspace.specs}
        for key, entry in entries.items():
            if key.server in own and workspace.holds(key.root):
                own[key.server].append((key, entry))
        kept = self._unused.get(workspace)
        if kept is None or kept[0] is not moment.shortcomings:
            kept = self._unused[workspace] = (moment.shortcomings, {})
        unused = kept[1]
        for server, slots in own.items():
            if slots:
                yield _row(workspace, server, slots, moment)
            else:
                yield unused.get(server) or unused.setdefault(server, _row(workspace, server, (), moment))


def state_of(row: ServerRow) -> str:
    """One word for a row: the most severe state that applies."""
    if row.disabled:
        return "disabled"
    if row.broken is not None:
        return "broken"
    if row.spawning_roots:
        return "spawning"
    if row.connected_roots:
        return "connected"
    return "idle" if row.unavailable is None else "unavailable"


class _Moment(Struct, frozen=True):
    """What all rows of one snapshot share."""

    now: float
    ahead: float
    """Wall time minus monotonic time."""
    watched: Watched
    memory: Mapping[int, float]
    shortcomings: Mapping[str, str]
    diagnostics: ByFile
    shared: Mapping[str, Sequence[AbsPath]]
    """The roots that take turns at a process, by its name."""


def _roots_by_process(entries: Mapping[Key, Entry]) -> dict[str, list[AbsPath]]:
    found: dict[str, list[AbsPath]] = {}
    for key in sorted(entries, key=lambda key: key.root):
        entry = entries[key]
        if entry.process and entry.session is not None:
            found.setdefault(entry.process, []).append(key.root)
    return found


def _processes(entries: Mapping[Key, Entry], moment: _Moment) -> Iterator[ProcessRow]:
    """The largest first; then what is at rest."""
    rows: dict[object, ProcessRow] = {}
    for key, entry in entries.items():
        if entry.session is not None:
            roots = moment.shared.get(entry.process, (key.root,))
            memory = moment.memory.get(entry.session.pid, entry.memory_mib)
            rows[entry.process or key] = ProcessRow(server_id=key.server, roots=tuple(roots), memory_mib=memory)
        elif isinstance(entry.slot, Rested):
            rows[key] = ProcessRow(server_id=key.server, roots=(key.root,), rested=entry.slot.why)
    yield from sorted(rows.values(), key=lambda row: (row.rested is not None, -(row.memory_mib or 0.0), row.roots))


def _row(workspace: Workspace, server: str, kept: Iterable[tuple[Key, Entry]], moment: _Moment) -> ServerRow:
    spec, slots = workspace.specs[server], [(key.root, entry) for key, entry in kept]
    connected = [root for root, entry in slots if isinstance(entry.slot, Running)]
    broken = [_broken(entry.slot, moment.ahead) for _, entry in slots if isinstance(entry.slot, Broken)]
    missing = [entry.slot.failure.message for _, entry in slots if isinstance(entry.slot, Missing)]
    seen = [entry.last_used for _, entry in slots if entry.last_used]
    watched = (health for root in connected if (health := moment.watched(root)) is not None)
    return ServerRow(
        server_id=server,
        source=_source(workspace, server),
        disabled=spec.disabled or not workspace.config.enabled,
        extensions=spec.files.extensions,
        configured_roots=tuple(sorted({root for root, _ in slots})),
        connected_roots=tuple(sorted(connected)),
        spawning_roots=tuple(sorted(root for root, entry in slots if isinstance(entry.slot, Starting))),
        broken=max(broken, key=lambda one: one.attempts, default=None),
        diagnostics=_counts(server, slots, moment.diagnostics) if connected else None,
        last_seen_at=_milliseconds(max(seen) + moment.ahead) if seen else None,
        watching=_watching(watched),
        sidecars=tuple(_sidecar(entry.sidecar.state) for _, entry in slots if entry.sidecar is not None),
        unavailable=next(iter(missing), moment.shortcomings.get(server)),
        instances=tuple(_instance(root, entry, moment) for root, entry in sorted(slots, key=lambda slot: slot[0])),
    )


def _instance(root: AbsPath, entry: Entry, moment: _Moment) -> Instance:
    known = Instance(
        root=root,
        state=STATES[type(entry.slot)],
        last_error=_last_error(entry),
        restarts=max(0, entry.starts - 1),
        sessions=len(entry.leases),
        rested=entry.slot.why if isinstance(entry.slot, Rested) else None,
    )
    session = entry.session
    if session is None:
        return known
    health = moment.watched(root)
    answered = [exchange.seconds for exchange in session.exchanges if exchange.end == "answered"]
    return structs.replace(
        known,
        pid=session.pid,
        memory_mib=moment.memory.get(session.pid, entry.memory_mib),
        shared_with=tuple(other for other in moment.shared.get(entry.process, ()) if other != root),
        uptime_ms=_milliseconds(moment.now - entry.running_since),
        last_latency_ms=_milliseconds(answered[-1]) if answered else None,
        documents=len(session.documents.paths),
        busy=tuple(sanitised(title, MAX_TITLE) for title in session.readiness.running()),
        watching=None if health is None else _watching((health,)),
        confined=session.held,
    )


def _last_error(entry: Entry) -> str | None:
    failed = entry.slot if isinstance(entry.slot, Missing) else entry.breakage
    return None if failed is None else failed.failure.message


def _watching(found: Iterable[WatchHealth]) -> WatchState | None:
    """The watcher in the worst state."""
    worst = max(found, key=lambda one: (one.degraded is not None, one.polled, one.overflows), default=None)
    if worst is None:
        return None
    state = "ok" if worst.degraded is None else "degraded"
    return WatchState(state, worst.degraded, worst.watched, worst.polled, worst.overflows)


def _sidecar(state: SidecarState) -> SidecarRow:
    return SidecarRow(state.pid, state.starts, state.why, state.stderr)


def _broken(slot: Broken, ahead: float) -> BrokenState:
    return BrokenState(slot.attempts, _milliseconds(slot.retry_at + ahead), slot.failure.message)


def _source(workspace: Workspace, server: str) -> Literal["builtin", "global", "project", "merged"]:
    sources = workspace.sources.get(server, frozenset())
    own = sources & {ConfigSource.GLOBAL, ConfigSource.PROJECT}
    if not own:
        return "builtin"
    if len(own) > 1 or ConfigSource.CATALOGUE in sources:
        return "merged"
    return "global" if ConfigSource.GLOBAL in own else "project"


def _counts(server: str, slots: Sequence[tuple[AbsPath, Entry]], files: ByFile) -> Counts | None:
    """By severity; without what something that was changed since may have mended."""
    roots = [root for root, _ in slots]
    mine = (listed for path, listed in files.items() if any(is_inside(path, root) for root in roots))
    found = counts_of(one for listed in mine for one in listed if one.server == server and not one.outdated)
    return found if found.total else None


def totals_of(rows: Iterable[ServerRow]) -> Totals:
    """How many servers are in which state."""
    states = Counter(state_of(row) for row in rows)
    return Totals(
        configured=states.total(),
        connected=states["connected"],
        spawning=states["spawning"],
        broken=states["broken"],
        disabled=states["disabled"],
        unavailable=states["unavailable"],
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
