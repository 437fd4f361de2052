"""One language server, from spawn to exit.

`open_session` is its lifetime: inside the block the server is initialized and answers; leaving it, in any way, walks
the stop ladder and leaves no process.
Documents and their notifications change together and without waiting: a question is computed on the changes before it.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Raw, Struct

from pilotfish.client.connection import STOP_SECONDS, Call, Connection, walk_down
from pilotfish.client.handshake import SessionOptions, handshake, start_failed
from pilotfish.client.inbound import EditSink, Inbox, answer_request, take_notification
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Failure, Scene, ServerFailed, Unavailable
from pilotfish.model import AbsPath, Encoding
from pilotfish.protocol.capabilities import RETRY_ON_CONTENT_MODIFIED
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.diagnostics import Pull
from pilotfish.protocol.documents import Documents, Notification
from pilotfish.protocol.lifecycle import Phase
from pilotfish.protocol.positions import UnknownEncoding, negotiated
from pilotfish.protocol.readiness import Readiness
from pilotfish.protocol.rpc import ErrorCode, ResponseError, UnusableResponse
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import Change, PathChange, WatchRegistration, batch, wanted
from pilotfish.protocol.wire import (
    DidChangeWatchedFilesParams,
    DocumentDiagnosticParams,
    DocumentDiagnosticReport,
    Json,
    JsonObject,
    PreviousResultId,
    ServerInfo,
    TextDocumentIdentifier,
    WorkspaceDiagnosticParams,
    WorkspaceDiagnosticReport,
    WorkspaceDocumentDiagnosticReport,
    WorkspaceFolder,
)
from pilotfish.servers.spec import PullSupport, Relay
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Process, Spawner
from pilotfish.system.tasks import owned_tasks, side_by_side

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_RELAYED = 256
"""Questions of a server for another one that wait for an answer; of any more the answer is nothing, at once."""

SETTINGS_SECONDS = 5.0
"""For a server to ask for its settings, which it does right after it was initialized."""

UNDECLARED_PULL: JsonObject = {"diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}}
"""What a server offers that answers pulls and does not declare it."""

OLD_RESULT = "old"
"""No server gives its results this id."""


@asynccontextmanager
async def open_session(
    options: SessionOptions, spawn: Spawner, make: Callable[..., "Session"] | None = None
) -> AsyncGenerator["Session"]:
    """Start the server, initialize it, and stop it at the end of the block. `make` makes another kind of session.

    Raises `ServerFailed` (`server_missing`, `server_start_failed`, `init_timeout`, `protocol_error`), leaving nothing.
    """
    async with spawn(options.launch) as process, owned_tasks() as tasks, owned_tasks() as relays:
        session = (make or Session)(options, process, relays)
        tasks.start_soon(session.serve)
        try:
            await session.initialize()
            yield session
        finally:
            try:
                with anyio.move_on_after(STOP_SECONDS, shield=True):
                    await walk_down(session.connection, process)
            finally:
                # Whatever went wrong on the way: what serves it ends by nothing else.
                session.connection.close()
                relays.cancel_scope.cancel()


class Session:
    """The only writer of its documents, reports and registrations."""

    _relayed = 0
    """Its questions for another server that have no answer yet."""

    def __init__(self, options: SessionOptions, process: Process, relays: TaskGroup) -> None:
        self.server = options.server
        self.root = options.root
        self.pid = process.pid
        self.held = process.held
        """What the system holds it to, because its workspace is not trusted."""
        self.inputs = options.inputs
        self.freshness = options.freshness
        self.request_seconds = options.request_seconds
        self.package_watchers = options.watches_packages
        """The sources of installed packages, which are watched as soon as a document is open."""
        self.changed = Pulse()
        """Notified when a document is opened, when a message may have changed what is known, and at the end."""
        self.encoding = Encoding.UTF16
        self.info = ServerInfo()
        self.started_at = current_time()
        self._options = options
        self._process = process
        self._relays = relays
        self._folder = WorkspaceFolder(uri_of(options.root), os.path.basename(options.root) or options.root)
        self._documents: Documents | None = None
        self._moves_heeded = 0
        """Changes of what it offers that its documents follow."""
        readiness = Readiness(options.freshness.loaded_by)
        self.inbox = Inbox(
            options.settings, (self._folder,), readiness=readiness, on_log=self._on_log, on_change=self._on_change
        )
        self.capabilities, self.reports, self.readiness = self.inbox.capabilities, self.inbox.reports, readiness
        scene = Scene(server=options.server, root=options.root)
        self.connection = Connection(process, scene, answer=self._answer, take=self._take, tap=options.tap)

    @property
    def failure(self) -> Failure | None:
        """Why it ended; None while it lives."""
        return self.connection.failure

    @property
    def documents(self) -> Documents:
        if self._documents is None:
            raise Unavailable(Code.SHUTTING_DOWN, f"{self.server} is not initialized", scene=self.connection.scene())
        return self._documents

    def stderr_tail(self) -> tuple[str, ...]:
        return self._process.stderr_tail()

    def messages(self) -> tuple[str, ...]:
        """The server's own log lines, newest last."""
        return tuple(self.inbox.messages)

    def messages_since(self, logged: int) -> tuple[str, ...]:
        """The log lines that came after so many (`inbox.logged`), as far as they are kept."""
        count = min(self.inbox.logged - logged, len(self.inbox.messages))
        return self.messages()[-count:] if count > 0 else ()

    # --- Life ------------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        await self.connection.serve()
        self.changed.notify()

    def fail(self, what: str) -> None:
        """End it at once as hung: a server that does not answer cannot be asked to shut down."""
        self.connection.fail(Code.SERVER_HUNG, what)

    async def ended(self) -> Failure:
        """Wait until the connection is over; returns why."""
        await self.connection.ended.wait()
        failure = self.connection.failure
        assert failure is not None
        return failure

    async def initialize(self) -> None:
        """The handshake. The server may ask and register before it answers: the reader serves it meanwhile."""
        result = await handshake(self.connection, self._options, self._folder)
        self.info = result.server_info or ServerInfo()
        undeclared = UNDECLARED_PULL if self.freshness.pull is PullSupport.UNDECLARED else {}
        self.capabilities.offer({**undeclared, **result.capabilities})
        try:
            self.encoding = negotiated(self.capabilities.answer.get("positionEncoding"))
            self._documents = Documents(self.capabilities.sync(), self.encoding)
        except (UnknownEncoding, Malformed) as unusable:
            raise start_failed(self.connection, str(unusable)) from unusable
        self.connection.notify("initialized", {})
        for method in self._options.announcements:
            self.connection.notify(method, {})
        self.connection.notify("workspace/didChangeConfiguration", {"settings": dict(self._options.settings)})
        with anyio.move_on_after(SETTINGS_SECONDS):
            while self.freshness.settings_first and not self.inbox.has_settings:
                await self.changed.wait()
        logger.info("started server=%s root=%s pid=%d", self.server, self.root, self.pid)

    # --- Documents -------------------------------------------------------------------------------------------------

    def sync(self, path: AbsPath, language_id: str, text: str, *, anew: bool = False) -> int:
        """Make the server see `text`, opening the document if need be; returns the version that stands for it."""
        opens = not self.documents.is_open(path)
        notifications = self.documents.sync(path, language_id, text, anew=anew)
        self._post(notifications)
        if notifications and (first := self.freshness.ask_after_text) is not None:
            # Nobody waits for the answer: what is asked from now on comes after it.
            self.connection.ask(first, {"textDocument": {"uri": uri_of(path)}})
        if opens:
            self.changed.notify()
        return self.documents.version(path)

    def save(self, path: AbsPath) -> None:
        """Tell that the document's text reached the disk, if the server wants to know."""
        if notifications := self.documents.save(path):
            self.readiness.saved(current_time())
            self._post(notifications)

    def close(self, path: AbsPath) -> None:
        """Close the document. What the server said about it is forgotten: about 35 servers never take it back."""
        self._post(self.documents.close(path))
        self.reports.forget(path)

    def notify(self, method: str, params: object) -> None:
        """Send a notification that is not about a document's text, if the server offers to take it."""
        if self.supports(method):
            self.connection.notify(method, params)

    def watchers(self) -> tuple[WatchRegistration, ...]:
        """The files whose changes on disk it is told of: what it registered; before that, its own kind of files."""
        own = self.capabilities.watchers() or self._options.watches
        return (*own, *self._options.watches_outside, *(self.package_watchers if self.documents.moves else ()))

    def wanted(self, changes: Iterable[PathChange]) -> tuple[PathChange, ...]:
        """Those of these changes that it is told of."""
        return wanted(changes, self.watchers(), (self.root,))

    def tell_changes(self, changes: Iterable[PathChange]) -> bool:
        """Tell, in one notification, what the server wants to know of files that changed on disk; False: nothing."""
        changes = tuple(changes)
        return self.send_changes(batch(changes, self.watchers(), (self.root,)), changes)

    def send_changes(self, message: DidChangeWatchedFilesParams | None, changes: Sequence[PathChange]) -> bool:
        if message is not None:
            self.connection.notify("workspace/didChangeWatchedFiles", message)
            if {change.path for change in changes}.difference(self.documents.paths):
                self.readiness.disturbed()
            if self.freshness.dependents_after_save:
                self._save_after(changes)
        return message is not None

    def _save_after(self, changes: Sequence[PathChange]) -> None:
        """Save any document: it makes the server look at all of them. One that changed is saved with its text."""
        gone = {change.path for change in changes if change.change is Change.DELETED}
        if all(self.documents.is_open(change.path) and change.path not in gone for change in changes):
            return
        left = next((path for path in self.documents.paths if path not in gone), None)
        if left is not None:
            self.save(left)
        else:  # what it has said of its work so far was before the change all the same
            self.readiness.saved(current_time())

    # --- Questions -------------------------------------------------------------------------------------------------

    def supports(self, method: str, path: AbsPath | None = None) -> bool:
        return self.capabilities.supports(method, path, self._language_of(path))

    async def request(
        self, method: str, params: object, *, about: AbsPath | None = None, timeout: float | None = None
    ) -> Raw:
        """Ask, and ask again where the server says so, within one time limit.

        Raises `Unavailable(unsupported)` without asking when the server does not offer the method.
        """
        self._require(method, about)
        deadline = current_time() + (timeout or self.request_seconds)
        return await self._await_answer(self.connection.ask(method, params), params, deadline)

    async def request_all(
        self, method: str, all_params: Sequence[object], *, timeout: float | None = None
    ) -> list[Raw]:
        """Send several requests at once, without a task for each; one that fails fails all. Raises as `request`."""
        self._require(method, None)
        deadline = current_time() + (timeout or self.request_seconds)
        calls = [self.connection.ask(method, params) for params in all_params]
        try:
            pairs = zip(calls, all_params, strict=True)
            return [await self._await_answer(call, params, deadline) for call, params in pairs]
        finally:
            for call in calls:
                self.connection.give_up(call)

    async def _await_answer(self, call: Call, params: object, deadline: float) -> Raw:
        tries = 0
        while True:
            remaining = max(0.0, deadline - current_time())
            answer = await self.connection.answer_to(call, timeout=remaining)
            if not isinstance(answer, ResponseError):
                return answer
            tries += 1
            delay = retry_delay(call.method, answer, tries, cancels_on_change=self.freshness.cancels_on_change)
            if delay is None or current_time() + delay >= deadline:
                message = f"{self.server} could not answer {call.method}: {answer.message} ({answer.code})"
                code = Code.PROTOCOL_ERROR if isinstance(answer, UnusableResponse) else Code.SERVER_ERROR
                raise ServerFailed(code, message, scene=self.connection.scene(), rpc_code=answer.code)
            await anyio.sleep(delay)  # noqa: TID251 -- the server asked us to come back later
            call = self.connection.ask(call.method, params)

    def _require(self, method: str, about: AbsPath | None) -> None:
        if not self.supports(method, about):
            raise Unavailable(Code.UNSUPPORTED, f"{self.server} does not offer {method}", scene=self.connection.scene())

    async def pull(self, path: AbsPath, *, timeout: float | None = None) -> tuple[AbsPath, ...]:
        """Ask every pull provider for the diagnostics of an open document; `reports` holds the answers."""
        version = self.documents.version(path)
        identifiers = self.capabilities.pull_identifiers(path, self._language_of(path))
        told: list[AbsPath] = []

        async def one(identifier: str | None) -> None:
            held = self.reports.of(path).get(Pull(identifier))
            previous = None if held is None else held.result_id
            params = DocumentDiagnosticParams(TextDocumentIdentifier(uri_of(path)), identifier, previous)
            answer = await self.request("textDocument/diagnostic", params, about=path, timeout=timeout)
            report = self._read(answer, DocumentDiagnosticReport)
            told.extend(self.reports.pulled(path, identifier, version, report, current_time(), held))

        await side_by_side(one, identifiers)
        self.changed.notify()
        return tuple(told)

    async def pull_workspace(self, *, timeout: float | None = None) -> list[WorkspaceDocumentDiagnosticReport]:
        """Ask every pull provider for the diagnostics of all files; none of it is kept in `reports`.

        A server may hold the question back until it has something new to tell, which in a project without errors is
        never: so it is told that we know something old of one file, and nothing of the others.
        """
        identifiers = [options.get("identifier") for options in self.capabilities.options("workspace/diagnostic")]
        names = [name if isinstance(name, str) else None for name in identifiers]
        old = [PreviousResultId(uri_of(path), OLD_RESULT) for path in self.documents.paths[-1:]]
        params = [WorkspaceDiagnosticParams(old, name) for name in dict.fromkeys(names)]
        answers = await self.request_all("workspace/diagnostic", params, timeout=timeout)
        reports = [self._read(answer, WorkspaceDiagnosticReport) for answer in answers]
        items = [item for report in reports for item in report.items]
        return [self._read(item, WorkspaceDocumentDiagnosticReport) for item in items]

    async def pull_unopened(self, path: AbsPath, *, timeout: float | None = None) -> list[DocumentDiagnosticReport]:
        """Ask every pull provider for the diagnostics of a file that is not open; none of it is kept in `reports`."""
        document = TextDocumentIdentifier(uri_of(path))
        params = [DocumentDiagnosticParams(document, name) for name in self.capabilities.pull_identifiers(path)]
        answers = await self.request_all("textDocument/diagnostic", params, timeout=timeout)
        return [self._read(answer, DocumentDiagnosticReport) for answer in answers]

    @contextmanager
    def taking_edits(self, sink: EditSink) -> Generator[None]:
        """While the block runs, `workspace/applyEdit` goes to `sink`; outside of it every edit is refused."""
        self.inbox.edit_sink = sink
        try:
            yield
        finally:
            self.inbox.edit_sink = None

    def _read(self, raw: Raw, shape: type[T]) -> T:
        try:
            return decode(raw, shape)
        except Malformed as malformed:
            message = f"{self.server} gave an answer of the wrong shape: {malformed}"
            raise ServerFailed(Code.PROTOCOL_ERROR, message, scene=self.connection.scene()) from malformed

    # --- The server's messages -------------------------------------------------------------------------------------

    def _answer(self, method: str, params: Raw, phase: Phase) -> object | ResponseError:
        return answer_request(self.inbox, method, params, stopping=phase in {Phase.STOPPING, Phase.EXITING})

    def _take(self, method: str, params: Raw) -> None:
        relay = self._options.relay
        if relay is not None and method == relay.request:
            self._relay(relay, params)
        else:
            take_notification(self.inbox, method, params)

    def _relay(self, relay: Relay, params: Raw) -> None:
        """Ask another server for this one, which answers nothing until each of its questions has an answer."""
        relayed = self._options.relayed

        def reply(asked: _Asked, found: Json) -> None:
            with suppress(Failure):
                self.connection.notify(relay.response, [[asked.id, found]])

        async def answer(asked: _Asked) -> None:
            try:
                found = await relayed(asked.request, asked.arguments) if relayed is not None else None
            finally:
                self._relayed -= 1
            reply(asked, found)

        with suppress(Malformed):
            for asked in decode(params, list[_Asked]):
                if self._relayed >= MAX_RELAYED:
                    reply(asked, None)
                    continue
                self._relayed += 1
                self._relays.start_soon(answer, asked)

    def _on_change(self) -> None:
        moves = self.capabilities.moves
        if self._documents is not None and self.connection.phase is Phase.RUNNING and moves != self._moves_heeded:
            # Some servers register how they want documents sent after they were initialized.
            self._moves_heeded = moves
            self._post(self._documents.configure(self.capabilities.sync()))
        self.changed.notify()

    def _on_log(self, message: str) -> None:
        if any(sign in message for sign in self._options.death_signs):
            self.connection.fail(Code.SERVER_CRASHED, f"still runs, but its worker process died: {message}")

    def _post(self, notifications: tuple[Notification, ...]) -> None:
        for notification in notifications:
            params: object = notification.params
            if self.freshness.did_change_extra and notification.method == "textDocument/didChange":
                params = {**msgspec.to_builtins(params), **self.freshness.did_change_extra}
            self.connection.notify(notification.method, params)
            if notification.method != "textDocument/didSave":
                self.readiness.disturbed()

    def _language_of(self, path: AbsPath | None) -> str | None:
        return None if path is None or self._documents is None else self._documents.language_id(path)


class _Asked(Struct, frozen=True, array_like=True):
    """A question for another server."""

    id: int | str
    request: str
    arguments: Any = None


DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each further try: a document that just changed settles within the first three, a server that is
loading within the last three, and one that always refuses is asked seven times in 3.2 s, not for ever."""


def retry_delay(method: str, error: ResponseError, tries: int, *, cancels_on_change: bool = False) -> float | None:
    """How long to wait before asking again after `tries` refusals; None when the error is final.

    `cancels_on_change`: the server says that we cancelled a question when a document changed meanwhile.
    """
    modified = {ErrorCode.CONTENT_MODIFIED, *([ErrorCode.REQUEST_CANCELLED] if cancels_on_change else [])}
    if error.code in modified:
        asks_again = method in RETRY_ON_CONTENT_MODIFIED
    elif asks_again := error.code == ErrorCode.SERVER_CANCELLED:
        # No data means yes: only an explicit false is final.
        with suppress(Malformed):
            data = decode(error.data, dict[str, Any]) if error.data is not None else {}
            asks_again = data.get("retriggerRequest") is not False
    return DELAYS[tries - 1] if asks_again and tries <= len(DELAYS) else None
