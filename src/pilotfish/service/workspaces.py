"""The workspaces of clients, each with its configuration as it is on disk now.

Before every use the configuration files are checked with a few `stat` calls, and parsed only if one changed. While a
configuration is broken, the last good one stays in force.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf

from msgspec import Struct, field

from pilotfish.config.load import Catalogue, ConfigRequest, Loaded, load, watched_files
from pilotfish.config.places import Places
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.policy.boundary import boundary_of
from pilotfish.protocol.wire import Json
from pilotfish.servers.catalogue import builtin_layer, canonical_id
from pilotfish.servers.tree import Evidence, looked_at
from pilotfish.service.recent import Recent
from pilotfish.service.workspace import Workspace
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import own_home
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)

MAX_WORKSPACES = 32
"""Configurations that are kept, some 400 KB each; others are read again on use."""

FOR_COPIES: Mapping[str, str] = {"NODE_OPTIONS": "--v8-pool-size=1"}
"""For the servers of copies, of which one works for each processor: the four threads with which Node collects garbage
beside a program only take that of the next one. Two checks of Flask at once take 7 % less time with one."""

Variables = tuple[tuple[str, str], ...]
"""Environment variables that a server may inherit."""


class ClientSession(Struct, frozen=True):
    """One host that is connected, with the folder it works in."""

    id: str
    root: AbsPath
    cwd: AbsPath
    host: str | None = None
    environment: Variables = ()
    """For finding and starting its servers; empty: our own environment. With another project's activated environment
    they would look for modules in the wrong place."""
    copy_of: AbsPath | None = None
    """The folder that we made `root` a copy of, and whose trust it has."""
    conversation: str | None = None
    """Its name in the words of its host, by which a conversation is known again."""


class Visit(Struct, frozen=True):
    """One client in its workspace, as that is configured at this moment."""

    client: ClientSession
    workspace: Workspace
    until: float = inf
    """When somebody who waits must have an answer."""
    started: float = field(default_factory=current_time)
    """When it was asked for."""


class _Known(Struct, frozen=True):
    loaded: Loaded
    workspace: Workspace
    files: Evidence
    programs: Evidence
    """Of the files that were approved: when one changes, the approval must be looked at again (T49)."""

    @property
    def is_current(self) -> bool:
        return self.files.holds() and self.programs.holds()


class Workspaces:
    def __init__(
        self,
        places: Places,
        environment: Mapping[str, str],
        handed_over: Mapping[str, Json] | None = None,
        revoked: Callable[[Workspace], None] = lambda _workspace: None,
        changed: Callable[[Workspace, Sequence[Workspace]], None] = lambda _before, _current: None,
    ) -> None:
        self._places = places
        self._environment = environment
        self._handed_over = handed_over or {}
        self._revoked = revoked
        """Called with a workspace that is no longer trusted."""
        self._changed = changed
        """Called with a workspace as it was configured before, and all that are as their files say."""
        self._known: Recent[tuple[AbsPath, AbsPath, str | None, Variables, AbsPath | None], _Known] = Recent(
            MAX_WORKSPACES
        )

    def of(self, client: ClientSession) -> Workspace:
        """Raises `Refused` when the root is not a folder."""
        key = (client.root, client.cwd, client.host, client.environment, client.copy_of)
        known = self._known.get(key)
        if known is not None and known.is_current:
            return known.workspace
        self._require_outside(AbsPath(real_path(client.root)))
        catalogue = Catalogue(builtin_layer(), canonical_id)
        request = ConfigRequest(client.root, self._places, catalogue, client.host, self._handed_over, client.copy_of)
        # Taken before the files are read: a write during the read is then noticed at the next use.
        files = looked_at(watched_files(request, AbsPath(real_path(client.root))))
        loaded = load(request, known.loaded if known else None)
        private = (self._places.state, os.path.dirname(self._places.global_file))
        allow_external = loaded.config.security.allow_external_paths
        boundary = boundary_of(client.root, client.cwd, allow_external=allow_external, private=private)
        variables = dict(client.environment) or self._environment
        for_servers = None if client.copy_of is None else FOR_COPIES
        workspace = Workspace(loaded, boundary, self._places, variables, for_servers)
        self._known.put(key, _Known(loaded, workspace, files, looked_at(workspace.approved_files)))
        for problem in loaded.blocked:
            # One line for each field that is ignored for want of trust, when that begins (TRUST-4).
            if known is None or problem not in known.loaded.blocked:
                logger.warning("blocked root=%s %s", loaded.config.root, problem)
        if known is not None:
            if known.workspace.config.trusted and not workspace.config.trusted:
                self._revoked(workspace)
            # What was just read is in force, though its file may have changed meanwhile: then it is read once more.
            current = [one.workspace for one in self._known.values() if one.is_current]
            self._changed(known.workspace, (workspace, *current))
        return workspace

    def _require_outside(self, root: AbsPath) -> None:
        """Raise `Refused` where our own state would be the project's: programs and records that count are there."""
        state = real_path(self._places.state)
        if is_inside(state, root) and not is_inside(own_home(), root):
            hint = "Set PILOTFISH_HOME, XDG_STATE_HOME or HOME to a folder outside of the project."
            raise Refused(Code.UNTRUSTED, f"the folder of pilotfish's state, {state}, is inside {root}", hint=hint)

    def drop(self, is_unused: Callable[[Workspace], bool]) -> None:
        """Keep these no longer; their configuration is read again when a client comes back."""
        unused = {key for key in self._known if (known := self._known.get(key)) and is_unused(known.workspace)}
        self._known.drop(unused.__contains__)

    def look_again(self) -> None:
        """Read changed configurations now, and not at their next use."""
        for root, cwd, host, environment, copy_of in self._known:
            with suppress(Refused):  # its folder is gone: the next question says so
                self.of(ClientSession("", root, cwd, host, environment, copy_of))
