"""Client sessions: where they work, and every way in which they end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc import client_sessions as module
from pilotfish.ipc.client_sessions import ATTACHED_SECONDS, KEPT_SECONDS, Caller, ClientSessions
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ownership import top_of
from support.daemon.desks import Pids

pytestmark = pytest.mark.anyio


@dataclass
class Book:
    """Sessions, and what became of them."""

    sessions: ClientSessions
    pids: Pids
    released: list[str]
    hung_up: list[tuple[Code, str]] = field(default_factory=list[tuple[Code, str]])

    def attach(self, cwd: Path, pid: int | None = None) -> ClientSession:
        return self.sessions.attach(Caller(str(cwd), pid=pid), lambda code, why: self.hung_up.append((code, why)))


@asynccontextmanager
async def book() -> AsyncGenerator[Book]:
    released: list[str] = []
    pids = Pids()
    sessions = ClientSessions(lambda client: released.append(client.id), pids.gone)
    async with sessions.running():
        yield Book(sessions, pids, released)


async def test_ending_a_session_twice_releases_it_once(tmp_path: Path) -> None:
    async with book() as kept:
        client = kept.attach(tmp_path)
        assert [kept.sessions.end(client.id), kept.sessions.end(client.id)] == [True, False]
        assert kept.released == [client.id]
    assert kept.released == [client.id]


async def test_all_sessions_end_with_the_daemon(tmp_path: Path) -> None:
    async with book() as kept:
        clients = [kept.attach(tmp_path), kept.sessions.keep(Caller(str(tmp_path)))]
    assert kept.released == [client.id for client in clients]


async def test_a_session_ends_with_the_process_that_it_named(tmp_path: Path) -> None:
    async with book() as kept:
        kept.pids.ended[7] = anyio.Event()
        client, other = kept.attach(tmp_path, pid=7), kept.attach(tmp_path)
        kept.pids.ended[7].set()
        while kept.released != [client.id]:
            await kept.sessions.changed.wait()
        assert [code for code, _ in kept.hung_up] == [Code.SHUTTING_DOWN]
        assert [session.client for session in kept.sessions.all()] == [other]


async def test_a_process_is_not_watched_any_longer_than_its_session(tmp_path: Path) -> None:
    async with book() as kept:
        kept.pids.ended[7] = anyio.Event()
        client = kept.attach(tmp_path, pid=7)
        await anyio.sleep(1)
        assert kept.pids.watched == [7]
        kept.sessions.end(client.id)
        await anyio.sleep(1)
        assert kept.pids.watched == []


async def test_a_process_that_cannot_be_seen_from_here_ends_nothing(tmp_path: Path) -> None:
    async with book() as kept:
        kept.attach(tmp_path, pid=8)
        await anyio.sleep(1)
        assert kept.sessions.attached == 1


@pytest.mark.parametrize(("attached", "seconds"), [(True, ATTACHED_SECONDS), (False, KEPT_SECONDS)])
async def test_a_silent_session_ends(tmp_path: Path, attached: bool, seconds: float) -> None:
    async with book() as kept:
        client = kept.attach(tmp_path) if attached else kept.sessions.keep(Caller(str(tmp_path)))
        await anyio.sleep(seconds - 1)
        with kept.sessions.using(client):
            await anyio.sleep(2 * seconds)
        await anyio.sleep(seconds - 1)
        assert kept.released == []
        await anyio.sleep(2)
        assert kept.released == [client.id]
        assert len(kept.hung_up) == attached


async def test_a_call_of_a_session_that_has_ended_is_harmless(tmp_path: Path) -> None:
    async with book() as kept:
        client = kept.attach(tmp_path)
        with kept.sessions.using(client):
            kept.sessions.end(client.id)
        with kept.sessions.using(client):
            assert kept.sessions.calls == 0


async def test_a_conversation_has_one_session_per_workspace(tmp_path: Path) -> None:
    for name in ("one/.git", "one/deep", "two"):
        (tmp_path / name).mkdir(parents=True)
    async with book() as kept:
        first = kept.sessions.keep(Caller(str(tmp_path / "one"), "pi", "7"))
        deeper = kept.sessions.keep(Caller(str(tmp_path / "one/deep"), "pi", "7"))
        assert (first.id, first.root) == (deeper.id, deeper.root)
        assert deeper.cwd == str(tmp_path / "one/deep")
        moved = kept.sessions.keep(Caller(str(tmp_path / "one"), "pi", "7", environment=(("VIRTUAL_ENV", "/v"),)))
        assert (moved.id, moved.environment) == (first.id, (("VIRTUAL_ENV", "/v"),))
        other = kept.sessions.keep(Caller(str(tmp_path / "two"), "pi", "7"))
        assert other.root == str(tmp_path / "two")
        kept.sessions.keep(Caller(str(tmp_path / "two"), "opencode", "7"))
        kept.sessions.end_conversation("pi", "7")
        assert kept.released == [first.id, other.id]
        assert len(kept.sessions.all()) == 1


@pytest.mark.proves("T26")
async def test_sessions_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)
    async with book() as kept:
        kept.attach(tmp_path)
        kept.attach(tmp_path)
        with pytest.raises(Unavailable) as overloaded:
            kept.attach(tmp_path)
        assert overloaded.value.code is Code.OVERLOADED


@pytest.mark.proves("T26")
async def test_a_conversation_that_is_silent_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 3)
    async with book() as kept:
        attached = kept.attach(tmp_path)
        first = kept.sessions.keep(Caller(str(tmp_path), "pi", "1"))
        await anyio.sleep(1)
        second = kept.sessions.keep(Caller(str(tmp_path), "pi", "2"))
        with kept.sessions.using(first):
            third = kept.sessions.keep(Caller(str(tmp_path), "pi", "3"))
            assert kept.released == [second.id]
        assert [session.client.id for session in kept.sessions.all()] == [attached.id, first.id, third.id]


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        pytest.param(Caller("relative"), Code.INVALID_INPUT, id="relative cwd"),
        pytest.param(Caller("/", root="relative"), Code.INVALID_INPUT, id="relative root"),
        pytest.param(Caller("/", root="/no/such/folder"), Code.ROOT_GONE, id="no folder"),
    ],
)
async def test_an_impossible_folder_is_refused(caller: Caller, code: Code) -> None:
    async with book() as kept:
        with pytest.raises(Refused) as refused:
            kept.sessions.keep(caller)
        assert refused.value.code is code


def test_the_workspace_is_the_worktree_around_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("home/.git", "home/project/.git", "home/project/src", "home/loose/src"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert top_of(f"{tmp_path}/home/project/src") == f"{tmp_path}/home/project"
    assert top_of(f"{tmp_path}/home/loose/src") == f"{tmp_path}/home/loose/src"
    assert top_of("/") == "/"
