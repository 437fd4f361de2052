"""The state of servers for people: a snapshot, one server in detail, and statistics. Read only."""

import os
from collections.abc import Iterable

import anyio

from pilotfish.api.status import Exchange, InstanceDetails, Latencies, ServerStats, Snapshot, Stats
from pilotfish.client.connection import EndedCall
from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Refused
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.pool.counters import Samples
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Missing
from pilotfish.pool.pool import Pool
from pilotfish.sanitise import sanitised
from pilotfish.service.status.current import ByFile
from pilotfish.service.status.snapshot import Snapshots
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, Vitals

MAX_LINE = 1000
"""Code points of one line of a server's output, which may contain text of the project (T32)."""

MAX_STDERR = 100
"""Lines of standard error that are shown."""

MAX_DOCUMENTS = 100


class ServerDetails:
    def __init__(self, pool: Pool, clock: Clock, vitals: Vitals, snapshots: Snapshots) -> None:
        self._pool = pool
        self._clock = clock
        self._vitals = vitals
        self._snapshots = snapshots
        self._started: float | None = None

    def begin(self) -> None:
        """Start counting the uptime."""
        self._started = current_time()

    async def snapshot(self, workspace: Workspace) -> Snapshot:
        """Every known server, with the memory that running ones use now."""
        entries = self._pool.entries()
        memory = await self._memory(entry.session.pid for entry in entries.values() if entry.session is not None)
        return self._snapshots.of(workspace, entries, memory)

    def of(self, workspace: Workspace, server: str) -> tuple[InstanceDetails, ...]:
        """All that is known of one server in a workspace, by root; raises `Refused` for one that is unknown."""
        require_known(workspace, server)
        ahead = self._clock.wall() - current_time()
        entries = self._pool.entries()
        found = {
            key.root: entry for key, entry in entries.items() if key.server == server and workspace.holds(key.root)
        }
        files = self._snapshots.diagnostics(workspace, entries)
        return tuple(_details(workspace, root, found[root], ahead, files) for root in sorted(found))

    async def stats(self) -> Stats:
        """Statistics of all workspaces since the service started."""
        counters = self._pool.counters
        alive = [(key, one) for key, one in self._pool.entries().items() if one.session is not None]
        # One of all that take turns at a process.
        sessions = [*{one.process or key: one.session for key, one in alive if one.session is not None}.values()]
        memory = await self._memory([os.getpid(), *(session.pid for session in sessions)])
        below = sum(memory.get(session.pid, 0.0) for session in sessions)
        servers = sorted({*counters.starts, *counters.checks, *(server for server, _ in counters.failures)})
        return Stats(
            uptime_ms=round((current_time() - (self._started or current_time())) * 1000),
            operations=tuple(_latencies(name, samples) for name, samples in sorted(counters.operations.items())),
            checks=tuple(_latencies(name, samples) for name, samples in sorted(counters.check_times.items())),
            servers=tuple(self._server_stats(server, sessions, memory) for server in servers),
            # The servers are in our process tree, and have rows of their own.
            memory_mib=max(0.0, memory[os.getpid()] - below) if os.getpid() in memory else None,
        )

    def _server_stats(self, server: str, sessions: Iterable[Session], memory: dict[int, float]) -> ServerStats:
        counters = self._pool.counters
        measured = [memory[session.pid] for session in sessions if session.server == server and session.pid in memory]
        return ServerStats(
            server_id=server,
            starts=counters.starts[server],
            failures={code: count for (failed, code), count in counters.failures.items() if failed == server},
            checks=counters.checks[server],
            time_outs=counters.time_outs[server],
            diagnostics=counters.diagnostics[server],
            memory_mib=sum(measured) if measured else None,
        )

    async def _memory(self, pids: Iterable[int]) -> dict[int, float]:
        memory: dict[int, float] = {}

        async def measure(pid: int) -> None:
            if (found := await self._vitals.memory_mib(pid)) is not None:
                memory[pid] = found

        async with anyio.create_task_group() as tasks:
            for pid in set(pids):
                tasks.start_soon(measure, pid)
        return memory


def require_known(workspace: Workspace, server: str) -> None:
    """Raise `Refused` for a server that neither the catalogue nor the configuration knows."""
    if server not in workspace.specs:
        from difflib import get_close_matches

        near = get_close_matches(server, workspace.specs, 1)
        hint = f"Did you mean {near[0]}?" if near else "List the servers: pilotfish servers"
        raise Refused(Code.NOT_FOUND, f"unknown server {sanitised(server, 100)!r}", hint=hint)


def _details(workspace: Workspace, root: AbsPath, entry: Entry, ahead: float, files: ByFile) -> InstanceDetails:
    session, failure = entry.session, _failure(entry)
    if session is None:
        stderr = () if failure is None else failure.scene.stderr
        return InstanceDetails(root=root, stderr=_lines(stderr[-MAX_STDERR:]))
    return InstanceDetails(
        root=root,
        program=sanitised(f"{session.info.name} {session.info.version or ''}", MAX_LINE),
        stderr=_lines(session.stderr_tail()[-MAX_STDERR:]),
        messages=_lines(session.messages()),
        documents=tuple(named(path, workspace.root) for path in session.documents.paths[: -MAX_DOCUMENTS - 1 : -1]),
        diagnostics=_by_file(workspace, session, files),
        exchanges=tuple(_shown(exchange, ahead) for exchange in session.exchanges),
    )


def _failure(entry: Entry) -> Failure | None:
    failed = entry.slot if isinstance(entry.slot, Broken | Missing) else entry.breakage
    return None if failed is None else failed.failure


def _by_file(workspace: Workspace, session: Session, files: ByFile) -> dict[str, int]:
    found = dict[str, int]()
    for path, listed in files.items():
        count = sum(one.server == session.server and not one.outdated for one in listed)
        if count and is_inside(path, session.root):
            found[named(path, workspace.root)] = count
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_DOCUMENTS])


def _shown(exchange: EndedCall, ahead: float) -> Exchange:
    return Exchange(
        method=exchange.method,
        asked_at=round((exchange.asked_at + ahead) * 1000),
        duration_ms=round(exchange.seconds * 1000),
        end=exchange.end,
    )


def _latencies(name: str, samples: Samples) -> Latencies:
    p50, p95 = (round(samples.percentile(percent) * 1000) for percent in (50, 95))
    return Latencies(name=name, count=samples.count, p50_ms=p50, p95_ms=p95)


def _lines(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sanitised(line, MAX_LINE) for line in lines)
