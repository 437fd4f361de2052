"""Servers made ready for one question: a command line that has just begun finds all of them cold.

A server that has not settled once answers from what it has read so far, which is not the whole workspace.
"""

import os
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from pilotfish.surfaces.folders import files_below

if TYPE_CHECKING:
    from pilotfish.library.workspace import Workspace

MAX_LOOKED_AT = 5_000
"""Files: enough to know what a workspace is made of."""

MAX_KINDS = 3
"""Kinds of files whose servers are started: code, and what stands beside it."""


async def wake(workspace: "Workspace", path: object) -> None:
    """Start the servers of the file, or those of the files that the workspace has most of, and let them settle."""
    chosen = [path] if isinstance(path, str) else _examples(workspace)
    if chosen:
        await workspace.warm(*chosen)


def _examples(workspace: "Workspace") -> list[str]:
    """One file of each of the most frequent kinds that some installed server is for."""
    examples: dict[str, str] = {}
    kinds = Counter[str]()
    for path in islice(files_below(workspace.root), MAX_LOOKED_AT):
        kind = os.path.splitext(path)[1]
        kinds[kind] += 1
        examples.setdefault(kind, path)
    served = [kind for kind, _ in kinds.most_common() if kind and _is_served(workspace, examples[kind])]
    return [examples[kind] for kind in served[:MAX_KINDS]]


def _is_served(workspace: "Workspace", path: str) -> bool:
    return workspace.serves(path) and workspace.missing(path) is None
