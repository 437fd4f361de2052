"""Our part of a YAML file: one key at the top level, or one key below another. There is no YAML parser here.

The file must be a mapping in block style whose keys are not indented. Anything else is refused, because a line in the
wrong place would change the meaning of the file.
"""

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from pilotfish.hosts.edits.edit import unreadable, unsuitable

KEY = re.compile(r"""^(?P<key>[A-Za-z0-9_.-]+|"[^"]*"|'[^']*')[ \t]*:(?:[ \t]+(?P<value>.*?))?[ \t]*\r?\n?$""")
COMMENT = re.compile(r"(?:^|[ \t])#.*$")

Value = str | bool | int | list[str] | dict[str, str]


class YamlEdit(Struct, frozen=True):
    """`key: value` at the top, or with a mapping for `value`, its one member below `key`."""

    key: str
    value: str | Mapping[str, Mapping[str, Value]]

    def added(self, text: str | None) -> str:
        text = text or ""
        lines = _lines(text)
        end = "\r\n" if "\r\n" in text else "\n"
        at = _line_of(lines, self.key)
        if isinstance(self.value, str):
            if at is not None:
                raise unsuitable(f"`{self.key}` is set already", f"{self.key}: {_scalar(self.value)}")
            return _appended(text, [f"{self.key}: {_scalar(self.value)}"], end)
        if at is None:
            return _appended(text, [f"{self.key}:", *self._child("  ")], end)
        indent = _child_indent(lines, at)
        if indent is None:
            raise unsuitable(f"`{self.key}` is not a mapping in block style", end.join(self._child("  ")))
        if not lines[at].endswith("\n"):
            lines[at] += end
        return "".join([*lines[: at + 1], *(line + end for line in self._child(indent)), *lines[at + 1 :]])

    def removed(self, text: str, before: str | None) -> str | None:
        lines = _lines(text)
        at = _line_of(lines, self.key)
        if at is None:
            return text
        if isinstance(self.value, str):
            if "pilotfish" not in lines[at]:
                return text
            rest = lines[:at] + lines[at + 1 :]
        else:
            (name,) = self.value
            start = _child_of(lines, at, name)
            if start is None:
                return text
            rest = lines[:start] + lines[_below(lines, start) :]
            if _below(rest, at) == at + 1 and _line_of(_lines(before or ""), self.key) is None:
                del rest[at]
        return None if not before and not "".join(rest).strip() else "".join(rest)

    def is_in(self, text: str) -> bool:
        lines = _lines(text)
        at = _line_of(lines, self.key)
        if at is None:
            return False
        if isinstance(self.value, str):
            named = KEY.match(lines[at])
            return named is not None and _value(named["value"] or "") == self.value
        ((name, wanted),) = self.value.items()
        start = _child_of(lines, at, name)
        if start is None:
            return False
        found = _members(lines[start + 1 : _below(lines, start)])
        return all(found.get(key) == value for key, value in wanted.items())

    def _child(self, indent: str) -> list[str]:
        assert not isinstance(self.value, str)
        ((name, members),) = self.value.items()
        return [f"{indent}{name}:", *(f"{indent * 2}{key}: {_scalar(value)}" for key, value in members.items())]


def _scalar(value: Value) -> str:
    """JSON scalars and lists are valid YAML."""
    return json.dumps(value, ensure_ascii=False)


def _members(lines: list[str]) -> dict[str, object]:
    """The members of a block: scalars and lists of scalars, in the style of JSON or of YAML libraries."""
    members: dict[str, object] = {}
    items: list[object] = []
    for line in filter(_says_something, lines):
        bare = line.strip()
        if bare.startswith("- "):
            items.append(_value(bare[2:]))
        elif (named := KEY.match(bare)) is not None:
            items = []
            members[named["key"].strip("\"'")] = items if named["value"] is None else _value(named["value"])
    return members


def _value(text: str) -> object:
    """A scalar or a list in flow style; what is neither in quotes nor a value of JSON is a string."""
    text = text.strip()
    if text.startswith("'") and text.endswith("'"):
        return text[1:-1].replace("''", "'")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _appended(text: str, lines: list[str], end: str) -> str:
    gap = end if text and not text.endswith("\n") else ""
    return text + gap + "".join(line + end for line in lines)


def _lines(text: str) -> list[str]:
    """The lines; raises `Refused` for a line that is not understood."""
    lines = text.splitlines(keepends=True)
    if any("\n" not in line for line in lines[:-1]):
        raise unreadable("YAML in block style", "there are unusual line ends")
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        marks_start = bare == "---" and not any(_says_something(earlier) for earlier in lines[: number - 1])
        usual = line[:1] in {" ", "#"} or not bare or line.startswith("- ") or KEY.match(line) or marks_start
        if not usual:
            raise unreadable("YAML in block style", f"line {number} does not begin with a key")
    return lines


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _line_of(lines: list[str], key: str) -> int | None:
    """The line of a key at the top."""
    for number, line in enumerate(lines):
        named = KEY.match(line)
        if named and named["key"].strip("\"'") == key:
            return number
    return None


def _child_indent(lines: list[str], at: int) -> str | None:
    """How the keys below the one in line `at` are indented; None when what is there is no block of keys."""
    named = KEY.match(lines[at])
    if named is None or COMMENT.sub("", named["value"] or "").strip():
        return None
    for line in lines[at + 1 :]:
        if not _says_something(line):
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        if not indent and line.startswith("- "):
            return None
        if not indent:
            break
        return indent if KEY.match(line.lstrip(" ")) and not line.lstrip(" ").startswith("- ") else None
    return "  "


def _child_of(lines: list[str], at: int, name: str) -> int | None:
    indent = _child_indent(lines, at) or ""
    for number in range(at + 1, _below(lines, at)):
        if re.match(rf"{indent}{re.escape(name)}[ \t]*:", lines[number]):
            return number
    return None


def _below(lines: list[str], at: int) -> int:
    """The line after the last one that belongs to the key in line `at`."""
    depth = len(lines[at]) - len(lines[at].lstrip(" "))
    stop = at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if not _says_something(line):
            continue
        if len(line) - len(line.lstrip(" ")) <= depth:
            break
        stop = number + 1
    return stop
