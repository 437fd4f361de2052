"""The servers of all workspaces, as people look at them, and restart and stop them by hand. No command can be named."""

import logging
import os
from collections.abc import Iterable

import anyio
from msgspec.structs import replace

from pilotfish.api.status import Exchange, InstanceDetails, Latencies, Restarted, ServerStats, Snapshot, Stats
from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Refused
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.pool.counters import Timings
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Broken, Key, Missing, Running, Starting, Stopping, Why
from pilotfish.sanitise import sanitised
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.status.snapshot import ByFile, PoolMoment, Watched, current_diagnostics, snapshot_of
from pilotfish.service.use_server import Access, ChosenServer
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock, Vitals
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

MAX_LINE = 1000
"""Code points of one line of a server's output, which may contain text of the project (T32)."""

MAX_STDERR = 100
"""Lines of standard error that are shown."""

MAX_DOCUMENTS = 100

START_SECONDS = 75.0
"""For a restarted server to answer `initialize`: the largest limit of the catalogue is 60 s."""

MAX_MESSAGE = 2000


class RunningServers:
    def __init__(self, access: Access, clock: Clock, vitals: Vitals, watched: Watched, states: FileStates) -> None:
        self._access = access
        self._pool = access.pool
        self._clock = clock
        self._vitals = vitals
        self._watched = watched
        self._states = states
        self._started: float | None = None

    def begin(self) -> None:
        self._started = current_time()

    async def measured(self, workspace: Workspace) -> Snapshot:
        """A snapshot, with the memory that running servers use now."""
        return self.snapshot(workspace, await self._memory(self._sessions()))

    def snapshot(self, workspace: Workspace, memory: dict[int, float] | None = None) -> Snapshot:
        """Every known server. `memory` is in MiB, by pid."""
        entries = self._pool.entries()
        found = current_diagnostics(self._states, entries, workspace)
        moment = PoolMoment(self._clock.wall(), current_time(), entries, found, memory or {}, self._watched)
        return snapshot_of(workspace, moment, self._pool.limits.memory_mib)

    def details(self, workspace: Workspace, server: str) -> tuple[InstanceDetails, ...]:
        """All that is known of one server in a workspace, by root; raises `Refused` for one that is unknown."""
        ahead = self._clock.wall() - current_time()
        own = {key.root: entry for key, entry in self._own(workspace, server).items()}
        files = current_diagnostics(self._states, self._pool.entries(), workspace)
        return tuple(_details(workspace, root, own[root], ahead, files) for root in sorted(own))

    async def stats(self) -> Stats:
        counters, sessions = self._pool.counters, self._sessions()
        memory = await self._memory(sessions, os.getpid())
        below = sum(memory.get(session.pid, 0.0) for session in sessions)
        servers = sorted({*counters.starts, *counters.checks, *(server for server, _ in counters.failures)})
        return Stats(
            uptime_ms=round((current_time() - (self._started or current_time())) * 1000),
            operations=tuple(_latencies(name, samples) for name, samples in sorted(counters.operations.items())),
            checks=tuple(_latencies(name, samples) for name, samples in sorted(counters.latency.items())),
            servers=tuple(self._server_stats(server, sessions, memory) for server in servers),
            # The servers are in our process tree, and have rows of their own.
            memory_mib=max(0.0, memory[os.getpid()] - below) if os.getpid() in memory else None,
        )

    async def restart(self, workspace: Workspace, server: str, lease: str) -> tuple[Restarted, ...]:
        own, chosen = self._own(workspace, server), dict[Key, ChosenServer]()
        for root in sorted({key.root for key in own}):
            now = self._access.server(workspace, Candidate(workspace.specs[server], root, ""))
            # Each as it was started: whoever asks may have other variables than the clients that it serves.
            same = [one for key, one in own.items() if key.root == root and key.config == now.recipe.key.config]
            recipes = [entry.recipe for entry in same] or [now.recipe]
            chosen |= {recipe.key: replace(now, recipe=recipe) for recipe in recipes}
        await self.halt(workspace, server)
        outcomes: dict[Key, Restarted] = {}

        async def start(key: Key) -> None:
            outcomes[key] = await self._start(chosen[key], lease)

        async with owned_tasks() as tasks:
            for key in chosen:
                tasks.start_soon(start, key)
        return tuple(outcomes[key] for key in chosen)

    async def halt(self, workspace: Workspace, server: str) -> tuple[AbsPath, ...]:
        """Stop a server in the workspace; it starts again on use. Returns the roots where it ran."""
        own = self._own(workspace, server)
        ran = {key.root for key, entry in own.items() if isinstance(entry.slot, Running | Starting | Stopping)}
        logger.info("stopping on request server=%s roots=%s", server, sorted(ran))
        async with owned_tasks() as tasks:
            for key in own:
                tasks.start_soon(self._pool.stop, key, Why.ASKED)
        for key in own:
            self._pool.forgive(key)
        return tuple(sorted(ran))

    async def _start(self, chosen: ChosenServer, lease: str) -> Restarted:
        began, root = current_time(), chosen.candidate.root

        async def pid(session: Session) -> int:
            return session.pid

        try:
            started = await self._access.use_server(chosen, lease, pid, seconds=START_SECONDS)
        except Failure as failure:
            return Restarted(root=root, error=sanitised(failure.message, MAX_MESSAGE))
        return Restarted(root=root, pid=started, duration_ms=round((current_time() - began) * 1000))

    def _own(self, workspace: Workspace, server: str) -> dict[Key, Entry]:
        """Raises `Refused` for a server that neither the catalogue nor the configuration knows."""
        if server not in workspace.specs:
            from difflib import get_close_matches

            near = get_close_matches(server, workspace.specs, 1)
            hint = f"Did you mean {near[0]}?" if near else "List the servers: pilotfish servers"
            raise Refused(Code.NOT_FOUND, f"unknown server {sanitised(server, 100)!r}", hint=hint)
        entries = self._pool.entries().items()
        return {key: entry for key, entry in entries if key.server == server and workspace.holds(key.root)}

    def _sessions(self) -> list[Session]:
        """Of those that run; one of all that take turns at a process."""
        alive = [(key, one) for key, one in self._pool.entries().items() if one.session is not None]
        return [*{one.process or key: one.session for key, one in alive if one.session is not None}.values()]

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

    async def _memory(self, sessions: Iterable[Session], *others: int) -> dict[int, float]:
        memory: dict[int, float] = {}

        async def measure(pid: int) -> None:
            if (found := await self._vitals.memory_mib(pid)) is not None:
                memory[pid] = found

        async with anyio.create_task_group() as tasks:
            for pid in {*others, *(session.pid for session in sessions)}:
                tasks.start_soon(measure, pid)
        return memory


def _details(workspace: Workspace, root: AbsPath, entry: Entry, ahead: float, files: ByFile) -> InstanceDetails:
    session = entry.session
    if session is None:
        failed = entry.slot if isinstance(entry.slot, Broken | Missing) else entry.breakage
        return InstanceDetails(root=root, stderr=_lines(failed.failure.scene.stderr[-MAX_STDERR:] if failed else ()))
    counts = dict[str, int]()
    for path, listed in files.items():
        count = sum(one.server == session.server and not one.outdated for one in listed)
        if count and is_inside(path, session.root):
            counts[named(path, workspace.root)] = count
    return InstanceDetails(
        root=root,
        program=sanitised(f"{session.info.name} {session.info.version or ''}", MAX_LINE),
        stderr=_lines(session.stderr_tail()[-MAX_STDERR:]),
        messages=_lines(session.messages()),
        documents=tuple(named(path, workspace.root) for path in session.documents.paths[: -MAX_DOCUMENTS - 1 : -1]),
        diagnostics=dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_DOCUMENTS]),
        exchanges=tuple(
            Exchange(
                method=one.method,
                asked_at=round((one.asked_at + ahead) * 1000),
                duration_ms=round(one.seconds * 1000),
                end=one.end,
            )
            for one in session.connection.exchanges
        ),
    )


def _latencies(name: str, samples: Timings) -> Latencies:
    p50, p95 = (round(samples.percentile(percent) * 1000) for percent in (50, 95))
    return Latencies(name=name, count=samples.count, p50_ms=p50, p95_ms=p95)


def _lines(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sanitised(line, MAX_LINE) for line in lines)
