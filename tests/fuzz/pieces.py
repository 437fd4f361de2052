"""Takes a fuzzer's bytes apart into numbers, choices and texts, the same way however they were made."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Pieces:
    """Reads from the front; past the end everything is zero and empty."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def number(self, limit: int = 255) -> int:
        """From 0 to `limit`, at most 255."""
        byte = self._data[self._at] if self.more else 0
        self._at += 1
        return byte % (limit + 1)

    def choice(self, options: Sequence[T]) -> T:
        return options[self.number(len(options) - 1)]

    def text(self) -> str:
        """A text of up to 255 bytes; what is not UTF-8 becomes lone surrogates, which JSON can smuggle in."""
        size = self.number()
        part = self._data[self._at : self._at + size]
        self._at += size
        return part.decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        part = self._data[self._at :]
        self._at = len(self._data)
        return part
