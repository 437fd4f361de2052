"""The methods of the daemon's socket: parameters, the part of the service that they call, results.

Everything that a client does goes through its session, whose root is fixed by its hello; a connection without a session
can only inspect the daemon, and stop it.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Protocol, cast

from anyio.abc import TaskGroup
from msgspec import Raw
from msgspec.structs import replace

from pilotfish.api.answers import Answer, DiagnosticsAnswer, Feedback, State, refused
from pilotfish.api.questions import Moment, Touch
from pilotfish.api.status import Snapshot
from pilotfish.daemon.lifetime import Lifetime
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.hosts.registry import host_names
from pilotfish.hosts.shared.heard import Heard, HeardEvents
from pilotfish.hosts.shared.old_texts import Undo, old_text
from pilotfish.hosts.shared.tool_hooks import EndEvent, MomentEvent, OtherEvent, StartEvent, TouchEvent, UnreadEvent
from pilotfish.ipc.client_sessions import Caller, ClientSessions
from pilotfish.ipc.logs import last_lines
from pilotfish.ipc.messages import (
    About,
    CheckCall,
    CommandCall,
    Hello,
    HookCall,
    Logs,
    Named,
    Welcome,
    read_params,
)
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.model import AbsPath
from pilotfish.operations.validate import question_of
from pilotfish.servers.environment import inheritable
from pilotfish.service.check_answer import CheckEvent, FilesToCheck
from pilotfish.service.service import Service
from pilotfish.service.status.activity import activity
from pilotfish.service.workspaces import ClientSession, Variables
from pilotfish.system.files import DiskFiles

logger = logging.getLogger(__name__)

MAX_WARMING = 32
"""Files that were read are opened in the background; beyond this many, more would only come late."""

MAX_LOG_LINES = 5000

HOOK_SLACK_SECONDS = 0.5
"""An answer is ready by this much before the hook program gives up."""


class MethodContext(Protocol):
    client: ClientSession | None
    """Its session, once it has said hello."""
    greeted: bool
    """Whether both sides have agreed on the version of the protocol."""

    def hang_up(self, code: Code, why: str) -> None: ...

    def notify(self, method: str, params: object) -> None:
        """Send a notification; it leaves before the answer to the call that is being made."""


class SocketMethods:
    """All connections share one; `tasks` owns those that no call waits for."""

    def __init__(
        self, service: Service, sessions: ClientSessions, life: Lifetime, about: Callable[[], About], tasks: TaskGroup
    ) -> None:
        self.service = service
        self.sessions = sessions
        self._life = life
        self._about_daemon = about
        self._background = tasks
        self._warming = 0
        self._heard = HeardEvents()
        of = service.workspaces.of
        self._at_once: Mapping[str, Callable[[Raw, MethodContext], object]] = {
            "hello": self._hello,
            "end": self._end,
            "stop": self._stop,
        }
        """Answered in the order of arrival, because the next message may depend on it. They cost nothing."""
        self._in_turn: Mapping[str, Callable[[Raw, MethodContext], Awaitable[object]]] = {
            "touched": lambda params, line: self._feedback(read_params(params, Touch), _session(line)),
            "reached": lambda params, line: self._reach(read_params(params, Moment), _session(line)),
            "check": self._check,
            "tools": self._tools,
            "stats": lambda _params, _line: service.servers.stats(),
            "about": self._about,
            "logs": self._logs,
            "hook": self._hook,
            "command": self._command,
        }
        self._in_session: Mapping[str, Callable[[Raw, ClientSession], Awaitable[object] | object]] = {
            "ask": self._ask,
            "status": self._status,
            "details": lambda params, client: service.servers.details(of(client), read_params(params, Named).server),
            "activity": lambda _params, client: activity(service, client),
            "restart": lambda params, client: service.servers.restart(
                of(client), read_params(params, Named).server, client.id
            ),
            "halt": lambda params, client: service.servers.halt(of(client), read_params(params, Named).server),
        }
        """Calls of a session, which is in use until they are answered."""

    def knows(self, method: str) -> bool:
        return method in self._at_once or method in self._in_turn or method in self._in_session

    def is_immediate(self, method: str) -> bool:
        """Whether `answer` does not wait, and the next message waits for it."""
        return method in self._at_once

    async def answer(self, method: str, params: Raw, line: MethodContext) -> object:
        """Raises `Failure`."""
        if method in self._at_once:
            return self._at_once[method](params, line)
        if method in self._in_session:
            client = _session(line)
            with self.sessions.using(client):
                found = self._in_session[method](params, client)
                return await cast("Awaitable[object]", found) if isinstance(found, Awaitable) else found
        return await self._in_turn[method](params, line)

    # --- The daemon -------------------------------------------------------------------------------------------------

    def _hello(self, params: Raw, line: MethodContext) -> Welcome:
        hello = read_params(params, Hello)
        if line.client is not None:
            raise Refused(Code.INVALID_INPUT, "hello was sent before: a connection has one session")
        self._greet(hello, line)
        if hello.cwd is None:
            return Welcome(PROTOCOL, BUILD, os.getpid())
        environment = _environment(hello.environment)
        caller = Caller(hello.cwd, hello.host, hello.conversation, hello.root, hello.pid, environment)
        line.client = self.sessions.attach(caller, line.hang_up)
        # A program of the host itself; a person who looks with its eyes (`--host`) begins nothing.
        if hello.host in host_names() and (hello.pid is not None or hello.conversation is not None):
            self._begin(line.client)
        return Welcome(PROTOCOL, BUILD, os.getpid(), line.client.id, line.client.root)

    def _greet(self, call: Hello | HookCall | CommandCall, line: MethodContext) -> None:
        if call.protocol < PROTOCOL:
            message = f"this daemon speaks version {PROTOCOL} of the protocol, the client version {call.protocol}"
            raise Refused(Code.UPGRADE, message, hint="Restart the program that uses pilotfish: it is out of date.")
        welcome = self._life.met(call.build)
        if call.protocol > PROTOCOL or not welcome:
            raise Unavailable(Code.UPGRADE, "this daemon is being replaced", hint="Connect again.")
        line.greeted = True

    def _end(self, _params: Raw, line: MethodContext) -> bool:
        ended = line.client is not None and self.sessions.end(line.client.id)
        line.client = None
        return ended

    async def _about(self, _params: Raw, _line: MethodContext) -> About:
        return replace(self._about_daemon(), unread=self._heard.lines())

    async def _logs(self, params: Raw, _line: MethodContext) -> tuple[str, ...]:
        return last_lines(self._about_daemon().log, min(read_params(params, Logs, Logs()).lines, MAX_LOG_LINES))

    def _stop(self, _params: Raw, _line: MethodContext) -> bool:
        self._life.stop("asked to")
        return True

    # --- The service ------------------------------------------------------------------------------------------------

    async def _status(self, _params: Raw, client: ClientSession) -> Snapshot:
        found = await self.service.inspect(client)
        return replace(found, warnings=(*found.warnings, *self._heard.lines(client.root)))

    async def _tools(self, _params: Raw, line: MethodContext) -> bool:
        """Whether models should be offered the navigation tools here."""
        config = self.service.workspaces.of(_session(line)).config
        return config.enabled and config.navigation_tools

    async def _ask(self, params: Raw, client: ClientSession) -> Answer[Any]:
        try:
            asked = question_of(read_params(params, dict[str, object]))
        except Refused as refusal:
            operation = str(read_params(params, dict[str, object]).get("operation", ""))
            return refused(operation, refusal)
        return await self.service.ask(asked, client)

    async def _check(self, params: Raw, line: MethodContext) -> DiagnosticsAnswer:
        client, call = _session(line), read_params(params, CheckCall)

        def tell(event: CheckEvent) -> None:
            line.notify("checking" if isinstance(event, FilesToCheck) else "checked", event)

        with self.sessions.using(client):
            if call.stream and not call.texts:
                return await self.service.check_files(client, call, tell)
            return await self.service.check(client, call.paths, texts=call.texts)

    async def _hook(self, params: Raw, line: MethodContext) -> str:
        call = read_params(params, HookCall)
        self._greet(call, line)
        folder = os.fsdecode(_bytes(call.cwd))
        heard = self._heard.read(call.host, _bytes(call.event), folder)
        text = await self._answer(heard, call, folder)
        if not text and isinstance(heard.event, UnreadEvent):
            return self._heard.notice(heard.host, folder).hex()
        return text

    async def _answer(self, heard: Heard, call: HookCall, cwd: str) -> str:
        """What the hook program prints, in digits."""
        environment = _environment(call.environment)
        seconds = call.seconds - HOOK_SLACK_SECONDS if call.seconds else inf

        def session(conversation: str, at: str | None, root: str | None) -> ClientSession:
            return self.sessions.keep(Caller(at or cwd, heard.host, conversation, root, None, environment))

        match heard.event:
            case TouchEvent(touch, conversation, at, root, event, undos):
                client = session(conversation, at, root)
                touch = await with_old_texts(touch, undos, client.cwd)
                feedback = await self._feedback(touch, client, seconds)
                if touch.kind == "read" and event:
                    moment = Moment("call", touch.plain, touch.max_bytes, counts=touch.counts, waits=False)
                    feedback = await self._reach(moment, client, seconds)
                # The hook program reports no reason, so the log is where a person finds it.
                logger.info("hook session=%s state=%s reason=%s", client.id, feedback.state, feedback.reason)
                return heard.dialect.written(feedback.text, event).hex() if feedback.text else ""
            case MomentEvent(moment, conversation, at, root, event):
                feedback = await self._reach(moment, session(conversation, at, root), seconds)
                return heard.dialect.written(feedback.text, event).hex() if feedback.text else ""
            case UnreadEvent(moment=MomentEvent() as moment):
                return await self._answer(Heard(heard.host, heard.dialect, moment), call, cwd)
            case StartEvent(conversation, at, root, warms):
                self._begin(session(conversation, at, root), warms=warms)
            case EndEvent(conversation):
                for client in self.sessions.end_conversation(heard.host, conversation):
                    self.service.conversations.kept.forget(client)
            case OtherEvent() | UnreadEvent():
                pass
        return ""

    async def _command(self, params: Raw, line: MethodContext) -> str:
        # The command line is imported when somebody asks.
        from pilotfish.surfaces.cli.daemon_questions import answer_words

        call = read_params(params, CommandCall)
        self._greet(call, line)
        cwd, words = os.fsdecode(_bytes(call.cwd)), [os.fsdecode(word) for word in _bytes(call.words).split(b"\0")]

        @contextmanager
        def session(root: str) -> Generator[ClientSession]:
            caller = Caller(cwd, None, None, root, None, _environment(call.environment))
            client = self.sessions.attach(caller, line.hang_up)
            try:
                with self.sessions.using(client):
                    yield client
            finally:
                self.sessions.end(client.id)

        def write(output: bytes, error: bytes) -> None:
            line.notify("printed", {"output": output.hex(), "error": error.hex()})

        return str(int(await answer_words(words, cwd, self.service, session, write)))

    async def _reach(self, moment: Moment, client: ClientSession, seconds: float = inf) -> Feedback:
        with self.sessions.using(client):
            feedback = await self.service.reached(moment, client, seconds=seconds)
        logger.info("moment session=%s kind=%s told=%d", client.id, moment.kind, len(feedback.text))
        return feedback

    def _begin(self, client: ClientSession, *, warms: bool = True) -> None:
        """A conversation begins: its servers start, and nobody waits for them."""
        self.service.conversations.begin(client)
        if warms:
            self._in_background(client, self.service.warm_up)

    async def _feedback(self, touch: Touch, client: ClientSession, seconds: float = inf) -> Feedback:
        if touch.kind == "read":
            self._in_background(client, lambda client: self.service.touched(touch, client))
            return Feedback("", State.UNAVAILABLE, 0, "files that were read are not checked")
        with self.sessions.using(client):
            return await self.service.touched(touch, client, seconds=seconds)

    def _in_background(self, client: ClientSession, work: Callable[[ClientSession], Awaitable[object]]) -> None:
        async def warm() -> None:
            try:
                with self.sessions.using(client):
                    await work(client)
            except Exception:
                # No call waits for it, so the log is the only place; and an error would cancel the shared task group.
                logger.exception("warming failed session=%s", client.id)
            finally:
                self._warming -= 1

        if self._warming < MAX_WARMING:
            self._warming += 1
            self._background.start_soon(warm)


def _session(line: MethodContext) -> ClientSession:
    if line.client is None:
        raise Refused(Code.INVALID_INPUT, "no session: send hello with a cwd first")
    return line.client


def _environment(digits: str) -> Variables:
    """The client's variables that servers may inherit; the others are dropped."""
    entries = (os.fsdecode(entry).partition("=") for entry in _bytes(digits).split(b"\0"))
    return inheritable((name, value) for name, _, value in entries)


def _bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise Refused(Code.INVALID_INPUT, "not hexadecimal digits") from None


async def with_old_texts(touch: Touch, undos: Mapping[str, Undo], cwd: str) -> Touch:
    """The touch with the old texts that follow from what is on disk now."""
    files = DiskFiles()
    before = dict(touch.before or {})
    for path, undo in undos.items():
        try:
            file = await files.read_text(AbsPath(os.path.join(cwd, path)))
        except Refused:
            # The check of the file says why, and without an old text it still has its verdict.
            continue
        text = old_text(file.text, undo)
        if text is not None:
            before[path] = text
    return replace(touch, before=before) if before else touch
