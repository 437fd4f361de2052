"""`python -m support.servers.fakels support.servers.faults:NAME`: a scenario as a real process, with its own faults.

Standard input and output are the wire; everything here is blocking and plain, so that a hang is a hang.
"""

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from support.servers.script import Script

STDIN, STDOUT, STDERR = 0, 1, 2


@dataclass
class FakeServer(Script):
    """The carrier over real pipes. Methods below `run` are faults that a scenario may commit."""

    chunk: int | None = None
    """Write at most this many bytes at once; None for whole frames."""

    def run(self) -> NoReturn:
        while data := os.read(STDIN, 65536):
            self.feed(data)
        self.leave(0)

    def send(self, data: bytes) -> None:
        size = self.chunk or len(data)
        for start in range(0, len(data), size):
            self.write(data[start : start + size])

    def leave(self, code: int) -> NoReturn:
        os._exit(code)

    def write(self, data: bytes) -> None:
        """Raw bytes on standard output, whatever they are."""
        while data:
            data = data[os.write(STDOUT, data) :]

    def say(self, data: bytes) -> None:
        """Raw bytes on standard error."""
        while data:
            data = data[os.write(STDERR, data) :]

    def flood_stderr(self, size: int) -> None:
        line = b"\xff noise that is not text " * 40 + b"\n"
        for _ in range(size // len(line) + 1):
            self.say(line)

    def hang(self) -> NoReturn:
        """Neither read nor write nor end."""
        while True:
            signal.pause()

    def die(self, number: int) -> NoReturn:
        os.kill(os.getpid(), number)
        self.hang()

    def freeze(self) -> None:
        """Stop like a debugger would: alive, and nothing moves."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def ignore_sigterm(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def spawn_child(self, *, new_session: bool) -> int:
        """A grandchild that ignores SIGTERM and never ends by itself; with `new_session` it has left our group."""
        stubborn = "import signal, sys; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", stubborn],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=new_session,
        )
        assert child.stdout is not None
        child.stdout.readline()
        return child.pid

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something while the wire is idle: a real server has other threads too."""
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()


def main() -> NoReturn:
    module, _, name = sys.argv[1].partition(":")
    server = FakeServer()
    getattr(importlib.import_module(module), name)(server)
    server.run()


if __name__ == "__main__":
    main()
