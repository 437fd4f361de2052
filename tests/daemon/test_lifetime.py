"""How long the daemon lives, in virtual time."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from pilotfish.daemon.lifetime import Lifetime, Load, departure
from pilotfish.ipc.client_sessions import KEPT_SECONDS, Caller, ClientSessions
from support.daemon.desks import Pids

pytestmark = pytest.mark.anyio

IDLE = 600.0


@pytest.mark.parametrize(
    ("load", "superseded", "leaves_at"),
    [
        pytest.param(Load(0, 0, 0), False, 1600.0, id="alone"),
        pytest.param(Load(1, 0, 0), False, math.inf, id="a conversation is kept"),
        pytest.param(Load(1, 1, 0), False, math.inf, id="somebody is attached"),
        pytest.param(Load(1, 0, 1), False, math.inf, id="a call is under way"),
        pytest.param(Load(0, 0, 0, 1), False, math.inf, id="somebody may be about to say hello"),
        pytest.param(Load(0, 0, 0), True, -math.inf, id="superseded and alone"),
        pytest.param(Load(0, 0, 0, 1), True, -math.inf, id="superseded, and somebody may be about to say hello"),
        pytest.param(Load(3, 0, 0), True, -math.inf, id="superseded with kept conversations"),
        pytest.param(Load(3, 1, 0), True, math.inf, id="superseded with somebody attached"),
        pytest.param(Load(3, 0, 1), True, math.inf, id="superseded with a call under way"),
    ],
)
@pytest.mark.proves("F71", "F79")
def test_when_the_daemon_leaves(load: Load, superseded: bool, leaves_at: float) -> None:
    assert departure(load, superseded=superseded, alone_since=1000.0, idle_seconds=IDLE) == leaves_at


@asynccontextmanager
async def living() -> AsyncGenerator[tuple[Lifetime, ClientSessions]]:
    sessions = ClientSessions(lambda client: None, Pids().gone)
    life = Lifetime(sessions, IDLE, build=5)
    async with sessions.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(life.run)
        yield life, sessions
        tasks.cancel_scope.cancel()


async def test_a_daemon_that_nobody_calls_leaves() -> None:
    async with living() as (life, _):
        began = anyio.current_time()
        await life.ending.wait()
        assert (anyio.current_time() - began, life.why) == (IDLE, "idle")


async def test_the_time_alone_counts_from_the_end_of_the_last_session(tmp_path: Path) -> None:
    async with living() as (life, sessions):
        await anyio.sleep(IDLE - 1)
        client = sessions.attach(Caller(str(tmp_path)), lambda code, why: None)
        await anyio.sleep(10 * IDLE)
        assert not life.ending.is_set()
        sessions.end(client.id)
        ended = anyio.current_time()
        await life.ending.wait()
        assert anyio.current_time() - ended == IDLE


async def test_a_kept_conversation_keeps_the_daemon_until_it_has_been_silent_for_too_long(tmp_path: Path) -> None:
    async with living() as (life, sessions):
        sessions.keep(Caller(str(tmp_path), "pi", "7"))
        began = anyio.current_time()
        await life.ending.wait()
        assert anyio.current_time() - began == KEPT_SECONDS + IDLE


async def test_newer_code_ends_a_daemon_that_nobody_is_attached_to(tmp_path: Path) -> None:
    async with living() as (life, sessions):
        client = sessions.attach(Caller(str(tmp_path)), lambda code, why: None)
        assert [life.met(4), life.met(5), life.met(6), life.met(4)] == [True, True, True, True]
        sessions.end(client.id)
        await life.ending.wait()
        assert life.why == "replaced by newer code"
        assert not life.met(6)


@pytest.mark.proves("F69")
async def test_a_daemon_that_nobody_can_find_any_more_sends_its_callers_to_another() -> None:
    found = [True, False]
    life = Lifetime(ClientSessions(lambda client: None, Pids().gone), IDLE, build=5, can_be_found=lambda: found.pop(0))
    assert life.met(5)
    assert not life.ending.is_set()
    assert not life.met(5)
    assert life.ending.is_set()


async def test_it_ends_once(tmp_path: Path) -> None:
    async with living() as (life, _):
        life.stop("first")
        life.stop("second")
        assert life.why == "first"
