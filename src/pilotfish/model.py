"""The nouns everybody shares. Frozen, free of I/O, and not serialisable on purpose: wires have their own shapes.

Lines and characters are 0-based here and count Unicode code points.
A server's own units (`protocol.wire.WirePosition`) become these in `protocol.positions` and nowhere else.
Surfaces add 1 when they show a position to a person or a model.
"""

from enum import IntEnum, StrEnum
from typing import NewType

from msgspec import Struct

AbsPath = NewType("AbsPath", str)
"""An absolute, normalised path of this machine; undecodable bytes are surrogate-escaped (`os.fsdecode`)."""

Uri = NewType("Uri", str)
"""A document URI as we encode it, or a foreign one kept word for word. Compare decoded paths, never these."""


class Encoding(StrEnum):
    """What one `character` of a server's position counts."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Severity(IntEnum):
    """How bad a diagnostic is, in the numbers of the protocol: lower is worse."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


class Position(Struct, frozen=True, order=True):
    """A place between two code points: 0-based line, 0-based code point in it."""

    line: int
    character: int


class Range(Struct, frozen=True, order=True):
    """From `start` up to but not including `end`."""

    start: Position
    end: Position


class Cell(Struct, frozen=True):
    """A cell of a notebook: its number among all cells, from 1, and its first line in the text of its code cells."""

    number: int
    first_line: int


class Diagnostic(Struct, frozen=True):
    range: Range
    severity: Severity
    message: str
    server: str
    code: str | None = None
    source: str | None = None
    cell: Cell | None = None
    """Where the file is a notebook."""
