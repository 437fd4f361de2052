"""The last lines of the daemon's log, whether the daemon runs or not."""

import os

TAIL_BYTES = 256 * 1024
"""How much of the end of a file is looked at."""


def last_lines(path: str, count: int) -> tuple[str, ...]:
    """The last `count` lines, those of the file before this one included; none where there is no log."""
    lines = _lines(path)
    if len(lines) < count:
        lines = _lines(f"{path}.1") + lines
    return tuple(lines[-count:]) if count > 0 else ()


def _lines(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    lines = text.splitlines()
    return lines[1:] if size > TAIL_BYTES else lines
