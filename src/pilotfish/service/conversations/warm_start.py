"""Which files to open when a conversation begins, so that its first edit meets servers that run.

Of each server that a workspace used last, the file is remembered that it was used for: opening that starts it. In a
workspace that was never used, a file of the language that has most files stands for it, and one of its components.
"""

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import anyio.to_thread
import msgspec

from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.component_imports import component_servers
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.recent import Recent
from pilotfish.service.workspace import Workspace
from pilotfish.system.ports import Memory
from pilotfish.system.source_files import files_below

logger = logging.getLogger(__name__)

KIND = "last used"

MAX_SERVERS = 4
"""That are started for one conversation: the last ones that were used first for this workspace."""

MAX_WORKSPACES = 100

MAX_LISTED = 5_000
"""Files that are looked at for the main language."""


class WarmStart:
    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self._known: Recent[AbsPath, dict[str, AbsPath]] = Recent(MAX_WORKSPACES)

    def used(self, workspace: Workspace, verdicts: Sequence[FileVerdict]) -> None:
        """These files were judged: remember servers that were not used here before."""
        known = self._files(workspace.root)
        news = {
            outcome.server: verdict.path
            for verdict in verdicts
            for outcome in verdict.outcomes
            if outcome.diagnostics is not None and not _is_there(known.get(outcome.server))
        }
        if not news:
            return
        merged = {**{server: path for server, path in known.items() if server not in news}, **news}
        kept = dict(list(merged.items())[-MAX_SERVERS:])
        self._known.put(workspace.root, kept)
        try:
            if self._memory is not None:
                self._memory.put(KIND, workspace.root, msgspec.json.encode(kept))
        except (Failure, UnicodeEncodeError) as error:
            logger.debug("last used servers not written: %s", error)

    async def files(self, workspace: Workspace) -> tuple[AbsPath, ...]:
        """One file for each server that is worth starting now."""
        if not workspace.config.start_ahead:
            return ()
        known = [path for path in self._files(workspace.root).values() if _is_there(path) and workspace.serves(path)]
        if not known:
            known = await anyio.to_thread.run_sync(_main_files, workspace)
        return tuple(dict.fromkeys(known))

    def _files(self, root: AbsPath) -> Mapping[str, AbsPath]:
        known = self._known.get(root)
        if known is None:
            known = self._read(root)
            self._known.put(root, known)
        return known

    def _read(self, root: AbsPath) -> dict[str, AbsPath]:
        try:
            said = self._memory.get(KIND, root) if self._memory is not None else None
            return {} if said is None else msgspec.json.decode(said, type=dict[str, AbsPath])
        except (Failure, msgspec.MsgspecError):
            # Unreadable, or written by another version: it is remembered again with the next edit.
            return {}


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
