"""Which files to open when a conversation begins, so that its first edit meets servers that run.

Of each server that a workspace used last, the file is remembered that it was used for: opening that starts it. In a
workspace that was never used, a file of the language that has most files stands for it, and one of its components.
"""

import os
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import anyio.to_thread

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.diagnostics.verdicts import FileVerdict
from pilotfish.service.recent import Remembered
from pilotfish.service.workspace import Workspace
from pilotfish.system.ports import Memory
from pilotfish.system.source_files import files_below

KIND = "last used"

MAX_SERVERS = 4
"""That are started for one conversation: the last ones that were used first for this workspace."""

MAX_WORKSPACES = 100

MAX_LISTED = 5_000
"""Files that are looked at for the main language."""


class WarmStart:
    def __init__(self, memory: Memory | None) -> None:
        self._known = Remembered(memory, KIND, dict[str, AbsPath], dict[str, AbsPath], MAX_WORKSPACES)

    def used(self, workspace: Workspace, verdicts: Sequence[FileVerdict]) -> None:
        """These files were judged: remember servers that were not used here before."""
        known = self._known.get(workspace.root)
        news = {
            outcome.server: verdict.path
            for verdict in verdicts
            for outcome in verdict.outcomes
            if outcome.diagnostics is not None and not _is_there(known.get(outcome.server))
        }
        if news:
            merged = {**{server: path for server, path in known.items() if server not in news}, **news}
            self._known.put(workspace.root, dict(list(merged.items())[-MAX_SERVERS:]))

    async def files(self, workspace: Workspace) -> tuple[AbsPath, ...]:
        """One file for each server that is worth starting now."""
        if not workspace.config.start_ahead:
            return ()
        found = self._known.get(workspace.root).values()
        known = [path for path in found if _is_there(path) and workspace.serves(path)]
        if not known:
            known = await anyio.to_thread.run_sync(_main_files, workspace)
        return tuple(dict.fromkeys(known))


def _is_there(path: AbsPath | None) -> bool:
    return path is not None and os.path.isfile(path)


def _main_files(workspace: Workspace) -> list[AbsPath]:
    """The first file of the language that has most files and a server, and of components that import such files:
    these have a server of their own. Blocking: for a thread.
    """
    firsts: dict[str, AbsPath] = {}
    counts: Counter[str] = Counter()
    for path in islice(files_below(workspace.root), MAX_LISTED):
        ending = os.path.splitext(path)[1]
        if ending and (ending in firsts or workspace.serves(path)):
            firsts.setdefault(ending, path)
            counts[ending] += 1
    main = next((one for one, _ in counts.most_common() if _has_main_server(workspace, firsts[one])), None)
    beside = component_servers(workspace, [main]) if main is not None else []
    endings = [main, *(ending for ending in firsts if any(ending in one.files.extensions for one in beside))]
    return [firsts[ending] for ending in endings if ending is not None]


def _has_main_server(workspace: Workspace, path: AbsPath) -> bool:
    return any(candidate.spec.serves_code for candidate in workspace.servers_for(path).servers)
