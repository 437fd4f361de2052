"""The state of all servers of a workspace, as `status` and the panel show it, and what is wrong in its files now.

Read only: it asks nothing and opens nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from pilotfish.api.status import (
    BrokenState,
    Counts,
    Instance,
    ProcessRow,
    ServerRow,
    Snapshot,
    Totals,
    WatchState,
)
from pilotfish.client.session import Session
from pilotfish.config.merge import ConfigSource
from pilotfish.model import AbsPath, Severity
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import Place, classify
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Key, Missing, Rested, Running, Slot, Starting, Stopping
from pilotfish.protocol.diagnostics import Push, words_of
from pilotfish.sanitise import sanitised
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.workspace import Workspace
from pilotfish.system.ports import WatchHealth

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

MAX_TITLE = 100
"""Code points of a server's progress title."""

Watched = Callable[[AbsPath], WatchHealth | None]
"""The state of the watcher of a root; None without one."""


class CurrentDiagnostic(Struct, frozen=True):
    """A diagnostic for people who watch, and not a verdict. Lines are counted from 1."""

    line: int
    severity: Severity
    message: str
    server: str
    outdated: bool = False
    """Whether something was changed since that may have mended it."""


ByFile = Mapping[AbsPath, tuple[CurrentDiagnostic, ...]]


class PoolMoment(Struct, frozen=True):
    """What the rows of one snapshot are made from."""

    wall: float
    now: float = 0.0
    """By the monotonic clock, which slots use."""
    entries: Mapping[Key, Entry] = {}
    diagnostics: ByFile = {}
    memory: Mapping[int, float] = {}
    """In MiB, by pid."""
    watched: Watched = lambda _root: None

    def wall_ms(self, at: float) -> int:
        """What people read, for a time of the monotonic clock."""
        return _milliseconds(self.wall - self.now + at)

    def sharing(self, process: str) -> list[AbsPath]:
        """The roots that take turns at a process."""
        entries = self.entries.items()
        return sorted(key.root for key, one in entries if process and one.process == process and one.session)


def snapshot_of(workspace: Workspace, moment: PoolMoment, memory_limit_mib: float | None = None) -> Snapshot:
    """Every known and configured server: those in trouble first, then by id."""
    own: dict[str, list[tuple[AbsPath, Entry]]] = {server: [] for server in workspace.specs}
    for key, entry in sorted(moment.entries.items(), key=lambda pair: pair[0].root):
        if key.server in own and workspace.holds(key.root):
            own[key.server].append((key.root, entry))
    shortcomings = workspace.shortcomings()
    rows = [_row(workspace, server, slots, moment, shortcomings.get(server)) for server, slots in own.items()]
    rows.sort(key=lambda row: (ORDER.index(state_of(row)), row.server_id))
    return Snapshot(
        generated_at=_milliseconds(moment.wall),
        rows=tuple(rows),
        totals=totals_of(rows),
        root=workspace.root,
        trusted=workspace.config.trusted,
        disabled=None if workspace.config.enabled else "LSP disabled by configuration",
        warnings=(*workspace.warnings, *workspace.replacements()),
        processes=tuple(_processes(moment)),
        memory_limit_mib=memory_limit_mib,
    )


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


def totals_of(rows: Iterable[ServerRow]) -> Totals:
    states = Counter(state_of(row) for row in rows)
    counted = {state: states[state] for state in ORDER if state != "idle"}
    return Totals(configured=states.total(), **counted)


def _processes(moment: PoolMoment) -> Iterator[ProcessRow]:
    """The largest first; then what is at rest."""
    rows: dict[object, ProcessRow] = {}
    for key, entry in moment.entries.items():
        if entry.session is not None:
            roots = moment.sharing(entry.process) or (key.root,)
            memory = moment.memory.get(entry.session.pid, entry.memory_mib)
            rows[entry.process or key] = ProcessRow(server_id=key.server, roots=tuple(roots), memory_mib=memory)
        elif isinstance(entry.slot, Rested):
            rows[key] = ProcessRow(server_id=key.server, roots=(key.root,), rested=entry.slot.why)
    yield from sorted(rows.values(), key=lambda row: (row.rested is not None, -(row.memory_mib or 0.0), row.roots))


def _row(
    workspace: Workspace,
    server: str,
    slots: Sequence[tuple[AbsPath, Entry]],
    moment: PoolMoment,
    shortcoming: str | None,
) -> ServerRow:
    spec = workspace.specs[server]
    connected = tuple(root for root, entry in slots if isinstance(entry.slot, Running))
    broken = [entry.slot for _, entry in slots if isinstance(entry.slot, Broken)]
    worst = max(broken, key=lambda slot: slot.attempts, default=None)
    missing = [entry.slot.failure.message for _, entry in slots if isinstance(entry.slot, Missing)]
    seen = [entry.last_used for _, entry in slots if entry.last_used]
    return ServerRow(
        server_id=server,
        source=_source(workspace, server),
        disabled=spec.disabled or not workspace.config.enabled,
        extensions=spec.files.extensions,
        configured_roots=tuple(dict.fromkeys(root for root, _ in slots)),
        connected_roots=connected,
        spawning_roots=tuple(root for root, entry in slots if isinstance(entry.slot, Starting)),
        broken=worst and BrokenState(worst.attempts, moment.wall_ms(worst.retry_at), worst.failure.message),
        diagnostics=_counts(server, slots, moment.diagnostics) if connected else None,
        last_seen_at=moment.wall_ms(max(seen)) if seen else None,
        watching=_watching(map(moment.watched, connected)),
        sidecars=tuple(entry.sidecar.state for _, entry in slots if entry.sidecar is not None),
        unavailable=next(iter(missing), shortcoming),
        instances=tuple(_instance(root, entry, moment) for root, entry in slots),
    )


def _instance(root: AbsPath, entry: Entry, moment: PoolMoment) -> Instance:
    failed = entry.slot if isinstance(entry.slot, Missing) else entry.breakage
    known = Instance(
        root=root,
        state=STATES[type(entry.slot)],
        last_error=None if failed is None else failed.failure.message,
        restarts=max(0, entry.starts - 1),
        sessions=len(entry.leases),
        rested=entry.slot.why if isinstance(entry.slot, Rested) else None,
    )
    session = entry.session
    if session is None:
        return known
    answered = [exchange.seconds for exchange in session.connection.exchanges if exchange.end == "answered"]
    return structs.replace(
        known,
        pid=session.pid,
        memory_mib=moment.memory.get(session.pid, entry.memory_mib),
        shared_with=tuple(other for other in moment.sharing(entry.process) if other != root),
        uptime_ms=_milliseconds(moment.now - entry.running_since),
        last_latency_ms=_milliseconds(answered[-1]) if answered else None,
        documents=len(session.documents.paths),
        busy=tuple(sanitised(title, MAX_TITLE) for title in session.readiness.running()),
        watching=_watching((moment.watched(root),)),
        confined=session.held,
    )


def _watching(found: Iterable[WatchHealth | None]) -> WatchState | None:
    known = (one for one in found if one is not None)
    worst = max(known, key=lambda one: (one.degraded is not None, one.polled, one.overflows), default=None)
    if worst is None:
        return None
    state = "ok" if worst.degraded is None else "degraded"
    return WatchState(state, worst.degraded, worst.watched, worst.polled, worst.overflows)


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
    mine = (listed for path, listed in files.items() if any(is_inside(path, root) for root, _ in slots))
    found = counts_of(one for listed in mine for one in listed if one.server == server and not one.outdated)
    return found if found.total else None


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


# --- What is wrong in the files ---------------------------------------------------------------------------------------

# What a file had when it was last checked goes before what servers say of it: they forget files that are closed, and
# speak of texts that were only proposed. What is known to be of an older text is left out, and what something that was
# changed since may have mended is marked.


def current_diagnostics(states: FileStates, entries: Mapping[Key, Entry], workspace: Workspace) -> ByFile:
    """By file, the most severe first; files without diagnostics are not listed."""
    found = dict[AbsPath, list[CurrentDiagnostic]]()
    for path, last in states.last().items():
        if last and classify(path, workspace.boundary) is Place.IN_ROOT:
            outdated = not states.is_current(path)
            found[path] = [
                CurrentDiagnostic(one.range.start.line + 1, one.severity, one.message, one.server, outdated)
                for one in last
            ]
    for key, entry in entries.items():
        if entry.session is not None and workspace.holds(key.root):
            for path in entry.session.reports.files_with_items():
                if not states.knows(path):
                    found.setdefault(path, []).extend(_said(entry.session, path))
    # Two places in one line look alike here.
    listed = {path: dict.fromkeys(found[path]) for path in sorted(found) if found[path]}
    return {path: tuple(sorted(listed[path], key=lambda one: (one.severity, one.line))) for path in listed}


def _said(session: Session, path: AbsPath) -> Iterator[CurrentDiagnostic]:
    """What a server said of the text that it has now. A file that was both pushed and pulled counts as pulled."""
    documents, channels = session.documents, session.reports.of(path)
    version = documents.version(path) if documents.is_open(path) else None
    pulled = [report for channel, report in channels.items() if channel != Push()]
    for report in pulled or channels.values():
        if version is None or report.version in (None, version):
            for item in report.items:
                severity = Severity(min(max(item.severity or 1, 1), 4))
                yield CurrentDiagnostic(item.range.start.line + 1, severity, words_of(item)[1], session.server)


def counts_of(found: Iterable[CurrentDiagnostic]) -> Counts:
    by_severity = Counter(one.severity for one in found)
    error, warning, info, hint = (by_severity[severity] for severity in Severity)
    return Counts(error, warning, info, hint, by_severity.total())
