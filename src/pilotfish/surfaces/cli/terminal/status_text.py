"""The status of all servers as text: a table, and unavailable servers in one paragraph. Pure."""

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from pilotfish.api.status import ProcessRow, ServerRow, Snapshot, Totals
from pilotfish.counting import counted
from pilotfish.sanitise import sanitised
from pilotfish.service.status.snapshot import state_of
from pilotfish.surfaces.cli.terminal.table import cut, duration, latency, memory, table
from pilotfish.system.ports import confinement_text

WORDS = {
    "broken": "broken",
    "spawning": "starting",
    "connected": "active",
    "idle": "idle",
    "unavailable": "unavailable",
    "disabled": "disabled",
}
"""The panel's states in the words of `status`."""

HEADINGS = ("SERVER", "STATE", "PID", "MEMORY", "UP", "LATENCY", "ROOTS")

MAX_LINE = 500
"""Code points of one line."""

MAX_EXPLAINED = 10
"""Unavailable servers whose reason is shown; of more, only the names."""

PARAGRAPH = 100
"""Columns of the list of unavailable servers in a pipe."""


def status_lines(snapshot: Snapshot, *, daemon: bool, width: int | None = None) -> Iterator[str]:
    if snapshot.disabled is not None:
        yield snapshot.disabled
        return
    trust = "trusted" if snapshot.trusted else "not trusted"
    yield cut(f"Workspace {snapshot.root} ({trust})", width)
    if not daemon:
        yield cut("No daemon is running: servers start with the first edit or question.", width)
    yield cut(totals_line(snapshot.totals), width)
    yield from (cut(line, width) for line in _confinement(snapshot))
    by_id = sorted(snapshot.rows, key=lambda row: row.server_id)
    here = [row for row in by_id if state_of(row) != "unavailable"]
    if here:
        yield ""
        yield from _table(here, snapshot, width)
    if away := [row for row in by_id if state_of(row) == "unavailable"]:
        yield ""
        yield from _away(away, width)
    yield from (cut(line, width) for line in _processes(snapshot))
    for warning in snapshot.warnings:
        yield cut(f"warning: {sanitised(warning, MAX_LINE)}", width)


def _confinement(snapshot: Snapshot) -> Iterator[str]:
    """What the system holds the servers of an untrusted workspace to; where they differ, what all of them have."""
    alive = [one.confined for row in snapshot.rows for one in row.instances if one.pid is not None]
    if alive and not snapshot.trusted:
        held = confinement_text(set[str](alive[0]).intersection(*alive[1:]))
        yield f"Servers run confined: {held}" if held else "Servers are not confined: this system cannot do it."


def _processes(snapshot: Snapshot) -> Iterator[str]:
    """What the memory of all projects is used for, where the table does not say it: of others, shared, or at rest."""
    rows = snapshot.processes
    own = {one.root for row in snapshot.rows for one in row.instances}
    if all(len(row.roots) == 1 and row.rested is None and own.issuperset(row.roots) for row in rows):
        return
    limit = "" if snapshot.memory_limit_mib is None else f" of at most {memory(snapshot.memory_limit_mib)}"
    yield ""
    yield f"Memory of all projects: {memory(sum(row.memory_mib or 0.0 for row in rows))}{limit}"
    cells = [(memory(row.memory_mib), row.server_id, _whose(row)) for row in rows]
    yield from (f"  {line}" for line in table(cells))


def _whose(row: ProcessRow) -> str:
    roots = ", ".join(sanitised(root, MAX_LINE) for root in row.roots)
    turns = f" ({len(row.roots)} worktrees take turns)" if len(row.roots) > 1 else ""
    return roots + turns if row.rested is None else f"{roots} (at rest: {row.rested})"


def totals_line(totals: Totals) -> str:
    """`2 active, 1 broken, 3 idle, 140 unavailable`."""
    idle = totals.configured - totals.broken - totals.spawning - totals.connected - totals.unavailable - totals.disabled
    counts = {
        "broken": totals.broken,
        "starting": totals.spawning,
        "active": totals.connected,
        "idle": idle,
        "unavailable": totals.unavailable,
        "disabled": totals.disabled,
    }
    said = [f"{count} {word}" for word, count in counts.items() if count]
    return f"{counted(totals.configured, 'server')}: {', '.join(said) or 'none'}"


def trouble(row: ServerRow, now: int) -> str | None:
    """Why a server does not work, and when it is tried again."""
    if row.broken is not None:
        wait = row.broken.retry_at - now
        again = f"; tried again in {duration(wait)}" if wait > 0 else "; tried again on the next use"
        return sanitised(row.broken.last_error, MAX_LINE) + again
    if row.watching is not None and row.watching.state == "degraded":
        return sanitised(f"changes on disk may be missed: {row.watching.reason}", MAX_LINE)
    return next((sanitised(side.reason, MAX_LINE) for side in row.sidecars if side.pid is None and side.reason), None)


def relative(root: str, workspace: str) -> str:
    """A root as seen from the workspace: `.` for itself."""
    shown = os.path.relpath(root, workspace) if workspace else root
    return sanitised(root if shown.startswith("..") else shown, MAX_LINE)


def _table(rows: Sequence[ServerRow], snapshot: Snapshot, width: int | None) -> Iterator[str]:
    heading, *lines = table([HEADINGS, *(_cells(row, snapshot.root) for row in rows)], width)
    yield heading
    for line, row in zip(lines, rows, strict=True):
        yield line
        if why := trouble(row, snapshot.generated_at):
            yield cut(f"  {why}", width)


def _cells(row: ServerRow, workspace: str) -> tuple[str, ...]:
    return (row.server_id, WORDS[state_of(row)], *(alive_facts(row, workspace) or ("",) * 5))


def alive_facts(row: ServerRow, workspace: str) -> tuple[str, str, str, str, str] | None:
    """Of all instances that run: processes, memory, uptime, latency and roots; None where none runs."""
    alive = [instance for instance in row.instances if instance.pid is not None]
    if not alive:
        return None
    measured = [instance.memory_mib for instance in alive if instance.memory_mib is not None]
    answered = [instance.last_latency_ms for instance in alive if instance.last_latency_ms is not None]
    # Several instances may have the same root.
    roots = Counter(relative(instance.root, workspace) for instance in alive)
    return (
        ",".join(str(instance.pid) for instance in alive),
        memory(sum(measured) if measured else None),
        duration(max(instance.uptime_ms or 0 for instance in alive)),
        latency(max(answered, default=None)),
        ", ".join(f"{root} ({times} instances)" if times > 1 else root for root, times in roots.items()),
    )


def _away(rows: Sequence[ServerRow], width: int | None) -> Iterator[str]:
    if len(rows) <= MAX_EXPLAINED:
        yield from (cut(f"{row.server_id}: {sanitised(row.unavailable or '', MAX_LINE)}", width) for row in rows)
        return
    yield cut(f"unavailable: not installed, or not allowed to run ({len(rows)}):", width)
    names = ", ".join(row.server_id for row in rows)
    yield from (f"  {line}" for line in textwrap.wrap(names, max(20, (width or PARAGRAPH) - 2), break_on_hyphens=False))
    yield cut("To install one: pilotfish servers NAME", width)
