"""Our part of a TOML file: one table, appended. The parser only checks; the text is changed line by line."""

import json
import tomllib
from collections.abc import Mapping
from typing import cast

from msgspec import Struct

from pilotfish.hosts.edits.edit import unreadable, unsuitable

TomlValues = Mapping[str, object]


class TomlEdit(Struct, frozen=True):
    """The table `parent.name` with strings and lists of strings."""

    parent: str
    name: str
    values: Mapping[str, str | list[str]]

    def added(self, text: str | None) -> str:
        text = text or ""
        before = _read(text)
        end = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text else end if text.endswith("\n") else end * 2
        # JSON's strings and lists of strings are valid TOML, except as `_toml` says.
        lines = [f"{key} = {_toml(value)}" for key, value in self.values.items()]
        table = end.join([self._header, *lines, ""])
        changed = text + gap + table
        parent = _table(before.get(self.parent, {}))
        is_free = parent is not None and self.name not in parent
        expected = {**before, self.parent: {**(parent or {}), self.name: dict(self.values)}}
        if not is_free or _parsed(changed) != expected:
            raise unsuitable(f"`{self.parent}` is not a table that can be extended", table)
        return changed

    def removed(self, text: str, before: str | None) -> str | None:
        values = _read(text)
        parent = _table(values.get(self.parent))
        if parent is None or self.name not in parent:
            return text
        lines = text.splitlines(keepends=True)
        kept = {key: value for key, value in parent.items() if key != self.name}
        expected = {key: value for key, value in values.items() if key != self.parent or kept}
        expected |= {self.parent: kept} if kept else {}
        # A line in a multi-line string may look like the header, so the rest is parsed and compared.
        for start in reversed([index for index, line in enumerate(lines) if line.strip() == self._header]):
            rest = "".join(self._cut(lines, start))
            if _parsed(rest) == expected:
                return None if not before and not rest.strip() else rest
        raise unsuitable(f"`{self.parent}.{self.name}` is not written as a table of its own", "nothing; remove it")

    def is_in(self, text: str) -> bool:
        table = _table((_table(_read(text).get(self.parent)) or {}).get(self.name)) or {}
        # A host may have added settings of its own to the table.
        return all(table.get(key) == value for key, value in self.values.items())

    def _cut(self, lines: list[str], start: int) -> list[str]:
        """Without the table at `start`, and without the blank line before it."""
        stop = start + 1
        for index in range(start + 1, len(lines)):
            line = lines[index].strip()
            if line.startswith("[") and not line.startswith(f"{self._header[:-1]}."):
                break
            if line and not line.startswith("#"):
                stop = index + 1
        return lines[: start - (start > 0 and not lines[start - 1].strip())] + lines[stop:]

    @property
    def _header(self) -> str:
        return f"[{self.parent}.{self.name}]"


def _toml(value: str | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # Escaped, characters beyond the BMP would be surrogate pairs, which TOML does not have.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(value: object) -> TomlValues | None:
    return cast("TomlValues", value) if isinstance(value, dict) else None


def _read(text: str) -> TomlValues:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise unreadable("TOML", str(bad)) from None


def _parsed(text: str) -> TomlValues | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
