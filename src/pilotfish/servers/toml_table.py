"""One table of the catalogue, read strictly: a wrong type or an unknown key is an error with its place."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from pilotfish.protocol.wire import Json

Choice = TypeVar("Choice", bound=StrEnum)


class BadTable(ValueError):
    """The data is wrong; the message names the place."""


class TomlTable:
    """Hands out values by key and type. `close` refuses what is left over."""

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self._where = where
        self._left = dict(values)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def text(self, key: str) -> str | None:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "a string")
        return value

    def required_text(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise self._wrong(key, "present")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._left.pop(key, ())
        items = cast("list[object]", value) if isinstance(value, list | tuple) else [None]
        if not all(isinstance(item, str) and item for item in items):
            raise self._wrong(key, "a list of strings")
        return tuple(str(item) for item in items)

    def flag(self, key: str) -> bool | None:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def number(self, key: str) -> int | None:
        value = self._left.pop(key, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise self._wrong(key, "a positive whole number")
        return value

    def choice(self, key: str, kind: type[Choice]) -> Choice | None:
        value = self.text(key)
        return None if value is None else self._member(key, value, kind)

    def choices(self, key: str, kind: type[Choice]) -> tuple[Choice, ...]:
        return tuple(self._member(key, value, kind) for value in self.texts(key))

    def object(self, key: str) -> "dict[str, Json]":
        """Free JSON below a key."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "a table")
        return cast("dict[str, Json]", value)

    def text_map(self, key: str) -> dict[str, str]:
        value = self.object(key)
        if not all(isinstance(item, str) for item in value.values()):
            raise self._wrong(key, "a table of strings")
        return cast("dict[str, str]", value)

    def table(self, key: str) -> "TomlTable | None":
        return TomlTable(f"{self._where}: {key}", self.object(key)) if key in self else None

    def lists(self, key: str, kind: type[Choice]) -> dict[Choice, tuple[str, ...]]:
        """A table of lists of strings whose keys are members of `kind`."""
        inner = TomlTable(f"{self._where}: {key}", self.object(key))
        names = tuple(inner._left)
        return {inner._member(name, name, kind): inner.texts(name) for name in names}

    def close(self) -> None:
        if self._left:
            raise BadTable(f"{self._where}: unknown key {min(self._left)}")

    def _member(self, key: str, value: str, kind: type[Choice]) -> Choice:
        try:
            return kind(value)
        except ValueError:
            raise self._wrong(key, f"one of {', '.join(kind)}") from None

    def _wrong(self, key: str, accepted: str) -> BadTable:
        return BadTable(f"{self._where}: {key} must be {accepted}")
