"""Mappings that keep the most recently used entries, so that memory does not grow with every file ever seen."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from pilotfish.errors import Failure
from pilotfish.system.ports import Memory

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def __iter__(self) -> Iterator[K]:
        """The keys as they are now, also if entries change during the iteration."""
        return iter(tuple(self._kept))

    def values(self) -> list[V]:
        return list(self._kept.values())

    def drop(self, is_meant: Callable[[K], bool]) -> None:
        for key in self:
            if is_meant(key):
                del self._kept[key]

    def put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class Remembered(Generic[V]):
    """Values of one kind by key: the most recent are at hand, and `memory` has all of them for the next run.

    Without a memory they are of this run alone. One that cannot be read, or is of another version, is as none: what is
    remembered here is learned again.
    """

    def __init__(self, memory: Memory | None, kind: str, of_type: type[V], empty: Callable[[], V], most: int) -> None:
        self._memory = memory
        self._kind = kind
        self._type = of_type
        self._empty = empty
        self._recent: Recent[str, V] = Recent(most)

    def get(self, key: str) -> V:
        known = self._recent.get(key)
        if known is None:
            try:
                said = None if self._memory is None else self._memory.get(self._kind, key)
                known = self._empty() if said is None else msgspec.json.decode(said, type=self._type)
            except (Failure, msgspec.MsgspecError):
                known = self._empty()
            self._recent.put(key, known)
        return known

    def put(self, key: str, value: V) -> None:
        self._recent.put(key, value)
        try:
            if self._memory is not None:
                self._memory.put(self._kind, key, msgspec.json.encode(value))
        except (Failure, UnicodeEncodeError) as error:
            # A full disk, or a path that is no text, costs what would be remembered, and no answer.
            logger.debug("%s not written: %s", self._kind, error)
