"""Where the traffic with a server can be recorded. Most of the time it is not, and then it costs one comparison."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum

from pilotfish.model import AbsPath


class Direction(StrEnum):
    TO_SERVER = "→"
    FROM_SERVER = "←"


Listener = Callable[[AbsPath, Direction, bytes], None]
"""Called with every message: the server's root, which way it went, and its body. It must not wait or raise."""


class Tap:
    """Shared by all sessions of one server, those that start later included."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @property
    def is_open(self) -> bool:
        return bool(self._listeners)

    def record(self, root: AbsPath, direction: Direction, body: bytes) -> None:
        for listener in self._listeners:
            listener(root, direction, body)

    @contextmanager
    def listening(self, listener: Listener) -> Generator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)
