"""Tables for people: rows in columns, lines cut to the terminal, memory and times as people read them."""

from collections.abc import Sequence

from pilotfish.surfaces.cli.terminal.columns import width as columns

SECONDS = 60
MINUTES = 60
HOURS = 48
"""Up to two days are given in hours: `30 h` is more exact than `1 d`."""

GIB = 1024


def memory(mib: float | None) -> str:
    if mib is None:
        return "–"
    return f"{mib:.0f} MiB" if mib < GIB else f"{mib / GIB:.1f} GiB"


def duration(milliseconds: int | None) -> str:
    """How long something has lasted, in its largest unit."""
    if milliseconds is None:
        return "–"
    seconds = milliseconds / 1000
    if seconds < SECONDS:
        return f"{seconds:.0f} s"
    minutes = seconds / SECONDS
    if minutes < MINUTES:
        return f"{minutes:.0f} min"
    hours = minutes / MINUTES
    return f"{hours:.0f} h" if hours < HOURS else f"{hours / 24:.0f} d"


def latency(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def table(lines: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """A line for each row, its cells below those of the others; the last column is not padded."""
    sizes = [max(map(columns, cells)) for cells in zip(*lines, strict=True)][:-1]
    padded = (
        [*(cell + " " * (size - columns(cell)) for cell, size in zip(line, sizes, strict=False)), line[-1]]
        for line in lines
    )
    return [cut("  ".join(line).rstrip(), width) for line in padded]


def cut(line: str, width: int | None) -> str:
    """`line`, and `…` for what does not fit."""
    if width is None or columns(line) <= width:
        return line
    while line and columns(line) > width - 1:
        line = line[:-1]
    return line.rstrip() + "…" if width > 0 else ""
