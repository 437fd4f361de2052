"""A bar on standard error while many files are checked; only on a terminal, and only when it takes a while."""

import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import click

QUIET_SECONDS = 1.0
"""What takes no longer needs no bar."""


class Progress:
    """Counts steps; the bar appears with the first one after the quiet time."""

    def __init__(self, total: int, stack: ExitStack) -> None:
        self._total = total
        self._stack = stack
        self._done = 0
        self._started = time.monotonic()
        self._step = self._count

    def step(self) -> None:
        """One more is done."""
        self._step()

    def _count(self) -> None:
        self._done += 1
        is_soon = time.monotonic() - self._started < QUIET_SECONDS
        if self._total == 1 or is_soon or not sys.stderr.isatty():
            return
        bar = self._stack.enter_context(click.progressbar(length=self._total, label="checking", file=sys.stderr))
        bar.update(self._done)
        self._step = lambda: bar.update(1)


@contextmanager
def progress(total: int) -> Generator[Progress]:
    with ExitStack() as stack:
        yield Progress(total, stack)
