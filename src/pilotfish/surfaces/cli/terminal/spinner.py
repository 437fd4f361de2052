"""A line on standard error while a server takes its time; only on a terminal, and gone when the answer is there."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import click

from pilotfish.system.tasks import owned_tasks

if TYPE_CHECKING:
    from pilotfish.surfaces.cli.workspace import OpenWorkspace

QUIET_SECONDS = 1.5
"""An answer that comes within this needs no explanation."""


@asynccontextmanager
async def waiting_shown(workspace: "OpenWorkspace") -> AsyncGenerator[None]:
    """While the block runs, say whom it waits for."""
    if not sys.stderr.isatty():
        yield
        return
    shown = ""

    async def show() -> None:
        nonlocal shown
        await anyio.sleep(QUIET_SECONDS)  # noqa: TID251 -- a person's patience, cancelled by the answer
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
