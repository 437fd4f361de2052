"""Equal values kept once: most workspaces have no configuration of their own, and the daemon has many workspaces."""

from hashlib import sha256
from threading import Lock
from typing import Generic, TypeVar

from msgspec import msgpack

T = TypeVar("T")


class EqualValues(Generic[T]):
    """The values of late, none of which is ever changed. Equal are those with the same bytes: `1` is not `true`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, T] = {}
        self._lock = Lock()

    def one(self, value: T) -> T:
        """The value that is kept for all that equal it."""
        try:
            key = sha256(msgpack.encode(value)).digest()
        except UnicodeEncodeError:
            # It names a path that is no text; such a one is its own.
            return value
        with self._lock:
            known = self._known.pop(key, value)
            self._known[key] = known
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return known
