"""A program in a terminal that a test reads and types into: a pty, and a screen behind it."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyte

COLUMNS, LINES = 110, 40

PATIENCE_SECONDS = 60.0
"""Until a text must be on the screen; the machine may be busy with something else."""


@dataclass
class Terminal:
    process: subprocess.Popen[bytes]
    descriptor: int
    screen: pyte.Screen
    stream: pyte.ByteStream

    def until(self, *texts: str, without: str = "") -> list[str]:
        """The lines of the screen, once all these texts are on it, and one is not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            lines = list(self.screen.display)
            shown = "\n".join(lines)
            if all(text in shown for text in texts) and not (without and without in shown):
                return lines
            left = deadline - time.monotonic()
            assert left > 0, f"no {texts} (or still {without!r}) on the screen:\n{shown}"
            if select.select([self.descriptor], [], [], left)[0]:
                self.stream.feed(self._read())

    def press(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())

    def close(self) -> None:
        """As a person closes the window: the system says so to the program, and nobody reads what it writes then."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _read(self) -> bytes:
        try:
            return os.read(self.descriptor, 1 << 16)
        except OSError as gone:
            raise AssertionError(f"the program has ended:\n{chr(10).join(self.screen.display)}") from gone


@contextmanager
def terminal(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Generator[Terminal]:
    """Run a program in a terminal of its own."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["setsid", "--ctty", *argv],  # so that it gets the signals of this terminal
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    screen = pyte.Screen(COLUMNS, LINES)
    made = Terminal(process, ours, screen, pyte.ByteStream(screen))
    try:
        with process:
            try:
                yield made
            finally:
                process.kill()
    finally:
        made.close()
