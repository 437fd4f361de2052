"""Servers made ready for one question: a command line that has just begun may find all of them cold.

A server that has not settled once answers from what it has read so far, which is not the whole workspace.
"""

import os
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from pilotfish.model import AbsPath

if TYPE_CHECKING:
    from pilotfish.surfaces.cli.workspace import OpenWorkspace

MAX_LOOKED_AT = 5_000
"""Files: enough to know what a workspace is made of."""

MAX_KINDS = 3
"""Kinds of files whose servers are started: code, and what stands beside it."""


async def wake(workspace: "OpenWorkspace", path: object) -> None:
    """Start the servers of the file, or those of the files that the workspace has most of, and let them settle."""
    chosen = [path] if isinstance(path, str) else await _examples(workspace)
    if chosen:
        await workspace.warm(*chosen)


async def _examples(workspace: "OpenWorkspace") -> list[str]:
    """One file of each of the most frequent kinds that some installed server is for."""
    import anyio.to_thread

    examples = await anyio.to_thread.run_sync(_of_each_kind, workspace.root)
    unserved = await workspace.unserved(examples)
    return [path for path in examples if path not in unserved][:MAX_KINDS]


def _of_each_kind(root: str) -> list[str]:
    """The first file of each kind, the most frequent kind first."""
    from pilotfish.surfaces.source_files import files_below

    examples: dict[str, str] = {}
    kinds = Counter[str]()
    for path in islice(files_below(AbsPath(root)), MAX_LOOKED_AT):
        if kind := os.path.splitext(path)[1]:
            kinds[kind] += 1
            examples.setdefault(kind, path)
    return [examples[kind] for kind, _ in kinds.most_common()]
