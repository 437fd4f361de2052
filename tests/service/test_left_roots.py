"""What the service keeps of a root, and lets go of when no client works there any more. Virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.api.questions import Touch
from pilotfish.model import AbsPath
from pilotfish.pool.plan import LONGEST_REST, Limits
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ports import Watcher
from support.services.several import BY_LINE, Ground, service_on
from support.watching.fake import FakeWatcher

pytestmark = pytest.mark.anyio

LEFT_SECONDS = 1000.0
"""Long enough for a server that no client uses to be stopped and forgotten."""


async def introduced(ground: Ground, client: ClientSession, text: str) -> int:
    Path(client.root, "a.x").write_text(text)
    return (await ground.service.touched(Touch(("a.x",), "edit", only_new=True), client)).introduced


async def test_a_root_that_every_client_has_left_is_begun_afresh(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        stays = replace(ground.client, id="stays", root=AbsPath(str(tmp_path / "b")), cwd=AbsPath(str(tmp_path / "b")))
        Path(stays.root).mkdir()
        leaves, workspaces = ground.client, ground.service.workspaces
        for client in (leaves, stays):
            assert await introduced(ground, client, "good\n") == 0
        before = workspaces.of(leaves), workspaces.of(stays)
        ground.service.end(leaves)
        await anyio.sleep(LEFT_SECONDS)
        assert [key.root for key in ground.service.pool.entries()] == [stays.root]
        assert workspaces.of(leaves) is not before[0]
        assert workspaces.of(stays) is before[1]
        assert await introduced(ground, leaves, "bad\n") == 0
        assert await introduced(ground, stays, "bad\n") == 1


async def test_a_root_is_kept_while_one_of_its_clients_is_there(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        other = replace(ground.client, id="other")
        for client in (ground.client, other):
            assert await introduced(ground, client, "good\n") == 0
        ground.service.end(ground.client)
        await anyio.sleep(LEFT_SECONDS)
        assert await introduced(ground, other, "bad\n") == 1


async def test_a_client_that_comes_back_after_a_long_break_still_has_its_last_state(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        assert await introduced(ground, ground.client, "good\n") == 0
        await anyio.sleep(3 * LONGEST_REST)
        assert not ground.service.pool.entries()
        assert await introduced(ground, ground.client, "bad\n") == 1


async def test_the_texts_of_a_root_that_was_left_are_not_kept(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "good\n")
        await ground.touched("a.x")
        ground.service.end(ground.client)
        await anyio.sleep(LEFT_SECONDS)
        ground.write("a.x", "bad\n")
        assert "possibly older than this edit" in (await ground.touched("a.x", only_new=True)).text


@pytest.mark.proves("F103", "A16.1")
async def test_of_hundreds_of_worktrees_fifty_at_a_time_each_is_watched_once_and_nothing_is_kept(
    tmp_path: Path,
) -> None:
    watchers: set[int] = set()

    @asynccontextmanager
    async def watch() -> AsyncGenerator[Watcher]:
        watcher = FakeWatcher()
        watchers.add(id(watcher))
        try:
            yield watcher
        finally:
            watchers.remove(id(watcher))

    servers, limits = {"one": BY_LINE, "two": BY_LINE}, Limits(servers=100)
    async with service_on(tmp_path, servers, limits=limits, watch=watch) as ground:
        for number in range(0, 200, 50):
            roots = [AbsPath(str(tmp_path / f"worktree{number + at}")) for at in range(50)]
            clients = [ClientSession(root, root, root) for root in roots]
            for client in clients:
                Path(client.root).mkdir()
                assert await introduced(ground, client, "good\n") == 0
            assert len(ground.service.pool.entries()) == 100
            # One for both servers of a root.
            assert len(watchers) == 50
            for client in clients:
                ground.service.end(client)
            await anyio.sleep(LEFT_SECONDS)
            assert not ground.service.pool.entries()
            assert not watchers
