"""One server for several worktrees of a repository, which take turns.

The server runs in a folder of our own (`pool.mirror`) and knows nothing of this. Each worktree has a session of its
own, whose process is a `Face`: it says what the server would say to that worktree alone, with that worktree's paths.
While it is not its turn, a face keeps what the session tells of documents. When its turn begins, the folder gets the
files in which it differs from the worktree before, and the server is told of these and of the open documents; then its
questions are passed on. A turn lasts as long as anybody works with that worktree, an edit from its begin to its end;
those for whom a client waits go first, and a sweep in the background gives way after the file that it is at.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Raw, Struct
from msgspec.structs import replace

from pilotfish.client.connection import Call
from pilotfish.client.handshake import SessionOptions
from pilotfish.client.pulse import Pulse
from pilotfish.client.session import Session, open_session
from pilotfish.errors import Bug, Code, Failure, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.pool.mirror import Mirror, Moving, Tree, Unshareable
from pilotfish.protocol.codec import decode, encode, maybe_fields
from pilotfish.protocol.frames import FrameDecoder
from pilotfish.protocol.lifecycle import Phase
from pilotfish.protocol.rpc import CancelRequested, ErrorCode, Notified, Peer, Requested, RequestId, ResponseError
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.watching import Change, PathChange, batch
from pilotfish.protocol.wire import (
    ApplyEditResult,
    ContentChange,
    DidChangeWatchedFilesParams,
    InitializeResult,
    PublishDiagnosticsParams,
    Wire,
)
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Exit, Process, Spawner

PATIENCE_SECONDS = 2.0
"""While others wait for longer than this, no more work joins the turn that is going on."""

HEAD_START_SECONDS = 4.0
"""So much earlier than work in the background comes that for which a client waits. What an edit owes is found in three
pieces of such work, and told within half a minute also where all others edit all the time."""

REQUEST_SECONDS = 600.0
"""The session of the worktree has the real, shorter limit, and cancels what it does not wait for any more."""

REGISTERING = frozenset({"client/registerCapability", "client/unregisterCapability"})

FULL_TEXTS = 1
"""How sessions of worktrees send changes: the server gets only what is other."""


class _Document(Wire, frozen=True):
    uri: str
    version: int = 0
    language_id: str = ""
    text: str = ""


class _DocumentParams(Wire, frozen=True):
    """Of every notification about a document."""

    text_document: _Document
    content_changes: tuple[ContentChange, ...] = ()


class _Waiting(Struct, frozen=True, eq=False):
    """Work of a worktree that waits for its turn."""

    face: "Face"
    since: float

    def due(self) -> float:
        return self.since - self.face.head_start()


class Carrier:
    """The server, the folder, and whose turn it is."""

    def __init__(self, mirror: Mirror, options: SessionOptions, refused: dict[AbsPath, str]) -> None:
        self.mirror = mirror
        self.options = options
        self.faces: list[Face] = []
        self.current: Face | None = None
        """Whose world the server sees; None while that changes."""
        self.registered: list[tuple[str, bytes]] = []
        self.ready = anyio.Event()
        self.failure: Failure | None = None
        self._refused = refused
        self._session: _CarriedSession | None = None
        self._life = anyio.CancelScope()
        self._moved = Pulse()
        self._queue: deque[_Waiting] = deque()
        self._holder: Face | None = None
        self._works = 0
        """Of the holder, under way."""
        self._entering = anyio.Lock()
        self._is_entered = False
        """The server sees the holder's worktree already."""

    @property
    def session(self) -> "_CarriedSession":
        if self._session is None or self.failure is not None:
            raise self.failure or Unavailable(Code.SHUTTING_DOWN, f"{self.options.server} does not run")
        return self._session

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self._life.cancel_called

    # --- Life --------------------------------------------------------------------------------------------------------

    async def live(self, spawn: Spawner) -> None:
        """From the start of the server to its end, or to that of the last face."""
        failure: Failure = Unavailable(Code.SHUTTING_DOWN, f"{self.options.server} was stopped")
        try:
            with self._life:
                async with open_session(self.options, spawn, self._make) as session:
                    self.ready.set()
                    failure = await session.ended()
        except Failure as failed:
            failure = failed
        finally:
            self.failure = failure
            self.current = None
            self.ready.set()
            self.look_again()
            for face in self.faces:
                face.end()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.mirror.remove)

    def _make(self, options: SessionOptions, process: Process, relays: TaskGroup) -> Session:
        self._session = _CarriedSession(self, options, process, relays)
        return self._session

    def leave(self, face: "Face") -> None:
        self.faces.remove(face)
        self.current = None if self.current is face else self.current
        self._holder = None if self._holder is face else self._holder
        self._moved.notify()
        if not self.faces:
            self._life.cancel()

    # --- Turns -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def turn(self, face: "Face", *, is_part: bool = False) -> AsyncGenerator[None]:
        """Wait until the server sees this worktree, and keep it so while the block runs. Raises `Unshareable`.

        `is_part`: of work that has its turn, if any has, and that would wait for this for ever.
        """
        waiting = _Waiting(face, current_time())
        self._queue.append(waiting)
        try:
            while not (self._may_work(waiting) or (is_part and self.is_working(face))):
                left = waiting.since + PATIENCE_SECONDS - current_time()
                with anyio.move_on_after(left if left > 0 else None):
                    await self._moved.wait()
            if self._holder is not face:
                self._holder, self._is_entered = face, False
            self._works += 1
        finally:
            self._queue.remove(waiting)
            self._moved.notify()
        try:
            async with self._entering:
                if not self._is_entered:
                    try:
                        await self._enter(face)
                    except Unshareable as why:
                        self._refused[face.tree.top] = str(why)
                        raise
                    self._is_entered = True
            yield
        finally:
            self._works -= 1
            self.look_again()

    def is_working(self, face: "Face") -> bool:
        return self._holder is face and self._works > 0

    def look_again(self) -> None:
        """A client waits for a worktree, or does not any more; or there is nothing more to wait for."""
        if not self._works and self._holder is not None and not self._holder.is_served():
            self._holder = None
        self._moved.notify()

    def _may_work(self, waiting: _Waiting) -> bool:
        """Raises why the server has ended."""
        if self.failure is not None:
            raise self.failure
        holder = self._holder
        if holder is None or any(self._ends_turn(one, holder) for one in self._queue):
            return not self._works and min(self._queue, key=_Waiting.due) is waiting
        return waiting.face is holder

    def _ends_turn(self, waiting: _Waiting, holder: "Face") -> bool:
        """Whether nothing more of the holder's may begin before this."""
        patience = PATIENCE_SECONDS + holder.head_start() - waiting.face.head_start()
        return waiting.face is not holder and current_time() - waiting.since >= patience

    async def _enter(self, face: "Face") -> None:
        """Make the server see a worktree as it is now, with what is said of it until then."""
        self.current = None
        face.missed = missed = list[DidChangeWatchedFilesParams]()
        try:
            changes = await anyio.to_thread.run_sync(self.mirror.become, face.tree)
        finally:
            face.missed = None
        session, wanted = self.session, {face.place.there(path) for path in face.documents}
        for path in session.documents.paths:
            if path not in wanted:
                session.close(path)
        self.tell(changes)
        self.current = face
        for path in face.documents:
            self.show(face, path)
        for params in missed:
            # Perhaps of a file that had been looked at by then.
            face.changed_on_disk(params)

    def tell(self, changes: Sequence[PathChange]) -> None:
        session = self.session
        session.send_changes(batch(changes, session.watchers(), (session.root,)), changes)

    def show(self, face: "Face", path: AbsPath) -> None:
        document = face.documents[path]
        self.session.sync(face.place.there(path), document.language_id, document.text)


class _CarriedSession(Session):
    """The session of the server itself: what it says goes to the worktrees."""

    def __init__(self, carrier: Carrier, options: SessionOptions, process: Process, relays: TaskGroup) -> None:
        super().__init__(options, process, relays)
        self._carrier = carrier

    def _answer(self, method: str, params: Raw, phase: Phase) -> object | ResponseError:
        if method == "workspace/applyEdit":
            if (face := self._carrier.current) is not None:
                face.ask(method, params)
            return ApplyEditResult(applied=face is not None)
        reply = super()._answer(method, params, phase)
        if method in REGISTERING:
            self._carrier.registered.append((method, bytes(params)))
            for face in self._carrier.faces:
                face.ask(method, params)
        return reply

    def _take(self, method: str, params: Raw) -> None:
        if method == "textDocument/publishDiagnostics":
            if (face := self._carrier.current) is not None:
                face.publish(self, params)
            return
        super()._take(method, params)
        for face in self._carrier.faces:
            face.hear(method, params)


class Face:
    """The `Process` port of one worktree's session: a server that is there for this worktree alone."""

    def __init__(self, carrier: Carrier, tree: Tree, tasks: TaskGroup, is_served: Callable[[], bool]) -> None:
        self.tree = tree
        self.is_served = is_served
        """Whether a client waits for this worktree."""
        self.place = Moving(tree.top, carrier.mirror.folder)
        self.documents: dict[AbsPath, _Document] = {}
        self.missed: list[DidChangeWatchedFilesParams] | None = None
        """What was changed on disk while its turn begins; None at other times."""
        self._carrier = carrier
        self._tasks = tasks
        self._peer = Peer()
        self._decoder = FrameDecoder()
        self._said: deque[bytes] = deque()
        self._spoke = Pulse()
        self._ended = anyio.Event()
        self._asked: dict[RequestId, anyio.CancelScope] = {}
        self.pid = carrier.session.pid
        self.held = carrier.session.held

    def head_start(self) -> float:
        return HEAD_START_SECONDS if self.is_served() else 0.0

    # --- A process ---------------------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        self.send_now(data)

    def send_now(self, data: bytes) -> int:
        for body in self._decoder.feed(data):
            match self._peer.receive(body):
                case Requested(identifier, method, params):
                    self._requested(identifier, method, params)
                case Notified(method, params):
                    self._notified(method, params)
                case CancelRequested(identifier):
                    if (scope := self._asked.get(identifier)) is not None:
                        scope.cancel()
                case _:
                    pass  # The answers to what the server registers.
        return len(data)

    async def receive(self) -> bytes:
        while not self._said:
            if self._ended.is_set():
                return b""
            await self._spoke.wait()
        return self._said.popleft()

    async def close_input(self) -> None:
        self.end()

    async def terminate(self) -> None:
        if self._is_current:
            self._carrier.session.fail("was killed")
        self.end()

    kill = terminate

    async def wait(self) -> Exit:
        await self._ended.wait()
        return Exit(0)

    def stderr_tail(self) -> tuple[str, ...]:
        return () if self._carrier.is_over else self._carrier.session.stderr_tail()

    def end(self) -> None:
        self._ended.set()
        self._spoke.notify()

    # --- What the session says ---------------------------------------------------------------------------------------

    def _requested(self, identifier: RequestId, method: str, params: Raw) -> None:
        match method:
            case "initialize":
                session = self._carrier.session
                offered = session.capabilities.answer
                sync = maybe_fields(offered.get("textDocumentSync")) or {"openClose": True, "save": True}
                capabilities = {**offered, "textDocumentSync": {**sync, "change": FULL_TEXTS}}
                answer = encode(InitializeResult(capabilities, session.info))
                self._say(self._peer.reply(identifier, self.place.incoming(answer)))
            case "shutdown":
                self._say(self._peer.reply(identifier, None))
            case _:
                if method == "textDocument/diagnostic":
                    # What it answered before may have been about another worktree: it must not say `unchanged`.
                    said = decode(params, dict[str, Raw])
                    said.pop("previousResultId", None)
                    params = Raw(encode(said))
                mine = self.place.outgoing(params)
                # At once where it is our turn: what is said next must not overtake it.
                is_turn = self._carrier.is_working(self) and self._is_current
                call = self._carrier.session.connection.ask(method, mine) if is_turn else None
                scope = self._asked[identifier] = anyio.CancelScope()
                self._tasks.start_soon(self._pass_on, scope, identifier, method, mine, call)

    async def _pass_on(
        self, scope: anyio.CancelScope, identifier: RequestId, method: str, params: Raw, call: Call | None
    ) -> None:
        reply: Raw | ResponseError = ResponseError(ErrorCode.REQUEST_CANCELLED, "cancelled")
        try:
            with scope:
                async with self._carrier.turn(self, is_part=True):
                    connection = self._carrier.session.connection
                    call = call or connection.ask(method, params)
                    reply = await connection.answer_to(call, timeout=REQUEST_SECONDS)
        except (Failure, Unshareable) as failed:
            reply = ResponseError(ErrorCode.REQUEST_FAILED, str(failed))
        finally:
            del self._asked[identifier]
        if isinstance(reply, ResponseError):
            self._say(self._peer.fail(identifier, reply))
        else:
            self._say(self._peer.reply(identifier, self.place.incoming(reply)))

    def _notified(self, method: str, params: Raw) -> None:
        match method:
            case "textDocument/didOpen" | "textDocument/didChange" | "textDocument/didClose" | "textDocument/didSave":
                self._document(method, decode(params, _DocumentParams))
            case "initialized":
                for registering, found in self._carrier.registered:
                    self.ask(registering, Raw(found))
            case "exit":
                self.end()
            case "workspace/didChangeWatchedFiles":
                self.changed_on_disk(decode(params, DidChangeWatchedFilesParams))
            case _ if self._is_current and method != "workspace/didChangeConfiguration":
                # Of its settings it is not told: it has the same already.
                self._carrier.session.notify(method, self.place.outgoing(params))
            case _:
                pass

    @property
    def _is_current(self) -> bool:
        return self._carrier.current is self and not self._carrier.is_over

    def _document(self, method: str, params: _DocumentParams) -> None:
        named = params.text_document
        path = path_of(named.uri)
        if path is None:
            raise Bug(f"{named.uri} was opened at a shared server")
        if method == "textDocument/didClose":
            self.documents.pop(path, None)
        elif method != "textDocument/didSave":
            known = self.documents.get(path)
            language = named.language_id or (known.language_id if known else "")
            text = params.content_changes[-1].text if params.content_changes else named.text
            self.documents[path] = _Document(named.uri, named.version, language, text)
        if not self._is_current:
            return
        there, session = self.place.there(path), self._carrier.session
        if method == "textDocument/didClose":
            session.close(there)
        elif method == "textDocument/didSave":
            self._carrier.mirror.follow(self.tree, [path])
            session.save(there)
        else:
            self._carrier.show(self, path)

    def changed_on_disk(self, params: DidChangeWatchedFilesParams) -> None:
        """Told at once where it is our turn; otherwise its beginning shows what is other."""
        if not self._is_current:
            if self.missed is not None:
                self.missed.append(params)
            return
        named = [(path, Change(event.type)) for event in params.changes if (path := path_of(event.uri)) is not None]
        inside = [path for path, _ in named if is_inside(path, self.tree.top)]
        self._carrier.mirror.follow(self.tree, inside)
        self._carrier.tell([PathChange(self.place.there(path), change) for path, change in named])

    # --- What the server says ----------------------------------------------------------------------------------------

    def hear(self, method: str, params: Raw) -> None:
        self._say(self._peer.notify(method, self.place.incoming(params)))

    def ask(self, method: str, params: Raw) -> None:
        self._say(self._peer.request(method, self.place.incoming(params)).data)

    def publish(self, session: Session, params: Raw) -> None:
        """Only what is certainly about a text of this worktree, which a version tells."""
        said = decode(self.place.incoming(params), PublishDiagnosticsParams)
        path = path_of(said.uri)
        document = None if path is None else self.documents.get(path)
        if document is None or path is None:
            return
        there = self.place.there(path)
        if session.documents.is_open(there) and said.version == session.documents.version(there):
            self._say(self._peer.notify("textDocument/publishDiagnostics", replace(said, version=document.version)))

    def _say(self, frame: bytes) -> None:
        if not self._ended.is_set():
            self._said.append(frame)
            self._spoke.notify()
