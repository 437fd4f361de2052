"""How the verbs about servers reach the daemon that runs. None of them starts one: looking must change nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.surfaces.cli.workspace import asking_host, root_of

if TYPE_CHECKING:
    from pilotfish.api.status import Snapshot

T = TypeVar("T")

NOT_RUNNING = "No daemon is running: servers start with the first edit or question."


def connect(introduction: Introduction | None = None, terms: Terms | None = None) -> Link | None:
    """A connection to the daemon; None when none runs."""
    try:
        return open_link(introduction, terms or Terms(start=False))
    except Unavailable as unavailable:
        if unavailable.code is Code.NOT_FOUND:
            return None
        raise


def running_daemon(root: str | None, terms: Terms | None = None) -> Link | None:
    """A session for the workspace at the daemon; None when no daemon runs."""
    return connect(Introduction(os.getcwd(), os.path.abspath(root_of(root)), asking_host()), terms)


def ask_daemon(root: str | None, method: str, shape: type[T], terms: Terms | None = None, **params: object) -> T | None:
    """What the daemon says about the workspace; None when no daemon runs."""
    import msgspec

    link = running_daemon(root, terms)
    if link is None:
        return None
    with link:
        return msgspec.convert(link.request(method, params), shape)


def snapshot(root: str | None, terms: Terms | None = None) -> tuple[Snapshot, bool]:
    """Every server of the workspace, and whether a daemon runs. Without one, what the configuration says."""
    from pilotfish.api.status import Snapshot

    found = ask_daemon(root, "status", Snapshot, terms)
    return (idle_snapshot(os.path.abspath(root_of(root))), False) if found is None else (found, True)


def idle_snapshot(root: str) -> Snapshot:
    """The servers of a workspace where none runs. Raises `Refused` when the root is not a folder."""
    import anyio

    from pilotfish.config.places import user_places
    from pilotfish.model import AbsPath
    from pilotfish.service.status.snapshot import PoolMoment, snapshot_of
    from pilotfish.service.workspaces import ClientSession, Workspaces
    from pilotfish.system.clock import WallClock, current_time

    async def read() -> Snapshot:
        client = ClientSession("status", AbsPath(root), AbsPath(root), asking_host())
        workspace = Workspaces(user_places(os.environ), os.environ).of(client)
        return snapshot_of(workspace, PoolMoment(WallClock().wall(), current_time()))

    return anyio.run(read)
