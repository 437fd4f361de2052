"""File names against what the catalogue says about them. Pure."""

import os
from collections.abc import Mapping
from functools import lru_cache

from pilotfish.protocol.glob_regex import BadGlob
from pilotfish.protocol.globs import lsp_glob


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
