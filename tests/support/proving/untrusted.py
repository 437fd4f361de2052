"""Shows of one server that nothing of a project runs that nobody trusts (TRUST-8).

The project is a trap repository of every kind, with the files of the server's row where it has one. The server is let
loose as it would be for any user, and without what the kernel holds it to: one that the catalogue withholds does not
start, any other runs and springs no trap. A switch of its own for such a project must be set.
"""

import shutil
from pathlib import Path

from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Withheld, admitted
from pilotfish.servers.spec import ServerSpec
from support.proving.play import NotProven
from support.proving.rows import rows
from support.proving.switches import switches, undecided
from support.servers.real import User
from support.traps.probing import Leash, let_loose, version_of
from support.traps.repository import misled, set_trap

KINDS = ("c", "data", "go", "node", "python", "rust", "scripts")

NEWER_KINDS = ("node7",)
"""For a server that serves only projects with a newer version of some package."""

WITHHELD, RESTRICTED, AS_IT_IS = "is not started", "runs restricted", "runs"


async def untrusted(server: str, user: User) -> str:
    """What it does in a project that is not trusted; raises `NotProven` when something of the project ran."""
    spec = load()[server]
    program = shutil.which(spec.command[0], path=user.environment["PATH"])
    if program is not None and (unset := undecided(spec, switches(Path(program)))):
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
