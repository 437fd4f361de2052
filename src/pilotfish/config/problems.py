"""Errors of config files, worded so that a person can fix the file without looking anything up (CFG-8).

Values and keys come from files that are not trusted yet: each is shown as ASCII JSON, so that no escape sequence
or bidirectional override reaches a terminal, and cut at `SHOWN` characters.
"""

import json
import re
from enum import StrEnum

from msgspec import Struct

from pilotfish.config.jsonc import JsonPath, LineColumn
from pilotfish.protocol.wire import Json

SHOWN = 200
"""Enough to recognise a value in a message; the file has the rest."""

PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*\Z")


class ProblemGrade(StrEnum):
    """How severe a problem is: `config check` fails on errors only."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Problem(Struct, frozen=True):
    """One thing that is wrong with one value of one file."""

    grade: ProblemGrade
    file: str
    path: JsonPath
    message: str
    value: str | None = None
    """The offending value as `shown`."""
    accepted: str | None = None
    nearest: str | None = None
    """The known key that is closest to an unknown one."""
    place: LineColumn | None = None

    def __str__(self) -> str:
        where = printable(self.file) + (f":{self.place.line}:{self.place.column}" if self.place else "")
        subject = (
            [path_text(self.path) or "the file", "=", self.value] if self.value is not None else [path_text(self.path)]
        )
        parts = [": ".join(part for part in (where, " ".join(subject), self.message) if part)]
        if self.accepted:
            parts.append(f"accepted: {self.accepted}")
        if self.nearest:
            parts.append(f"did you mean {json.dumps(self.nearest)}?")
        return "; ".join(parts)


def shown(value: Json, limit: int = SHOWN) -> str:
    """`value` as one line of printable ASCII."""
    text = json.dumps(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def printable(text: str) -> str:
    """`text` itself, or ASCII JSON where a terminal would interpret it (control characters, bidirectional marks)."""
    return text if text.isprintable() else json.dumps(text)


def path_text(path: JsonPath) -> str:
    """`lsp.pyright.settings["a.b"][0]`: a path as people write it."""
    steps = [
        f".{step}" if isinstance(step, str) and PLAIN_KEY.match(step) else f"[{json.dumps(step)}]" for step in path
    ]
    return "".join(steps).removeprefix(".")
