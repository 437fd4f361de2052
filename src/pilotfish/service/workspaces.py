"""The workspaces that clients work in, each with its configuration as the files say it now.

A file that would change the configuration is looked at before every use: a few `stat` calls, and nothing is parsed
unless one of them changed. A configuration that is broken keeps the last good one in force.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pilotfish.config.load import Catalogue, Loaded, Request, load
from pilotfish.config.places import Places
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import boundary_of
from pilotfish.protocol.wire import Json
from pilotfish.servers.catalogue import builtin_layer, canonical_id
from pilotfish.service.recent import Recent
from pilotfish.service.workspace import Workspace

MAX_WORKSPACES = 32
"""Configurations that are kept, some 400 KB each; one that is asked for again later is read again."""


@dataclass(frozen=True, slots=True)
class ClientSession:
    """Who asks: one host connected to us, with the folder it works in."""

    id: str
    root: AbsPath
    cwd: AbsPath
    host: str | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    loaded: Loaded
    workspace: Workspace
    files: tuple[object, ...]


class Workspaces:
    def __init__(
        self, places: Places, environment: Mapping[str, str], handed_over: Mapping[str, Json] | None = None
    ) -> None:
        self._places = places
        self._environment = environment
        self._handed_over = handed_over or {}
        self._known: Recent[tuple[AbsPath, AbsPath, str | None], _Known] = Recent(MAX_WORKSPACES)

    def of(self, client: ClientSession) -> Workspace:
        """Raises `Refused` when the root is no folder any more."""
        key = (client.root, client.cwd, client.host)
        known = self._known.get(key)
        if known is not None and _signature(known.loaded.watched) == known.files:
            return known.workspace
        catalogue = Catalogue(builtin_layer(), canonical_id)
        request = Request(client.root, self._places, catalogue, client.host, self._handed_over)
        loaded = load(request, known.loaded if known else None)
        made = _Known(loaded, self._workspace(client, loaded), _signature(loaded.watched))
        self._known.put(key, made)
        return made.workspace

    def _workspace(self, client: ClientSession, loaded: Loaded) -> Workspace:
        private = (self._places.state, os.path.dirname(self._places.global_file))
        allow_external = loaded.config.security.allow_external_paths
        boundary = boundary_of(client.root, client.cwd, allow_external=allow_external, private=private)
        return Workspace(loaded, boundary, self._places, self._environment)


def _signature(files: tuple[AbsPath, ...]) -> tuple[object, ...]:
    return tuple(_identity(file) for file in files)


def _identity(file: AbsPath) -> object:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
