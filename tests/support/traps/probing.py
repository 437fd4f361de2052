"""Lets one real server loose in a trap repository, as ordinary use does: check, ask, edit; and sees what sprang.

A server runs *trusted* (the control: whether the traps work at all), or untrusted, with and without what the kernel
holds it to. One that the catalogue withholds can be let loose all the same, to see what it would run.
"""

import os
from collections.abc import Container, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from enum import StrEnum
from unittest.mock import patch

import anyio
from msgspec import Struct
from msgspec.structs import replace

import pilotfish
from pilotfish.api.questions import Operation
from pilotfish.library.workspace import Workspace, computer
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Allowed, Withheld, admitted
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.servers.spec import Risk, ServerSpec, Shown
from pilotfish.servers.versions import installed_version
from pilotfish.system.ports import Launch, Process
from pilotfish.system.process import spawn
from pilotfish.system.source_files import files_below
from support.servers.real import User
from support.traps.repository import Trap

MAX_EDITS = 5
"""Files that are edited: what an edit can make a server do, it does after the first ones."""

AT_ONCE = 4
"""Files that are asked about side by side: many servers answer some questions never, and each wait has its end."""

MAX_SECONDS = 60.0
"""For all files together; what a server has not judged by then counts as not judged."""

ANY = Shown("0", "9999999")


class Leash(StrEnum):
    """How a server is let loose."""

    TRUSTED = "trusted"
    OPEN = "untrusted, not confined"
    CONFINED = "untrusted, confined"


class Loosed(Struct, frozen=True):
    """What happened."""

    files: int
    """Files that were opened at it."""
    judged: int
    """Those of them that it gave a verdict on."""
    held: tuple[str, ...]
    why_not: str | None = None
    """Why it did not run."""


async def let_loose(
    user: User, server: str, trap: Trap, leash: Leash, *, forced: bool = False, seconds: float = 0
) -> Loosed:
    """Check every file of the trap that the server is for, ask about some places, edit, and end it.

    It ends after some `seconds` for what it does in its own time: a table is made with them, a test does without.
    """
    system = computer(user.environment)
    if leash is Leash.OPEN:
        system = replace(system, spawn=_unconfined)
    with _admitting(forced=forced and leash is not Leash.TRUSTED):
        async with pilotfish.open(trap.root, shell=system) as workspace:
            paths = (*files_below(AbsPath(str(trap.root))), *map(str, trap.root.glob(".github/workflows/*")))
            files = [path for path in sorted(paths) if workspace.is_served(path)]
            judged = await _all_used(workspace, files)
            await anyio.sleep(seconds)
            row = next(row for row in workspace.status().rows if row.server_id == server)
            alive = [instance for instance in row.instances if instance.pid is not None]
            errors = [instance.last_error for instance in row.instances if instance.last_error]
            return Loosed(
                files=len(files),
                judged=len(judged),
                held=alive[0].confined if alive else (),
                why_not=None if alive else next(iter(errors), row.unavailable),
            )


def version_of(user: User, server: str) -> str:
    """The version of the server that this user has; empty when it cannot be told."""
    path = tuple(map(AbsPath, user.environment["PATH"].split(os.pathsep)))
    lookup = Lookup((AbsPath(str(user.workspace)),), trusted=False, path=path)
    located = locate(load()[server].command[0], AbsPath("/"), lookup)
    return installed_version(load()[server], located) if isinstance(located, ProgramFound) else ""


async def _all_used(workspace: Workspace, files: Sequence[str]) -> Sequence[str]:
    """The files that the server gave a verdict on in time."""
    judged = list[str]()
    lane = anyio.CapacityLimiter(AT_ONCE)

    async def use(path: str) -> None:
        async with lane:
            if await _used(workspace, path):
                judged.append(path)

    with anyio.move_on_after(MAX_SECONDS):
        async with anyio.create_task_group() as group:
            for path in files:
                group.start_soon(use, path)
    with anyio.move_on_after(MAX_SECONDS):
        for path in files[:MAX_EDITS]:
            await _edited(workspace, path)
    return judged


async def _used(workspace: Workspace, path: str) -> bool:
    """Whether the server gave a verdict on the file."""
    answer = await workspace.check(path)
    for operation in (Operation.HOVER, Operation.DEFINITION):
        await workspace.ask(operation, {"filePath": path, "line": 2, "character": 10})
    await workspace.ask(Operation.DOCUMENT_SYMBOL, {"filePath": path})
    await workspace.ask(Operation.CODE_ACTIONS, {"filePath": path, "line": 1, "character": 1})
    return answer.ok


async def _edited(workspace: Workspace, path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"\n")
    await workspace.after_edit(path)


def _unconfined(launch: Launch) -> AbstractAsyncContextManager[Process]:
    return spawn(replace(launch, confinement=None))


@contextmanager
def _admitting(*, forced: bool) -> Generator[None]:
    """Where it is forced, let also those run that the catalogue withholds; restricted if they can be."""

    def admit(
        spec: ServerSpec, *, trusted: bool, version: str | None = None, held: Container[str] = ()
    ) -> Allowed | Withheld:
        return admitted(replace(spec, risk=Risk.PARSES, shown=ANY), trusted=trusted, version=version, held=held)

    with patch("pilotfish.servers.launch.admitted", admit if forced else admitted):
        yield
