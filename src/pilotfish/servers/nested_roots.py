"""Manifests that join packages into one root: which folders below does this one claim? Pure.

A manifest that does not parse claims nothing: the package then is its own root, as without the manifest.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import cast

from msgspec import Struct

from pilotfish.protocol.glob_regex import BadGlob
from pilotfish.protocol.globs import lsp_glob
from pilotfish.servers.spec import Grouping

MAX_MANIFEST = 262_144
"""Bytes read of a manifest; the largest `package.json` of a public monorepo is a third of this."""

REMEMBERED = 32
"""Manifests whose claim is kept. The text is the key, so a claim is never stale; parsing TOML costs 4 ms for 6 KB."""


class Claim(Struct, frozen=True):
    """Globs of folders, relative to the manifest's own."""

    members: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def covers(self, folder: str) -> bool:
        """Whether the folder at this relative path is a member; the manifest's own folder always is."""
        if not folder:
            return True
        return any(_fits(glob, folder) for glob in self.members) and not any(
            _fits(glob, folder) for glob in self.excluded
        )


@lru_cache(maxsize=REMEMBERED)
def claim(grouping: Grouping, manifest: str) -> Claim | None:
    """What a manifest of this kind claims; None when it is not such a manifest at all."""
    try:
        return _READERS[grouping](manifest)
    except (ValueError, RecursionError):
        return None


def _cargo(manifest: str) -> Claim | None:
    """Path dependencies are members without being listed, so everything is that is not excluded."""
    workspace = _table(tomllib.loads(manifest).get("workspace"))
    if workspace is None:
        return None
    excluded = _texts(workspace.get("exclude"))
    return Claim(("**",), (*excluded, *(f"{folder.rstrip('/')}/**" for folder in excluded)))


def _uv(manifest: str) -> Claim | None:
    tool = _table(tomllib.loads(manifest).get("tool")) or {}
    workspace = _table((_table(tool.get("uv")) or {}).get("workspace"))
    if workspace is None:
        return None
    return Claim(_texts(workspace.get("members")), _texts(workspace.get("exclude")))


def _npm(manifest: str) -> Claim | None:
    """A list, or the older `{"packages": [...]}` of yarn."""
    package = _table(json.loads(manifest))
    workspaces = None if package is None else package.get("workspaces")
    nested = _table(workspaces)
    globs = _texts(workspaces if nested is None else nested.get("packages"))
    return _with_exclusions(globs) if globs else None


def _pnpm(manifest: str) -> Claim | None:
    """The list under `packages:`. The one piece of YAML that we read, so no YAML library."""
    lines = iter(manifest.splitlines())
    for line in lines:
        if re.match(r"packages:\s*(#.*)?$", line):
            break
    globs: list[str] = []
    for line in lines:
        item = re.fullmatch(r"\s*-\s+(['\"]?)([^'\"#]+?)\1\s*(?:#.*)?", line)
        if item:
            globs.append(item.group(2))
        elif not re.match(r"\s*(#|$)", line):
            break
    return _with_exclusions(tuple(globs))


def _go_work(manifest: str) -> Claim | None:
    text = re.sub(r"//.*", "", manifest)
    blocks = re.findall(r"^use[ \t]*\(([^)]*)\)", text, re.MULTILINE)
    single = re.findall(r"^use[ \t]+([^(\s]\S*)", text, re.MULTILINE)
    words = [word.strip('"`') for block in blocks for word in block.split()] + [word.strip('"`') for word in single]
    return Claim(tuple(word for word in words if not word.startswith("..")))


def _with_exclusions(globs: tuple[str, ...]) -> Claim:
    return Claim(
        members=tuple(glob for glob in globs if not glob.startswith("!")),
        excluded=tuple(glob[1:] for glob in globs if glob.startswith("!")),
    )


def _fits(glob: str, folder: str) -> bool:
    plain = glob.removeprefix("./").rstrip("/")
    if plain in {"", "."}:
        return not folder
    try:
        return lsp_glob(plain).matches(folder)
    except BadGlob:
        return False


def _table(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


def _texts(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


_READERS: Mapping[Grouping, Callable[[str], Claim | None]] = {
    Grouping.CARGO: _cargo,
    Grouping.GO_WORK: _go_work,
    Grouping.NPM: _npm,
    Grouping.PNPM: _pnpm,
    Grouping.UV: _uv,
}

MANIFESTS: Mapping[Grouping, str] = {
    Grouping.CARGO: "Cargo.toml",
    Grouping.GO_WORK: "go.work",
    Grouping.NPM: "package.json",
    Grouping.PNPM: "pnpm-workspace.yaml",
    Grouping.UV: "pyproject.toml",
}
"""The file that each kind of manifest is."""
