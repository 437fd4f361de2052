"""A signal that many may wait for and that fires again and again."""

import anyio


class Pulse:
    """`wait()` returns at the next `notify()`. One that no task waits for is not remembered: look first, then wait.

    A pulse that is part of a `whole` notifies that, too.
    """

    def __init__(self, whole: "Pulse | None" = None) -> None:
        self._next: anyio.Event | None = None
        """Made by the first task that waits: most notifications have no listener."""
        self._whole = whole

    def notify(self) -> None:
        event, self._next = self._next, None
        if event is not None:
            event.set()
        if self._whole is not None:
            self._whole.notify()

    async def wait(self) -> None:
        if self._next is None:
            self._next = anyio.Event()
        await self._next.wait()
