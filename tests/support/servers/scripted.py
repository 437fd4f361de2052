"""The scripted server in memory: a `Process` without a process, for virtual time.

It fails the test when the client sent something that the scenario neither handles nor ignores.
"""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from pilotfish.client.pulse import Pulse
from pilotfish.system.ports import BrokenPipe, Exit, Launch, Process, Spawner, Stalled
from support.servers.script import Message, Script

Scenario = Callable[[Script], None]


@dataclass
class ScriptedServer(Script):
    """Plays the server; also the `Process` that the client holds."""

    pid: int = 4242
    stderr: tuple[str, ...] = ()
    on_terminate: Callable[[], None] | None = None
    """What SIGTERM does; by default it ends the server."""
    on_end_of_input: Callable[[], None] | None = None
    """What the end of its input does; by default nothing, as with a good third of real servers."""
    signals: list[str] = field(default_factory=list[str])
    bytes_taken: list[bytes] = field(default_factory=list[bytes])
    """What the client wrote, to pin bytes."""
    input_closed: bool = False
    reading: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._to_client, self._output = anyio.create_memory_object_stream[bytes](math.inf)
        self._arrivals = Pulse()
        self._exit: Exit | None = None
        self._gone = anyio.Event()

    # --- What a test does ----------------------------------------------------------------------------------------

    async def until(self, method: str, count: int = 1) -> Message:
        """Wait until the client has sent `method` `count` times; returns the last of these."""
        with anyio.fail_after(5):
            while len(found := [message for message in self.received if message.method == method]) < count:
                await self._arrivals.wait()
        return found[count - 1]

    async def answered(self, identifier: int | str) -> object:
        with anyio.fail_after(5):
            while identifier not in self.answers:
                await self._arrivals.wait()
        return self.answers[identifier]

    def leave(self, code: int) -> None:
        """End the process: output closes, and the exit status is known."""
        if self._exit is None:
            self._exit = Exit(code)
            self._to_client.close()
            self._gone.set()

    def close_output(self) -> None:
        """Close standard output while the process lives on."""
        self._to_client.close()

    # --- Script --------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        if self._exit is None:
            self._to_client.send_nowait(data)

    def arrived(self, message: Message) -> None:
        self._arrivals.notify()

    # --- What the client's end of it needs ------------------------------------------------------------------------

    @property
    def gone(self) -> bool:
        return self._exit is not None

    async def output(self) -> bytes:
        try:
            return await self._output.receive()
        except anyio.EndOfStream:
            return b""

    async def exit_status(self) -> Exit:
        await self._gone.wait()
        assert self._exit is not None
        return self._exit

    def terminated(self) -> None:
        self.signals.append("terminate")
        if self.on_terminate is None:
            self.leave(-15)
        else:
            self.on_terminate()

    def take(self, data: bytes) -> None:
        self.bytes_taken.append(data)
        self.feed(data)
        self._arrivals.notify()

    def release(self) -> None:
        self._to_client.close()
        self._output.close()


class ScriptedProcess(Process):
    """The client's end of a scripted server."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    @property
    def held(self) -> tuple[str, ...]:
        return ()

    @property
    def pid(self) -> int:
        return self._server.pid

    async def send(self, data: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        server = self._server
        if server.gone or server.input_closed:
            raise BrokenPipe
        if not server.reading:
            raise Stalled
        server.take(data)

    def send_now(self, data: bytes) -> int:
        return 0

    async def receive(self) -> bytes:
        return await self._server.output()

    async def close_input(self) -> None:
        self._server.signals.append("end of input")
        if self._server.on_end_of_input is not None:
            self._server.on_end_of_input()

    async def terminate(self) -> None:
        self._server.terminated()

    async def kill(self) -> None:
        self._server.signals.append("kill")
        self._server.leave(-9)

    async def wait(self) -> Exit:
        return await self._server.exit_status()

    def stderr_tail(self) -> tuple[str, ...]:
        return self._server.stderr


def spawning(*scenarios: Scenario, servers: list[ScriptedServer] | None = None) -> Spawner:
    """A spawner that plays the given scenarios one after the other, the last one for every further start."""
    started = servers if servers is not None else []

    @asynccontextmanager
    async def spawn(launch: Launch) -> AsyncGenerator[Process]:
        server = ScriptedServer()
        scenarios[min(len(started), len(scenarios) - 1)](server)
        started.append(server)
        try:
            yield ScriptedProcess(server)
        finally:
            server.leave(-9)
            server.release()
        assert not server.unexpected, f"nobody expected {server.unexpected}"

    return spawn
