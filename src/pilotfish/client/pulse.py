"""A signal that many may wait for and that fires again and again."""

import anyio


class Pulse:
    """`wait()` returns at the next `beat()`. A beat that nobody waits for is not remembered: look first, then wait."""

    def __init__(self) -> None:
        self._next = anyio.Event()

    def beat(self) -> None:
        event, self._next = self._next, anyio.Event()
        event.set()

    async def wait(self) -> None:
        await self._next.wait()
