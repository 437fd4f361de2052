"""Shows of one server that nothing of a project runs that nobody trusts (TRUST-8).

The project is a trap repository of every kind, with the files of the server's row where it has one. The server is let
loose as it would be for any user, and without what the kernel holds it to: one that the catalogue withholds does not
start, any other runs and springs no trap. A switch of its own for such a project must be set.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import to_builtins

from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Withheld, admitted
from pilotfish.servers.spec import ServerSpec
from support.proving.play import NotProven
from support.proving.rows import rows
from support.servers.real import User
from support.traps.probing import Leash, let_loose, version_of
from support.traps.repository import misled, set_trap

KINDS = ("c", "data", "go", "node", "python", "rust", "scripts")

NEWER_KINDS = ("node7",)
"""For a server that serves only projects with a newer version of some package."""

WITHHELD, RESTRICTED, AS_IT_IS = "is not started", "runs restricted", "runs"


SWITCHES = (
    b"untrustedWorkspace",
    b"untrusted-workspace",
    b"initializationOptions?.isTrusted",
    b"initializationOptions.isTrusted",
)
"""How servers name such an option."""

NEEDLESS: Mapping[tuple[str, str], str] = {
    ("ruff", "untrusted-workspace"): "it turns off uv as formatter, and nobody asks it to format (0.17.4)",
}
"""Options that are not set, and why."""

CODE = {".js", ".cjs", ".mjs"}


def unset_switches(spec: ServerSpec, program: Path) -> set[str]:
    """The options for untrusted projects that are in the program, or in the npm package around it, and are not set."""
    real = program.resolve()
    package = next((folder for folder in real.parents if (folder / "package.json").is_file()), None)
    files = [real] if package is None else [one for one in package.rglob("*") if one.suffix in CODE and one.is_file()]
    found = set[str]()
    for text in (file.read_bytes() for file in files):
        found |= {switch.decode().rpartition(".")[2] for switch in SWITCHES if switch in text}
    said = json.dumps([spec.command, to_builtins(spec.restricted)])
    return {name for name in found if name not in said and (spec.id, name) not in NEEDLESS}


async def untrusted(server: str, user: User) -> str:
    """What it does in a project that is not trusted; raises `NotProven` when something of the project ran."""
    spec = load()[server]
    program = shutil.which(spec.command[0], path=user.environment["PATH"])
    if program is not None and (unset := unset_switches(spec, Path(program))):
        raise NotProven(f"untrusted: it has {', '.join(sorted(unset))}, which is not set")
    withheld = isinstance(admitted(spec, trusted=False, version=version_of(user, server)), Withheld)
    is_newer = spec.root.requires is not None and spec.root.requires.minimum is not None
    kinds = (*KINDS, *NEWER_KINDS) if is_newer else KINDS
    with set_trap(user.workspace.parent, kinds, user.workspace) as trap:
        for name, text in own_files(spec).items():
            place = user.workspace / name
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
        loosed = await let_loose(User(user.workspace, misled(user.environment, trap.root)), server, trap, Leash.OPEN)
        sprung = trap.sprung()
    if sprung:
        raise NotProven(f"untrusted: it ran {', '.join(sorted(sprung))} of the project")
    if withheld and loosed.why_not is None and loosed.files:
        raise NotProven("untrusted: it runs, and is withheld")
    if not withheld and (loosed.why_not is not None or not loosed.files):
        raise NotProven(f"untrusted: it does not run: {loosed.why_not or 'no file is for it'}")
    return WITHHELD if withheld else RESTRICTED if spec.restricted else AS_IT_IS


def own_files(spec: ServerSpec) -> dict[str, str]:
    """What makes it serve the project: its row's files, or empty ones by the names that it is for."""
    row = rows().get(spec.id)
    if row is not None:
        return {**row.files, row.file: row.fine}
    names = [
        *spec.files.names[:1],
        *(f"main{extension}" for extension in spec.files.extensions[:1]),
        *spec.root.markers,
    ]
    return {name: "" for name in names if not set(name) & set("*#?[")}
