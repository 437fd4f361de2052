"""All servers of a workspace at one moment, as `status` and the panel show them. Reading it changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import anyio

from pilotfish import api
from pilotfish.client.session import Session
from pilotfish.config.values import Source
from pilotfish.host.ports import Clock, WatchHealth
from pilotfish.model import AbsPath, Severity
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Key, Missing, Running, Starting
from pilotfish.pool.sidecar import SidecarState
from pilotfish.protocol.diagnostics import Push
from pilotfish.service.workspace import Workspace

ORDER = ("broken", "spawning", "connected", "idle", "disabled")
"""What needs a person comes first."""


Watched = Callable[[AbsPath], WatchHealth | None]
"""How changes below a root are noticed; None when nobody watches there."""


def snapshot(
    workspace: Workspace, entries: Mapping[Key, Entry], clock: Clock, watched: Watched = lambda _root: None
) -> api.Snapshot:
    """Every known and configured server: those in trouble first, then by id."""
    own: dict[str, list[tuple[Key, Entry]]] = {server: [] for server in workspace.specs}
    for key, entry in entries.items():
        if key.server in own and workspace.holds(key.root):
            own[key.server].append((key, entry))
    # Slots count on the monotonic clock, people read the other one.
    ahead = clock.wall() - anyio.current_time()
    rows = sorted(
        (_row(workspace, server, kept, ahead, watched) for server, kept in own.items()),
        key=lambda row: (ORDER.index(state_of(row)), row.server_id),
    )
    return api.Snapshot(_milliseconds(clock.wall()), tuple(rows), _totals(rows))


def state_of(row: api.ServerRow) -> str:
    """One word for a row, the gravest that fits."""
    if row.disabled:
        return "disabled"
    if row.broken is not None:
        return "broken"
    if row.spawning_roots:
        return "spawning"
    return "connected" if row.connected_roots else "idle"


def _row(
    workspace: Workspace, server: str, kept: Iterable[tuple[Key, Entry]], ahead: float, watched: Watched
) -> api.ServerRow:
    spec, slots = workspace.specs[server], [(key.root, entry) for key, entry in kept]
    connected = [root for root, entry in slots if isinstance(entry.slot, Running)]
    broken = [_broken(entry.slot, ahead) for _, entry in slots if isinstance(entry.slot, Broken | Missing)]
    seen = [entry.last_used for _, entry in slots if entry.last_used]
    return api.ServerRow(
        server_id=server,
        source=_source(workspace, server),
        disabled=spec.disabled or not workspace.config.enabled,
        extensions=spec.files.extensions,
        configured_roots=tuple(sorted({root for root, _ in slots})),
        connected_roots=tuple(sorted(connected)),
        spawning_roots=tuple(sorted(root for root, entry in slots if isinstance(entry.slot, Starting))),
        broken=max(broken, key=lambda one: one.retry_at, default=None),
        diagnostics=_counts(entry for _, entry in slots) if connected else None,
        last_seen_at=_milliseconds(max(seen) + ahead) if seen else None,
        watching=_watching(health for root in connected if (health := watched(root)) is not None),
        sidecars=tuple(_sidecar(entry.sidecar.state) for _, entry in slots if entry.sidecar is not None),
    )


def _watching(found: Iterable[WatchHealth]) -> api.WatchState | None:
    """The root with the most trouble."""
    worst = max(found, key=lambda one: (one.degraded is not None, one.polled, one.overflows), default=None)
    if worst is None:
        return None
    state = "ok" if worst.degraded is None else "degraded"
    return api.WatchState(state, worst.degraded, worst.watched, worst.polled, worst.overflows)


def _sidecar(state: SidecarState) -> api.SidecarRow:
    return api.SidecarRow(state.pid, state.starts, state.why, state.stderr)


def _broken(slot: Broken | Missing, ahead: float) -> api.BrokenState:
    if isinstance(slot, Missing):
        return api.BrokenState(1, 0, slot.failure.message)
    return api.BrokenState(slot.attempts, _milliseconds(slot.retry_at + ahead), slot.failure.message)


def _source(workspace: Workspace, server: str) -> Literal["builtin", "global", "project", "merged"]:
    origins = workspace.config.origins.items()
    said = {origin.source for path, origin in origins if path[:2] == ("lsp", server)}
    own = said & {Source.GLOBAL, Source.PROJECT}
    if not own:
        return "builtin"
    if len(own) > 1 or Source.CATALOGUE in said:
        return "merged"
    return "global" if own == {Source.GLOBAL} else "project"


def _counts(running: Iterable[Entry]) -> api.Counts | None:
    """What the servers hold now, by severity; None where none of them holds anything."""
    found = Counter(severity for entry in running if entry.session for severity in _severities(entry.session))
    if not found:
        return None
    error, warning, info, hint = (found[severity] for severity in Severity)
    return api.Counts(error, warning, info, hint, found.total())


def _severities(session: Session) -> Iterator[Severity]:
    """A file that was both pushed and pulled counts as pulled."""
    for path in session.reports.files_with_items():
        channels = session.reports.of(path)
        for channel, report in channels.items():
            if channel != Push() or len(channels) == 1:
                yield from (Severity(min(max(item.severity or 1, 1), 4)) for item in report.items)


def _totals(rows: Iterable[api.ServerRow]) -> api.Totals:
    states = Counter(state_of(row) for row in rows)
    return api.Totals(
        configured=states.total(),
        connected=states["connected"],
        spawning=states["spawning"],
        broken=states["broken"],
        disabled=states["disabled"],
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
