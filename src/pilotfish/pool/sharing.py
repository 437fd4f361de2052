"""Which servers serve one worktree alone, and which one serves several: see `pool.carrier`."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.session import Session, open_session
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.pool.carrier import Carrier, Face
from pilotfish.pool.mirror import Mirror, Moving, Tree, Unshareable
from pilotfish.protocol.codec import decode, encode
from pilotfish.servers.worktrees import Share
from pilotfish.system.ports import Launch, Spawner
from pilotfish.system.tasks import owned_tasks

T = TypeVar("T")

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""While the block runs, the server sees the worktree of a session."""


class Sharing:
    """The first worktree has a server of its own, where its files are; those that come after it share another one."""

    def __init__(self, spawn: Spawner, *, is_wanted: bool) -> None:
        self._spawn = spawn
        self._is_wanted = is_wanted
        self._alone: dict[str, set[AbsPath]] = {}
        """By group: the worktrees that have had a server of their own, until they are left for good."""
        self._carriers: dict[str, Carrier] = {}
        self._joining = anyio.Lock()
        self._refused: dict[AbsPath, str] = {}
        """Worktrees that need a server of their own, and why."""

    @asynccontextmanager
    async def session(
        self, options: SessionOptions, tasks: TaskGroup, is_served: Callable[[], bool]
    ) -> AsyncGenerator[tuple[Session, Turn, str]]:
        """A session as `open_session` has it, its turn, and the name of its process where that is shared. `tasks` are
        where such a server lives; `is_served` says whether a client waits."""
        share = options.share if self._is_wanted else None
        carrier = None if share is None else await self._carrier(share, options, tasks)
        if carrier is None or share is None:
            if share is not None:
                self._alone.setdefault(share.group, set()).add(share.top)
            async with open_session(options, self._spawn) as session:
                yield session, nullcontext, ""
            return
        async with owned_tasks() as asking:
            face = Face(carrier, Tree(share.top), asking, is_served)
            carrier.faces.append(face)
            try:
                async with open_session(options, lambda _launch: nullcontext(face)) as session:
                    yield session, partial(carrier.turn, face), carrier.mirror.folder
            finally:
                face.end()
                carrier.leave(face)
                asking.cancel_scope.cancel()

    def look_again(self) -> None:
        """A client waits, or does not any more."""
        for carrier in self._carriers.values():
            carrier.look_again()

    def left(self, root: AbsPath) -> None:
        """Nobody works in this root any more."""
        kept = {group: {top for top in tops if not is_inside(root, top)} for group, tops in self._alone.items()}
        self._alone = {group: tops for group, tops in kept.items() if tops}

    def may_join(self, options: SessionOptions) -> bool:
        """Whether this worktree needs no process of its own."""
        share = options.share if self._is_wanted else None
        found = None if share is None or share.top in self._refused else self._carriers.get(share.group)
        return found is not None and not found.is_over

    async def _carrier(self, share: Share, options: SessionOptions, tasks: TaskGroup) -> Carrier | None:
        """The server that this worktree is to share; None where it is to have one of its own."""
        async with self._joining:
            found = self._carriers.get(share.group)
            if share.top in self._refused:
                return None
            if found is None or found.is_over:
                if not self._alone.get(share.group, set()) - {share.top}:
                    # Also where there was room for one only: then all of them share that.
                    return None
                try:
                    mirror = await anyio.to_thread.run_sync(Mirror, share.folder, Tree(share.top))
                except (Unshareable, OSError) as error:
                    self._refused[share.top] = str(error)
                    return None
                found = self._carriers[share.group] = Carrier(
                    mirror, _moved(options, Moving(share.top, share.folder)), self._refused
                )
                tasks.start_soon(found.live, self._spawn)
            await found.ready.wait()
            if found.failure is not None:
                raise found.failure
            return found


def _moved(options: SessionOptions, place: Moving) -> SessionOptions:
    """How the server is started in our folder instead of a worktree."""

    def moved(value: T) -> T:
        return decode(place.outgoing(encode(value)), type(value))

    launch = options.launch
    confinement = launch.confinement
    if confinement is not None:
        sealed, readable = (*confinement.sealed, place.folder), (*confinement.readable, place.folder)
        confinement = replace(confinement, sealed=sealed, readable=readable)
    environment: Mapping[str, str] = moved(dict(launch.environment))
    return replace(
        options,
        root=place.there(options.root),
        launch=Launch(moved(list(launch.argv)), place.there(launch.cwd), environment, launch.name, confinement),
        initialization=moved(options.initialization),
        settings=moved(dict(options.settings)),
        inputs=None,
        share=None,
    )
