"""Conversations over HTTP: the working directory of each, its servers, and its questions.

A conversation is a client session like that of a hook: kept while it is used, ended when idle. Its working directory is
persisted in the store. Reading starts nothing.
"""

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import anyio.to_thread

from pilotfish.api.answers import Answer, error_of
from pilotfish.api.questions import Question
from pilotfish.api.status import ServerRow
from pilotfish.errors import Code, Refused
from pilotfish.ipc.client_sessions import Caller, ClientSessions
from pilotfish.model import AbsPath
from pilotfish.sanitise import sanitised
from pilotfish.servers.spec import ServerSpec
from pilotfish.service.service import Service
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.store import Store
from pilotfish.system.ownership import top_of
from pilotfish.system.source_files import files_below
from pilotfish_http.shapes import ID, MAX_ID, LoadedServer, LoadedServers, LoadedState, Whereabouts

HOST = "http"
"""The host name of these client sessions."""

MAX_LOOKED_AT = 2_000
"""Files that are examined to find the servers of a folder: one of each kind is enough."""

MAX_ERROR = 1000

_STATES: Mapping[str, LoadedState] = {
    "active": "connected",
    "starting": "starting",
    "broken": "error",
    "stopping": "not-started",
    "idle": "not-started",
}
"""Dispatch's words for ours."""


class HttpConversations:
    def __init__(self, service: Service, sessions: ClientSessions, store: Store) -> None:
        self._service = service
        self._sessions = sessions
        self._store = store

    def whereabouts(self, conversation: str) -> Whereabouts:
        """Raises `Refused` for an invalid id."""
        return Whereabouts(_checked(conversation), self._store.cwd(conversation))

    def move(self, conversation: str, cwd: str) -> Whereabouts:
        """Set the working directory. Raises `Refused` when it is no folder, `Unavailable` when it cannot be stored."""
        _checked(conversation)
        if not os.path.isdir(cwd):
            raise Refused(Code.ROOT_GONE, f"{cwd} is not a folder")
        folder = AbsPath(os.path.normpath(cwd))
        if self._store.cwd(conversation) != folder:
            self._store.put_cwd(conversation, folder)
            self._sessions.end_conversation(HOST, conversation)
        return Whereabouts(conversation, folder)

    def client(self, conversation: str) -> ClientSession:
        """The client session of a conversation. Raises `Refused` when it has no working directory."""
        cwd = self._store.cwd(_checked(conversation))
        if cwd is None:
            hint = f"Set it: PUT /conversations/{conversation}/cwd"
            raise Refused(Code.ROOT_GONE, f"conversation {conversation} has no working directory", hint=hint)
        return self._sessions.keep(Caller(cwd, HOST, conversation))

    async def servers(self, conversation: str) -> LoadedServers:
        """The servers of a conversation; none when it has no working directory."""
        cwd = self._store.cwd(_checked(conversation))
        if cwd is None or not await anyio.to_thread.run_sync(os.path.isdir, cwd):
            return LoadedServers(conversation, cwd, ())
        # No session: reading the state keeps no server running.
        client = ClientSession(f"{HOST} {conversation}", AbsPath(top_of(cwd)), cwd, HOST)
        workspace = self._service.workspaces.of(client)
        samples = await anyio.to_thread.run_sync(_one_of_each_kind, client.root)
        loaded = {(server.id, server.root): server for server in _expected(workspace, samples)}
        for row in self._service.status(client).rows:
            loaded |= {(server.id, server.root): server for server in _of_row(workspace, row)}
            if row.source != "builtin" and all(server != row.server_id for server, _ in loaded):
                loaded[row.server_id, workspace.root] = _configured(workspace, row)
        servers = tuple(loaded[key] for key in sorted(loaded))
        return LoadedServers(conversation, cwd, servers, any(one.state == "connected" for one in servers))

    async def answer(self, conversation: str, question: Question) -> Answer[Any]:
        client = self.client(conversation)
        with self._sessions.using(client):
            return await self._service.ask(question, client)


def _checked(conversation: str) -> str:
    if len(conversation) > MAX_ID or not re.fullmatch(ID, conversation):
        raise Refused(Code.INVALID_INPUT, f"a conversation id must match {ID} and have at most {MAX_ID} characters")
    return conversation


def _one_of_each_kind(folder: AbsPath) -> tuple[AbsPath, ...]:
    """A file of each kind; reads folders, so run it in a worker thread."""
    samples: dict[str, AbsPath] = {}
    for path in itertools.islice(files_below(folder), MAX_LOOKED_AT):
        samples.setdefault(os.path.splitext(path)[1] or os.path.basename(path), path)
    return tuple(samples.values())


def _expected(workspace: Workspace, samples: tuple[AbsPath, ...]) -> Iterator[LoadedServer]:
    """The servers that these files would start, and those that are missing."""
    for path in samples:
        choice = workspace.servers_for(path)
        for one in choice.servers:
            yield _loaded(one.spec, one.root, "not-started")
        for one in (*([choice.expected] if choice.expected else []), *choice.withheld):
            yield _loaded(one.spec, one.root, "error", error_of(workspace.why_unavailable(one)).message)


def _of_row(workspace: Workspace, row: ServerRow) -> Iterator[LoadedServer]:
    for instance in row.instances:
        state = "error" if row.unavailable and instance.state == "idle" else _STATES[instance.state]
        error = (instance.last_error or row.unavailable) if state == "error" else None
        yield _loaded(workspace.specs[row.server_id], instance.root, state, error)


def _configured(workspace: Workspace, row: ServerRow) -> LoadedServer:
    """A server that the configuration names, and that no file here would start."""
    why = "disabled by configuration" if row.disabled else row.unavailable
    state = "not-started" if row.disabled or why is None else "error"
    return _loaded(workspace.specs[row.server_id], workspace.root, state, why)


def _loaded(spec: ServerSpec, root: str, state: LoadedState, error: str | None = None) -> LoadedServer:
    shown, extensions = error and sanitised(error, MAX_ERROR), spec.files.extensions
    return LoadedServer(id=spec.id, name=spec.name, root=root, extensions=extensions, state=state, error=shown)
