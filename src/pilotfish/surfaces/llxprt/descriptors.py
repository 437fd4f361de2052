"""A byte stream over two descriptors whose directions are not known.

LLxprt's own service reads 3 and writes 4, its client does the same on its side, and both are sockets that carry bytes
both ways. So the one on which bytes arrive first is read, and answers go out on the other. A descriptor that has one
direction only keeps it.
"""

import fcntl
import os
import stat

from pilotfish.system.pipes import End
from pilotfish.system.ports import BrokenPipe
from pilotfish.system.standard_streams import STALL_SECONDS
from pilotfish.system.tasks import owned_tasks


def crossed_stream(*descriptors: int) -> "CrossedStream | None":
    """A byte stream over those that are open pipes or sockets; None without two of them."""
    ours = [descriptor for descriptor in descriptors if _is_stream(descriptor)]
    return CrossedStream(*ours) if len(ours) == len(descriptors) else None


class CrossedStream:
    """One reader and one writer at a time; nothing can be sent before something was received."""

    def __init__(self, first: int, second: int) -> None:
        self._files = [os.fdopen(descriptor, "rb", buffering=0) for descriptor in (first, second)]
        self._ends = [End(file, STALL_SECONDS) for file in self._files]
        self._sources = [
            end for end, file in zip(self._ends, self._files, strict=True) if _way(file.fileno()) != os.O_WRONLY
        ]
        self._sink: End | None = None
        for file in self._files:
            fcntl.fcntl(file, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    async def receive(self) -> bytes:
        while self._sources:
            source, data = await self._first()
            if data:
                self._sources = [source]
                self._sink = self._sink or next(end for end in self._ends if end is not source)
                return data
            self._sources.remove(source)
        return b""

    async def send(self, data: bytes) -> None:
        if self._sink is None:
            raise BrokenPipe("nothing was received yet")
        await self._sink.send(data)

    def close(self) -> None:
        """Close both; only when no task reads or writes."""
        for file in self._files:
            file.close()

    async def _first(self) -> tuple[End, bytes]:
        """The first end that has data, and the data; empty when it has closed."""
        if len(self._sources) == 1:
            return self._sources[0], await self._sources[0].receive()
        heard: list[tuple[End, bytes]] = []
        async with owned_tasks() as tasks:

            async def listen(end: End) -> None:
                heard.append((end, await end.receive()))
                tasks.cancel_scope.cancel()

            for end in self._sources:
                tasks.start_soon(listen, end)
        return max(heard, key=lambda said: len(said[1]))


def _is_stream(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _way(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
