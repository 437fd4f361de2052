"""A mapping that keeps the most recently used entries, so that memory does not grow with every file ever seen."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

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

    def drop(self, is_meant: Callable[[K], bool]) -> None:
        for key in self:
            if is_meant(key):
                del self._kept[key]

    def put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
