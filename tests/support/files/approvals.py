"""What a person at a terminal does: looks at what a workspace asks to run, and approves it."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping

from msgspec import Struct


class Shown(Struct, frozen=True):
    """What the terminal had on its screen."""

    screen: str

    @property
    def digest(self) -> str | None:
        """The hash for `--hash`, where one is shown."""
        return next((word for word in self.screen.split() if word.startswith("sha256:")), None)


def approve(root: str, environment: Mapping[str, str]) -> Shown:
    """`pilotfish trust` in a terminal, and the answer yes."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "pilotfish", "trust"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=root,
        env=environment,
    ) as trust:
        os.close(theirs)
        os.write(ours, b"y\n")
        screen = _read_to_end(ours)
    assert trust.returncode == 0, screen
    return Shown(screen)


def _read_to_end(terminal: int) -> str:
    screen = b""
    try:
        while chunk := os.read(terminal, 4096):
            screen += chunk
    except OSError:  # Linux says so when the other side is closed
        pass
    finally:
        os.close(terminal)
    return screen.decode().replace("\r\n", "\n")
