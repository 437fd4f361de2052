"""How a verb gets a workspace: one seam for all of them, so that what stands behind it can change.

The workspace of a verb is `--root`, else the git worktree around the current folder, else that folder. Paths in
arguments count from the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from pilotfish.library.workspace import Workspace

T = TypeVar("T")

root_option = click.option(
    "--root", metavar="DIR", help="The workspace; by default the git worktree around the current folder, or that."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the whole answer as JSON.")


@dataclass(frozen=True, slots=True)
class Opening:
    """How a workspace is opened, given its root and the current folder."""

    open: Callable[[str, str], AbstractAsyncContextManager[Workspace]]


def with_workspace(root: str | None, work: Callable[[Workspace], Awaitable[T]]) -> T:
    """Open the workspace, do `work` in it, close it. Raises `Refused` when the root is no folder."""
    import anyio

    cwd = os.getcwd()
    opening = click.get_current_context().find_object(Opening) or Opening(_in_process)

    async def inside() -> T:
        async with opening.open(root or top_of(cwd), cwd) as workspace:
            return await work(workspace)

    return anyio.run(inside)


def top_of(folder: str) -> str:
    """The git worktree that a folder is in; the folder itself without one. A home kept in git is none."""
    home, candidate = os.path.expanduser("~"), folder
    while candidate not in {home, "/"}:
        if os.path.lexists(os.path.join(candidate, ".git")):
            return candidate
        candidate = os.path.dirname(candidate)
    return folder


def _in_process(root: str, cwd: str) -> AbstractAsyncContextManager[Workspace]:
    from pilotfish.library import workspace

    return workspace.open(root, cwd=cwd)
