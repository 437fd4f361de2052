"""One JSON-RPC connection to one process: one reader, one ordered writer, and requests that end exactly once.

It knows nothing of the language server protocol beyond which message may leave when.
However it ends (exit, crash, poisoned stream, stalled pipe), `_end` runs once: every waiting request fails with the
same typed failure, and `failure` says why for ever after.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import replace
from enum import StrEnum
from typing import Literal

import anyio
from msgspec import UNSET, Raw, Struct

from pilotfish.client.pulse import Pulse
from pilotfish.config.trust import trust_advice
from pilotfish.errors import Code, Failure, Scene, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.protocol.lifecycle import Lifecycle, Phase, Step
from pilotfish.protocol.rpc import (
    Answered,
    CancelRequested,
    Dropped,
    Event,
    Failed,
    Notified,
    Requested,
    RequestId,
    ResponseError,
)
from pilotfish.system.channel import RpcChannel, SendQueue
from pilotfish.system.clock import current_time
from pilotfish.system.ports import BrokenPipe, Process, Stalled, confinement_text
from pilotfish.system.tasks import owned_tasks

# --- Requests that wait for an answer ---------------------------------------------------------------------------------

MAX_EXCHANGES = 50
"""Of the requests that have ended, so many are kept for people to look at."""


class EndedCall(Struct, frozen=True):
    """A request that has ended, and how: without its content."""

    method: str
    asked_at: float
    seconds: float
    end: Literal["answered", "failed", "given up"]


class Call(Struct):
    """One request under way."""

    id: RequestId
    method: str
    asked_at: float
    outcome: Raw | ResponseError | Failure | None = None
    ended: anyio.Event | None = None
    """Made by who waits for it."""

    def end(self, outcome: Raw | ResponseError | Failure) -> None:
        self.outcome = outcome
        if self.ended is not None:
            self.ended.set()


# --- Where the traffic can be recorded --------------------------------------------------------------------------------


class Direction(StrEnum):
    TO_SERVER = "→"
    FROM_SERVER = "←"


Listener = Callable[[AbsPath, Direction, bytes], None]
"""Called with every message: the server's root, which way it went, and its body. It must not wait or raise."""


class Tap:
    """Shared by all sessions of one server, those that start later included."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def record(self, root: str | None, direction: Direction, body: bytes) -> None:
        for listener in self.listeners:
            listener(AbsPath(root or ""), direction, body)

    @contextlib.contextmanager
    def listening(self, listener: Listener) -> Generator[None]:
        self.listeners.append(listener)
        try:
            yield
        finally:
            self.listeners.remove(listener)


# --- The connection ---------------------------------------------------------------------------------------------------

EXIT_GRACE_SECONDS = 0.5
"""Between the end of a server's output and its exit status: a crash needs milliseconds; one that closed its output and
lives on is dead to us anyway."""

DRAIN_SECONDS = 1.0
"""A server that closed its input may still be writing its last messages."""

CANCEL_GRACE_SECONDS = 30.0
"""How long the id of a cancelled request stays reserved for a late answer."""

CATCH_UP_SECONDS = 5.0
"""After a request was given up, how long others wait for its answer: a server may never answer it, and then must not
keep later edits from their verdicts."""

MAX_UNSENT_BYTES = 128 * 1024 * 1024
"""Twice the largest message. A server that lets this pile up has stopped reading."""

MAX_UNANSWERED_CANCELS = 256
"""A server that leaves this many cancelled requests unanswered past the grace is not answering at all."""


class Connection:
    """`run` owns the tasks; everything else may be called from any task of the same loop while it runs."""

    def __init__(
        self,
        process: Process,
        scene: Scene,
        *,
        answer: Callable[[str, Raw, Phase], object | ResponseError],
        take: Callable[[str, Raw], None],
        tap: Tap,
    ) -> None:
        self._process = process
        self._scene = scene
        self._answer = answer
        self._take = take
        self._tap = tap
        queue = SendQueue(MAX_UNSENT_BYTES, process.send_now)
        self._channel = RpcChannel(self._dispatch, self._overflowed, queue=queue, hear=self._hear, say=self._say)
        self.waiting: dict[RequestId, Call] = {}
        """The requests without an answer, oldest first."""
        self.exchanges: deque[EndedCall] = deque(maxlen=MAX_EXCHANGES)
        """The last requests that have ended, newest last."""
        self._lifecycle = Lifecycle()
        # Shielded, because a cancelled owner still walks the stop ladder over this connection; `close` ends it.
        self._tasks = anyio.CancelScope(shield=True)
        self._cancelled: dict[RequestId, float] = {}
        """When each was given up, for as long as a late answer is expected."""
        self._unanswered_cancels = 0
        self._dropped = Pulse()
        """Notified when an answer has come that nobody waits for."""
        self.ended = anyio.Event()
        self.failure: Failure | None = None
        self.hung_up = False
        """It has ended, or has closed its output or its input: then `failure` comes soon, and it says nothing more."""

    @property
    def phase(self) -> Phase:
        return self._lifecycle.phase

    @property
    def last_received(self) -> float:
        """When its last bytes came."""
        return self._channel.last_received

    @property
    def silent_since(self) -> float | None:
        """When the oldest request was made after which the server has sent nothing; None if there is none."""
        asked = next((call.asked_at for call in self.waiting.values()), None)
        return asked if asked is not None and self.last_received <= asked else None

    def scene(self) -> Scene:
        """Where we are now, for a failure's report."""
        stderr = self._process.stderr_tail()
        return replace(self._scene, pid=self._process.pid, phase=self.phase.value, stderr=stderr)

    async def serve(self) -> None:
        """Read and write until the connection ends or is closed, whatever happens to the caller."""
        with self._tasks:
            async with owned_tasks() as tasks:
                tasks.start_soon(self._write)
                await self._read()

    def close(self) -> None:
        """End it from our side."""
        self._end(Unavailable(Code.SHUTTING_DOWN, f"{self._scene.server} was stopped", scene=self.scene()))

    def notify(self, method: str, params: object = UNSET) -> None:
        """Post a notification; it leaves after everything posted before it."""
        self._check(method)
        self._channel.notify(method, params)

    async def call(self, method: str, params: object = UNSET, *, timeout: float) -> Raw | ResponseError:
        """One request, one answer. Raises when there is none: time-out, crash, stop."""
        return await self.answer_to(self.ask(method, params), timeout=timeout)

    def ask(self, method: str, params: object = UNSET) -> Call:
        """Send a request; `answer_to` or `give_up` must follow."""
        self._check(method)
        outgoing = self._channel.peer.request(method, params)
        call = self.waiting[outgoing.id] = Call(outgoing.id, method, current_time())
        self._channel.post(outgoing.data, urgent=True)
        return call

    async def answer_to(self, call: Call, *, timeout: float) -> Raw | ResponseError:
        """Raises as `call` does."""
        try:
            if call.outcome is None:
                call.ended = anyio.Event()
                try:
                    with anyio.CancelScope(deadline=current_time() + timeout):
                        await call.ended.wait()
                finally:
                    self.give_up(call)
        finally:
            end = "answered" if isinstance(call.outcome, Raw) else "given up" if call.outcome is None else "failed"
            self.exchanges.append(EndedCall(call.method, call.asked_at, current_time() - call.asked_at, end))
        if call.outcome is None:
            raise ServerFailed(
                Code.REQUEST_TIMEOUT,
                f"{self._scene.server} did not answer {call.method} within {timeout:.3g} s",
                hint="It may still be reading the project: ask again.",
                scene=self.scene(),
            )
        if isinstance(call.outcome, Failure):
            raise call.outcome
        return call.outcome

    def fail(self, code: Code, what: str) -> None:
        """End the connection because the server does not work any more: every waiting request fails now."""
        hint = " ".join(filter(None, (_HINTS.get(code), self.confinement_hint())))
        self._end(ServerFailed(code, f"{self._scene.server} {what}", hint=hint or None, scene=self.scene()))

    async def flush(self) -> None:
        await self._channel.queue.flush()

    def give_up(self, call: Call) -> None:
        """Cancel a request that is not wanted any more; harmless when it was answered."""
        if self.waiting.pop(call.id, None) is None:
            return
        cancel, now = self._channel.peer.cancel(call.id), current_time()
        if cancel is not None and self._lifecycle.may_send("$/cancelRequest"):
            self._channel.post(cancel)
        self._cancelled[call.id] = now
        for identifier in [known for known, since in self._cancelled.items() if since + CANCEL_GRACE_SECONDS <= now]:
            del self._cancelled[identifier]
            self._unanswered_cancels += self._channel.peer.forget(identifier)
        if self._unanswered_cancels > MAX_UNANSWERED_CANCELS:
            self.fail(Code.SERVER_HUNG, "answers neither requests nor their cancellation")

    async def caught_up(self) -> None:
        """Wait until the server has answered what was given up: one that cannot cancel does that work first."""
        since = max((self._cancelled.get(one, 0.0) for one in self._channel.peer.abandoned), default=0.0)
        with anyio.move_on_after(max(0.0, since + CATCH_UP_SECONDS - current_time())):
            while self._channel.peer.abandoned and self.failure is None:
                await self._dropped.wait()

    def _check(self, method: str) -> None:
        if self.failure is not None:
            raise self.failure
        if not self._lifecycle.send(method):
            message = f"{self._scene.server} is {self.phase.value}: {method} was not sent"
            raise Unavailable(Code.SHUTTING_DOWN, message, scene=self.scene())

    def _say(self, frame: bytes) -> None:
        if self._tap.listeners:
            self._tap.record(self._scene.root, Direction.TO_SERVER, frame.partition(b"\r\n\r\n")[2])

    def _overflowed(self) -> None:
        unread = f"{self._channel.queue.unsent} bytes wait for the server to read them"
        self.fail(Code.SERVER_HUNG, f"has stopped reading: {unread}")

    async def _write(self) -> None:
        try:
            await self._channel.queue.run(self._process.send)
        except Stalled:
            self.fail(Code.SERVER_HUNG, "has stopped reading its input")
        except BrokenPipe:
            self.hung_up = True
            with anyio.move_on_after(DRAIN_SECONDS):
                await self.ended.wait()
            await self._end_of_stream("closed its input")

    async def _read(self) -> None:
        fault = await self._channel.read(self._process.receive)
        if fault is not None:
            self.fail(fault.code, f"broke the wire format: {fault}")
            return
        self.hung_up = True
        await self._end_of_stream("closed its output")

    def _hear(self, body: bytes) -> None:
        self._tap.record(self._scene.root, Direction.FROM_SERVER, body)

    async def _dispatch(self, event: Event) -> None:
        match event:
            case Answered(identifier, _, outcome) | Failed(identifier, _, outcome):
                # One that its caller gave up is not here any more, which is normal.
                if (call := self.waiting.pop(identifier, None)) is not None:
                    call.end(outcome)
            case Requested(identifier, method, params):
                self._channel.answer(identifier, self._answer(method, params, self.phase))
            case Notified(method, params):
                self._take(method, params)
            case CancelRequested() | Dropped():
                # Every request was answered when it came, so there is nothing left to cancel; the peer counts the rest.
                self._dropped.notify()

    async def _end_of_stream(self, what: str) -> None:
        """End it with the reason why the stream ended: the exit status, if it comes in time."""
        how = f"{what} while still running"
        with anyio.move_on_after(EXIT_GRACE_SECONDS):
            status = await self._process.wait()
            guess = " (possibly out of memory)" if status.signal == 9 else ""
            killed = f"was killed by signal {status.signal}{guess}"
            how = f"exited with code {status.code}" if status.signal is None else killed
        if self.phase in {Phase.STOPPING, Phase.EXITING}:
            self.close()
        else:
            starting = self.phase in {Phase.SPAWNED, Phase.INITIALIZING}
            self.fail(Code.SERVER_START_FAILED if starting else Code.SERVER_CRASHED, how)

    def confinement_hint(self) -> str | None:
        """For a server that failed while the system held it back: that may be why, and what to do then."""
        if not self._process.held:
            return None
        held = confinement_text(self._process.held)
        return f"It ran confined ({held}). In a trusted workspace it does not. {trust_advice(self._scene.root)}"

    def _end(self, failure: Failure) -> None:
        if self.failure is not None:
            return
        self.failure, self.hung_up = failure, True
        self._lifecycle.advance(Step.END)
        waiting, self.waiting = self.waiting, {}
        for call in waiting.values():
            call.end(failure)
        self._channel.peer.close()
        self._dropped.notify()
        self._channel.queue.close(drop=True)
        self.ended.set()
        self._tasks.cancel()


_HINTS = {
    Code.SERVER_START_FAILED: "Run the server's command by hand to see what it needs.",
    Code.SERVER_CRASHED: "It is started again on the next use; the end of its standard error is above.",
    Code.SERVER_HUNG: "It is stopped and started again on the next use.",
    Code.PROTOCOL_ERROR: "Something else than the protocol is on its standard output: check its command.",
    Code.LIMIT_EXCEEDED: "One message was larger than we accept; it is started again on the next use.",
}


# --- The stop ladder: how a server is ended, rung by rung, each with its bound ----------------------------------------

SHUTDOWN_SECONDS = 1.5
EXIT_SECONDS = 0.5
TERMINATE_SECONDS = 2.0
"""The rungs of the stop ladder: `shutdown`, then `exit` and end of input, then SIGTERM, then SIGKILL."""

STOP_SECONDS = SHUTDOWN_SECONDS + EXIT_SECONDS + TERMINATE_SECONDS + 1.0
"""Bound of the whole ladder, which is shielded from cancellation: 5 s for any behaviour of the server."""


async def walk_down(connection: Connection, process: Process) -> None:
    """`shutdown`, then `exit` and end of input, then SIGTERM, then SIGKILL, until nothing of it is left."""
    if connection.phase is Phase.RUNNING:
        # A server that fails to shut down politely is ended all the same.
        with contextlib.suppress(Failure):
            await connection.call("shutdown", timeout=SHUTDOWN_SECONDS)
    if connection.failure is None:
        connection.notify("exit")
        with anyio.move_on_after(EXIT_SECONDS):
            await connection.flush()
            # Several servers stay until their input ends, whatever `exit` says.
            await process.close_input()
            await process.wait()
            return
    if connection.failure is None:
        await process.terminate()
        with anyio.move_on_after(TERMINATE_SECONDS):
            await process.wait()
            return
    await process.kill()
    await process.wait()
