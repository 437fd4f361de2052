"""What a person sees on standard error while waiting: a bar for many files, a line for one. Only on a terminal."""

import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager

import anyio
import click

from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.tasks import owned_tasks

BAR_AFTER_SECONDS = 1.0
SPINNER_AFTER_SECONDS = 1.5
"""Shorter waits need no explanation."""


class ProgressBar:
    """Counts steps; the bar appears with the first step after `BAR_AFTER_SECONDS`."""

    def __init__(self, total: int, stack: ExitStack) -> None:
        self._total = total
        self._stack = stack
        self._done = 0
        self._started = time.monotonic()
        self._step = self._count

    def step(self) -> None:
        self._step()

    def _count(self) -> None:
        self._done += 1
        is_early = time.monotonic() - self._started < BAR_AFTER_SECONDS
        if self._total == 1 or is_early or not sys.stderr.isatty():
            return
        bar = self._stack.enter_context(click.progressbar(length=self._total, label="checking", file=sys.stderr))
        bar.update(self._done)
        self._step = lambda: bar.update(1)


@contextmanager
def progress_bar(total: int) -> Generator[ProgressBar]:
    with ExitStack() as stack:
        yield ProgressBar(total, stack)


@asynccontextmanager
async def spinner(workspace: OpenWorkspace) -> AsyncGenerator[None]:
    """While the block runs, name the servers that it waits for; the line is erased at the end."""
    if not sys.stderr.isatty():
        yield
        return
    shown = ""

    async def show() -> None:
        nonlocal shown
        await anyio.sleep(SPINNER_AFTER_SECONDS)  # noqa: TID251 -- a person's patience, cancelled by the answer
        rows = [row for row in (await workspace.snapshot()).rows if row.spawning_roots or row.connected_roots]
        who = ", ".join(row.server_id for row in rows) or "language servers"
        shown = f"waiting for {who} …"
        click.echo(shown, nl=False, err=True)

    async with owned_tasks() as tasks:
        tasks.start_soon(show)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
            if shown:
                click.echo(f"\r{' ' * len(shown)}\r", nl=False, err=True)
