"""What is on standard error while somebody waits: a bar for many files, a line for one; in a pipe, a line at times."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Self

import click

from pilotfish.errors import Failure
from pilotfish.surfaces.cli.workspace import OpenWorkspace

BAR_AFTER_SECONDS = 1.0
SPINNER_AFTER_SECONDS = 1.5
"""Shorter waits need no explanation."""

LINE_SECONDS = 5.0
MANY = 20
"""Between two lines where there is no terminal, and of how many steps at least: models read these, too."""

ERASED = "\r\x1b[K"


class ProgressBar:
    """Counts steps; the bar appears with the first step after `BAR_AFTER_SECONDS`, and goes with the block.

    Where standard error is no terminal, `in_pipes` is a line about the number of steps and of all, now and then.
    `write` takes the lines, for a standard error that is another process's.
    """

    def __init__(
        self,
        total: int,
        in_pipes: str | None = None,
        now: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self.total = total
        self._stack = ExitStack()
        self._in_pipes = in_pipes
        self._now = now
        self._write = write
        self._done = 0
        self._update: Callable[[int], None] | None = None
        """Of the bar, once it is there."""
        self._line_at = now() + BAR_AFTER_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def step(self) -> None:
        self._done += 1
        if self._update is not None:
            self._update(1)
        elif self.total > 1 and self._now() >= self._line_at:
            self._show()

    @contextmanager
    def aside(self) -> Generator[None]:
        """What the block prints does not run into the bar, which comes back with the next step."""
        if self._update is not None:
            click.echo(ERASED, nl=False, err=True)
        yield

    def _show(self) -> None:
        if self._write is None and sys.stderr.isatty():
            bar = click.progressbar(length=self.total, label="checking", file=sys.stderr)
            self._update = self._stack.enter_context(bar).update
            self._update(self._done)
        elif self._in_pipes is not None and MANY <= self.total > self._done:
            self._line_at = self._now() + LINE_SECONDS
            (self._write or partial(click.echo, err=True))(self._in_pipes.format(self._done, self.total))


@contextmanager
def spinner(workspace: OpenWorkspace) -> Generator[Callable[[], None]]:
    """While the block runs, name the servers that it waits for; the line is erased at the end, or by what it yields."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from threading import Timer

    shown = ""

    def show() -> None:
        nonlocal shown
        with suppress(Failure):  # the answer, or the reason why there is none, follows
            rows = [row for row in workspace.status().rows if row.spawning_roots or row.connected_roots]
            who = ", ".join(row.server_id for row in rows) or "language servers"
            shown = f"waiting for {who} …"
            click.echo(shown, nl=False, err=True)

    def stop() -> None:
        nonlocal shown
        timer.cancel()
        timer.join()
        if shown:
            click.echo(f"\r{' ' * len(shown)}\r", nl=False, err=True)
        shown = ""

    timer = Timer(SPINNER_AFTER_SECONDS, show)
    timer.start()
    try:
        yield stop
    finally:
        stop()
