"""File names against what the catalogue says about them. Pure."""

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache

from pilotfish.model import AbsPath
from pilotfish.protocol.globs import BadGlob, lsp_glob
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.watching import WatchRegistration, watch_registrations
from pilotfish.servers.spec import ServerSpec


def suffixes(name: str) -> tuple[str, ...]:
    """What may be the extension of a file name, longest first: `.html.erb`, `.erb`."""
    return tuple(name[place:] for place, character in enumerate(name) if character == "." and place + 1 < len(name))


def language_id(path: str, ids: Mapping[str, str], fallback: str) -> str:
    """The id to open `path` with: by its name, then by its longest known extension, then `fallback`."""
    name = os.path.basename(path)
    globs = (key for key in ids if is_pattern(key) and fits(key, path))
    for key in (name, *globs, *suffixes(name), *suffixes(name.lower())):
        if key in ids:
            return ids[key]
    return fallback


@lru_cache(maxsize=4096)
def is_pattern(name: str) -> bool:
    """Whether a file name of the catalogue is more than a name."""
    return any(character in name for character in "*?[{/")


def fits(pattern: str, path: str) -> bool:
    """Whether the end of `path` matches; a pattern that is none matches nothing."""
    try:
        return lsp_glob(f"**/{pattern}").matches(path)
    except BadGlob:
        return False


def own_files(spec: ServerSpec) -> tuple[WatchRegistration, ...]:
    """The files that a server serves, that configure it or by which its root is found: it is told of them unasked.

    Servers that register nothing either watch files themselves, and are told twice, or expect a client that just tells,
    as clients did before there was registration. Either way their last answer may not hold any more.
    """
    rule = spec.files
    names = (*(f"*{extension}" for extension in spec.extensions), *rule.names, *spec.root.markers)
    steering = (name for name in spec.inputs.steering if "#" not in name)
    return _registrations(tuple(dict.fromkeys((*names, *spec.inputs.also_told, *steering))))


def sources_in(folders: Iterable[str], spec: ServerSpec) -> tuple[WatchRegistration, ...]:
    """The files that a server serves, in folders outside of its root."""
    endings = ",".join(extension.removeprefix(".") for extension in spec.files.extensions)
    patterns = [{"baseUri": uri_of(AbsPath(folder)), "pattern": f"**/*.{{{endings}}}"} for folder in folders]
    return tuple(watch_registrations({"watchers": [{"globPattern": pattern} for pattern in patterns]}))


@lru_cache(maxsize=256)  # One for each server that runs, asked for at each start.
def _registrations(names: tuple[str, ...]) -> tuple[WatchRegistration, ...]:
    return tuple(watch_registrations({"watchers": [{"globPattern": f"**/{name}"} for name in names]}))
