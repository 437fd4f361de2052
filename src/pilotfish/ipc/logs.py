"""The daemon's log: one file of bounded size and its predecessor, readable by the user only.

Standard output and error go to the same file, so that messages of the interpreter (a crash, all stacks) are there too;
they follow when the file is rotated. Lines are sanitised, because some repeat text from a server (T32).
The log holds names, counts and times, never the text of a file.
"""

import logging
import os

from pilotfish.sanitise import sanitised_lines
from pilotfish.system import calls

MAX_BYTES = 1024 * 1024
"""Of one file: weeks of starts and stops, or one bad day."""

MAX_RECORD = 8000
"""Code points of one record: a traceback."""

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class LogFile(logging.Handler):
    """Writes to `path`, and rotates it at `max_bytes`."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES, standard: tuple[int, ...] = (1, 2)) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(FORMAT))
        self._path = path
        self._max_bytes = max_bytes
        self._standard = standard
        """Descriptors that are kept the same file as ours."""
        self._descriptor = -1
        self._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if os.fstat(self._descriptor).st_size >= self._max_bytes:
                os.replace(self._path, f"{self._path}.1")
                os.close(self._descriptor)
                self._open()
            line = sanitised_lines(self.format(record), MAX_RECORD) + "\n"
            os.write(self._descriptor, line.encode(errors="backslashreplace"))
        except OSError:
            # A full disk must not stop the daemon, and there is nowhere else to report it.
            return

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | calls.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, 0o600)
        calls.set_mode(self._descriptor, 0o600)
        for number in self._standard:
            os.dup2(self._descriptor, number)


TAIL_BYTES = 256 * 1024
"""How much of the end of a file is looked at."""


def last_lines(path: str, count: int) -> tuple[str, ...]:
    """The last `count` lines, those of the file before included; none where there is no log. No daemon need run."""
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
