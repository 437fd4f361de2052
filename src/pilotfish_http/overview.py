"""The state of the daemon, as the live page and `GET /status` show it, and when it has changed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from msgspec import Struct

from pilotfish.api.status import ConversationRow, Restarted
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Failure, Refused
from pilotfish.ipc.client_sessions import ClientSessions, SessionRecord
from pilotfish.ipc.messages import About
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish.service.status.activity import activity, feedback_shown, question_shown
from pilotfish.service.workspaces import ClientSession
from pilotfish.store import Store
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Clock
from pilotfish.system.tasks import owned_tasks
from pilotfish_http.shapes import Everything, NamedServer, ServerLog, SessionShown, WorkspaceState

LOOK_SECONDS = 2.0
"""Memory and reported diagnostics change without an event: they are refreshed this often."""

QUICKEST_SECONDS = 0.1
"""Between two refreshes: a hundred changes at once are one event."""


class Observatory(Struct, frozen=True):
    """Reads the state of the daemon, and restarts servers. It keeps none itself."""

    _service: Service
    _sessions: ClientSessions
    _store: Store
    _about: Callable[[], About]
    _clock: Clock

    async def look(self) -> Everything:
        """The present state; measures the memory of running servers."""
        about = self._about()
        by_root: dict[AbsPath, list[SessionRecord]] = {}
        for session in self._sessions.all():
            by_root.setdefault(session.client.root, []).append(session)
        workspaces = [await self._workspace(root, by_root[root]) for root in sorted(by_root)]
        return Everything(
            generated_at=round(self._clock.wall() * 1000),
            pid=about.pid,
            uptime_ms=round(about.seconds * 1000),
            workspaces=tuple(workspaces),
            feedback=tuple(feedback_shown(shown) for shown in self._service.recent_feedback.all()),
            questions=tuple(question_shown(asked) for asked in self._service.recent_feedback.questions()),
            notices=() if self._store.notice is None else (self._store.notice,),
        )

    async def restart(self, named: NamedServer) -> tuple[Restarted, ...]:
        """Restart a server that runs or has failed. Raises `Refused` for a root or a server that is not known."""
        client = self._client(named.root)
        return await self._service.servers.restart(self._service.workspaces.of(client), named.server, client.id)

    def log(self, named: NamedServer) -> ServerLog:
        """The end of what a server wrote. Raises as `restart` does."""
        details = self._service.servers.details(self._service.workspaces.of(self._client(named.root)), named.server)
        return ServerLog(lines=tuple(line for one in details for line in (*one.stderr, *one.messages)))

    def _client(self, root: str) -> ClientSession:
        """A client of a workspace that somebody works in: no other folder is looked at."""
        for session in self._sessions.all():
            if session.client.root == root:
                return session.client
        raise Refused(Code.ROOT_GONE, f"no client works in {root}")

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator["Watch"]:
        watch = Watch()
        async with owned_tasks() as tasks:
            for pulse in (self._service.pool.changed, self._service.recent_feedback.changed, self._sessions.changed):
                tasks.start_soon(watch.follow, pulse)
            yield watch
            tasks.cancel_scope.cancel()

    async def _workspace(self, root: AbsPath, sessions: list[SessionRecord]) -> WorkspaceState:
        client = sessions[0].client
        rows = {row.session: row for row in self._service.conversations.rows(root)}
        epoch = self._clock.wall() - current_time()
        attending = tuple(_conversation(session, rows.get(session.client.id), epoch) for session in sessions)
        try:
            snapshot = await self._service.inspect(client)
        except Failure as failure:
            return WorkspaceState(root=root, conversations=attending, servers=(), warnings=(failure.message,))
        found = activity(self._service, client)
        return WorkspaceState(
            root=root,
            conversations=attending,
            servers=tuple(row for row in snapshot.rows if row.instances or row.source != "builtin"),
            files=found.files,
            more_files=found.more_files,
            warnings=snapshot.warnings,
            today=self._service.recent_feedback.today(root, self._clock.wall()),
        )


class Watch:
    """Remembers that something changed since the last look."""

    def __init__(self) -> None:
        self._changed = anyio.Event()
        self._looked = 0.0

    async def follow(self, pulse: Pulse) -> None:
        while True:
            await pulse.wait()
            self._changed.set()

    def looked(self) -> None:
        """Forget earlier changes."""
        self._changed = anyio.Event()
        self._looked = current_time()

    async def news(self) -> None:
        """Wait until something has changed, or `LOOK_SECONDS` have passed."""
        with anyio.move_on_after(LOOK_SECONDS):
            await self._changed.wait()
        await anyio.sleep_until(self._looked + QUICKEST_SECONDS)


def _conversation(session: SessionRecord, row: ConversationRow | None, epoch: float) -> SessionShown:
    """`epoch`: when the clock of sessions was at zero."""
    row = row or ConversationRow(session=session.client.id)
    return SessionShown(
        session=session.client.id,
        host=session.client.host,
        conversation=session.client.conversation,
        started_at=round(epoch + session.began) * 1000,
        attached=session.hang_up is not None,
        told=row.told,
        pending=row.pending,
        late=row.late,
        dropped=row.dropped,
    )
