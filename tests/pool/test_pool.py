"""The pool at work, in virtual time."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.client.session import MAX_RELAYED, Session
from pilotfish.config.places import user_places
from pilotfish.config.schema import PoolSettings
from pilotfish.daemon.main import settings_of
from pilotfish.errors import Code, Failure, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.pool import pool as pool_module
from pilotfish.pool.plan import (
    LONGEST_REST,
    Broken,
    Key,
    Limits,
    Missing,
    Rested,
    Retire,
    Running,
    Slot,
    Starting,
    Stopping,
    Why,
    upkeep,
)
from pilotfish.pool.pool import Pool
from pilotfish.servers.inputs import InputEvidence, input_evidence
from pilotfish.servers.spec import Inputs, Relay
from support.servers.pools import KEY, FakeVitals, hover, pool_on, recipe
from support.servers.script import SILENCE, Script
from support.servers.scripted import Scenario, ScriptedServer
from support.servers.sessions import FILE, options

pytestmark = pytest.mark.anyio


def working(script: Script) -> None:
    script.capabilities = {"hoverProvider": True, "textDocumentSync": 2}
    script.ignore("textDocument/didOpen", "textDocument/didChange")
    script.on("textDocument/hover", lambda params: "fine")


def mute(script: Script) -> None:
    working(script)
    script.on("textDocument/hover", lambda params: SILENCE)


def slow_to_start(script: Script) -> None:
    """Answers initialize only when the test replies."""
    working(script)
    script.on("initialize", lambda params: SILENCE)


def dying_at_start(script: Script) -> None:
    assert isinstance(script, ScriptedServer)
    script.stderr = ("cannot find module",)
    script.on("initialize", lambda params: script.leave(1) or SILENCE)


def initialized(server: ScriptedServer) -> None:
    (request,) = server.received
    assert request.id is not None
    server.reply(request.id, {"capabilities": server.capabilities})


def stopped_for(pool: Pool, key: Key) -> Why:
    slot = pool.entries()[key].slot
    assert isinstance(slot, Rested)
    return slot.why


# --- Sharing ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("POOL-1")
async def test_a_hundred_requests_for_a_cold_server_make_one_start() -> None:
    answers: list[bytes] = []
    async with pool_on(working) as (pool, servers), anyio.create_task_group() as tasks:

        async def ask(number: int) -> None:
            answers.append(await pool.use(recipe(), hover, lease=str(number)))

        for number in range(100):
            tasks.start_soon(ask, number)
    assert answers == [b'"fine"'] * 100
    assert len(servers) == 1
    assert pool.counters.starts == {"scripted": 1}


@pytest.mark.proves("POOL-1", "POOL-3")
async def test_cancelled_requests_do_not_harm_the_start_that_others_share() -> None:
    answers: list[bytes] = []
    async with pool_on(slow_to_start) as (pool, servers), anyio.create_task_group() as tasks:

        async def ask(patience: float) -> None:
            with anyio.move_on_after(patience):
                answers.append(await pool.use(recipe(), hover, lease="one"))

        for number in range(50):
            tasks.start_soon(ask, 1.0 + number / 100)
            tasks.start_soon(ask, 60.0)
        await anyio.sleep(3)
        initialized(servers[0])
    assert len(answers) == 50
    assert len(servers) == 1


@pytest.mark.proves("POOL-1")
async def test_the_start_goes_on_when_everyone_who_asked_has_left() -> None:
    async with pool_on(slow_to_start) as (pool, servers):
        with anyio.move_on_after(1):
            await pool.use(recipe(), hover, lease="one")
        assert isinstance(pool.entries()[KEY].slot, Starting)
        initialized(servers[0])
        assert await pool.use(recipe(), hover, lease="two") == b'"fine"'
    assert len(servers) == 1


@pytest.mark.proves("POOL-6")
async def test_keys_of_another_root_or_configuration_have_servers_of_their_own() -> None:
    other_root = Key("scripted", AbsPath("/other"))
    other_config = Key("scripted", AbsPath("/w"), "changed")
    async with pool_on(working) as (pool, servers):
        for key in (KEY, other_root, other_config, KEY):
            await pool.use(recipe(key), hover, lease=key.config)
        assert len(servers) == 3
        assert str(other_root) == "scripted::/other"


# --- Failing ----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("F6", "POOL-2", "C43")
async def test_a_crash_with_fifty_pending_is_followed_by_one_restart_that_answers_them_all() -> None:
    answers: list[bytes] = []
    crashed_at = 0.0
    async with pool_on(mute, working) as (pool, servers), anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append(await pool.use(recipe(), hover, lease="one"))

        async def first_answer(session: Session) -> None:
            session.sync(FILE, "python", "x = 1\n")

        await pool.use(recipe(), first_answer, lease="one")
        for _ in range(50):
            tasks.start_soon(ask)
        await servers[0].until("textDocument/hover", 50)
        crashed_at = anyio.current_time()
        servers[0].leave(-11)
        await servers_started(servers, 2)
    assert answers == [b'"fine"'] * 50
    assert len(servers) == 2
    assert pool.counters.crashes() == {"scripted": 1}
    assert anyio.current_time() - crashed_at < 3


async def broken(pool: Pool) -> None:
    with anyio.fail_after(5):
        while not isinstance(pool.entries()[KEY].slot, Broken):
            await pool.entries()[KEY].changed.wait()


async def servers_started(servers: list[ScriptedServer], count: int) -> None:
    with anyio.fail_after(5):
        while len(servers) < count:
            await anyio.sleep(0.01)


@pytest.mark.proves("POOL-7", "C42")
async def test_a_restart_opens_the_documents_again_and_forgets_the_old_diagnostics() -> None:
    async with pool_on(working) as (pool, servers):
        await pool.use(recipe(), hover, lease="one")
        servers[0].publish("file:///w/a.py", ["old"])

        async def told(session: Session) -> None:
            while not session.reports.files_with_items():
                await session.changed.wait()

        await pool.use(recipe(), told, lease="one")
        servers[0].leave(1)
        await broken(pool)

        async def look(session: Session) -> tuple[AbsPath, ...]:
            assert session.reports.files_with_items() == ()
            return session.documents.paths

        assert await pool.use(recipe(), look, lease="one") == (FILE,)
        opened = await servers[1].until("textDocument/didOpen")
        assert opened.params["textDocument"]["text"] == "x = 1\n"


@pytest.mark.proves("POOL-2", "F2")
async def test_a_failed_start_is_told_to_all_who_shared_it_and_then_backs_off() -> None:
    failures: list[Failure] = []
    async with pool_on(dying_at_start) as (pool, servers):

        async def ask() -> None:
            try:
                await pool.use(recipe(), hover, lease="one")
            except Failure as failure:
                failures.append(failure)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
        assert {failure.code for failure in failures} == {Code.SERVER_START_FAILED}
        assert failures[0].scene.stderr == ("cannot find module",)
        failed_at = anyio.current_time()
        with pytest.raises(Unavailable) as refused:
            await pool.use(recipe(), hover, lease="one")
        assert refused.value.retry_at == pytest.approx(failed_at + 5)
        assert len(servers) == 1
        await anyio.sleep(5)
        with pytest.raises(ServerFailed):
            await pool.use(recipe(), hover, lease="one")
        broken = pool.entries()[KEY].slot
        assert isinstance(broken, Broken)
        assert broken.attempts == 2
        assert len(servers) == 2


@pytest.mark.proves("POOL-2")
async def test_never_means_that_a_broken_server_stays_broken() -> None:
    async with pool_on(dying_at_start, working) as (pool, servers):
        for _ in range(2):
            with pytest.raises(ServerFailed):
                await pool.use(recipe(), hover, lease="one", restart="never")
            await anyio.sleep(1000)
        assert len(servers) == 1


@pytest.mark.proves("POOL-2", "CFG-10")
async def test_forgiving_a_key_lets_it_start_at_once() -> None:
    async with pool_on(dying_at_start, working) as (pool, servers):
        with pytest.raises(ServerFailed):
            await pool.use(recipe(), hover, lease="one")
        pool.forgive(KEY)
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'
        assert len(servers) == 2


@pytest.mark.proves("CFG-10", "F80")
async def test_a_client_that_comes_with_another_configuration_leaves_the_old_server_which_is_stopped() -> None:
    old, new = Key("scripted", AbsPath("/w"), "old"), Key("scripted", AbsPath("/w"), "new")
    async with pool_on(working) as (pool, servers):
        await pool.use(recipe(old), hover, lease="one")
        await pool.use(recipe(old), hover, lease="two")
        await pool.use(recipe(new), hover, lease="one")
        assert isinstance(pool.entries()[old].slot, Running)
        await pool.use(recipe(new), hover, lease="two")
        await anyio.sleep(10)
        assert old not in pool.entries(), "its configuration does not come back"
        assert isinstance(pool.entries()[new].slot, Running)
        assert servers[0].gone


@pytest.mark.proves("CFG-10", "F80")
async def test_a_server_whose_configuration_has_changed_answers_what_it_was_asked_and_ends() -> None:
    async with pool_on(mute, working) as (pool, servers), anyio.create_task_group() as tasks:

        async def ask() -> None:
            assert await pool.use(recipe(), hover, lease="one") == b'"late"'

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        pool.leave(lambda key: key == KEY)
        await anyio.wait_all_tasks_blocked()
        assert isinstance(pool.entries()[KEY].slot, Running)
        (request,) = [message for message in servers[0].received if message.method == "textDocument/hover"]
        assert request.id is not None
        servers[0].reply(request.id, "late")
        await anyio.sleep(10)
        assert servers[0].gone
        assert KEY not in pool.entries()


@pytest.mark.proves("CFG-10")
async def test_a_server_that_was_starting_when_its_configuration_changed_does_not_stay() -> None:
    async with pool_on(slow_to_start) as (pool, servers):
        with anyio.move_on_after(1):
            await pool.use(recipe(), hover, lease="one")
        pool.leave(lambda key: key == KEY)
        initialized(servers[0])
        await anyio.sleep(10)
        assert servers[0].gone
        assert KEY not in pool.entries()


def read_by(path: Path) -> Callable[[], InputEvidence | None]:
    place = AbsPath(str(path.parent))
    return lambda: input_evidence(Inputs((path.name,)), place, place)


@pytest.mark.proves("F96")
async def test_a_server_whose_inputs_have_changed_is_started_anew_with_the_documents_it_had(tmp_path: Path) -> None:
    steering = tmp_path / "config.json"
    steering.write_text("one")
    inputs = read_by(steering)
    renewed = replace(recipe(), options=lambda: options(inputs=inputs()))
    async with pool_on(working) as (pool, servers):
        await pool.use(renewed, hover, lease="one")
        await pool.use(renewed, hover, lease="one")
        assert len(servers) == 1
        steering.write_text("two")
        await pool.use(renewed, hover, lease="two")
        assert len(servers) == 2
        assert servers[0].gone
        assert [message.method for message in servers[1].received].count("textDocument/didOpen") == 1
        assert not isinstance(pool.entries()[KEY].slot, Broken)


@pytest.mark.proves("F96", "POOL-2")
async def test_what_was_under_way_at_a_server_that_is_replaced_is_done_on_the_next_one(tmp_path: Path) -> None:
    steering = tmp_path / "config.json"
    steering.write_text("one")
    inputs = read_by(steering)
    renewed = replace(recipe(), options=lambda: options(inputs=inputs()))
    answers: list[bytes] = []

    async def ask(lease: str) -> None:
        answers.append(await pool.use(renewed, hover, lease=lease))

    async with pool_on(mute, working) as (pool, servers), anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "one")
        await anyio.sleep(1)
        steering.write_text("two")
        tasks.start_soon(ask, "two")
        await anyio.sleep(9)
        assert answers == [b'"fine"'] * 2
        assert len(servers) == 2


@pytest.mark.proves("F1", "REG-5")
async def test_a_missing_program_is_looked_for_again_only_when_something_changed() -> None:
    looked: list[int] = []

    def nowhere() -> None:
        looked.append(1)
        raise Unavailable(Code.SERVER_MISSING, "not installed")

    async with pool_on(working) as (pool, _):
        for fingerprint, times in (("p1", 1), ("p1", 1), ("p2", 2)):
            with pytest.raises(Unavailable) as caught:
                await pool.use(recipe(fingerprint=fingerprint, make=nowhere), hover, lease="one")
            assert caught.value.code is Code.SERVER_MISSING
            assert len(looked) == times
            await anyio.sleep(1000)
        assert await pool.use(recipe(fingerprint="p3"), hover, lease="one") == b'"fine"'


@pytest.mark.proves("F90")
async def test_a_fault_of_ours_in_one_session_leaves_the_others_working() -> None:
    def faulty() -> None:
        raise RuntimeError("ours")

    async with pool_on(working) as (pool, _):
        with pytest.raises(Failure) as caught:
            await pool.use(recipe(Key("other", AbsPath("/w")), make=faulty), hover, lease="one")
        assert caught.value.code is Code.BUG
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'


@pytest.mark.proves("F4", "P4")
async def test_a_start_that_hangs_ends_at_its_limit_with_nothing_left() -> None:
    async with pool_on(slow_to_start) as (pool, servers):
        with pytest.raises(ServerFailed) as caught:
            await pool.use(recipe(initialize_seconds=15), hover, lease="one")
        assert caught.value.code is Code.INIT_TIMEOUT
        assert anyio.current_time() >= 15
        assert servers[0].gone


# --- Time -------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("POOL-6", "F79")
async def test_an_idle_server_is_stopped_and_comes_back_on_use_with_its_documents() -> None:
    async with pool_on(working, limits=Limits(idle_seconds=100)) as (pool, servers):
        await pool.use(recipe(), hover, lease="one")
        await anyio.sleep(99)
        assert isinstance(pool.entries()[KEY].slot, Running)
        await anyio.sleep(2)
        assert stopped_for(pool, KEY) is Why.IDLE
        assert servers[0].received[-1].method == "exit"
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'
        assert len(servers) == 2


@pytest.mark.proves("POOL-6")
async def test_after_the_last_call_of_a_command_line_a_server_stays_for_idle_minutes(tmp_path: Path) -> None:
    """As the daemon is configured by default: a command has a client session of its own, which ends with it."""
    environment = {"HOME": str(tmp_path)}
    limits = settings_of(user_places(environment), environment).limits
    minutes = PoolSettings().idle_minutes
    async with pool_on(working, limits=limits, vitals=FakeVitals(memory={4242: 1.0})) as (pool, _):
        for command in ("first", "last"):
            await anyio.sleep(60)
            await pool.use(recipe(), hover, lease=command)
            pool.release(command)
        await anyio.sleep(minutes * 60 - 1)
        assert isinstance(pool.entries()[KEY].slot, Running)
        await anyio.sleep(2)
        assert stopped_for(pool, KEY) is Why.UNUSED


@pytest.mark.proves("POOL-6")
async def test_a_server_that_nobody_uses_any_more_goes_sooner() -> None:
    async with pool_on(working, limits=Limits(idle_seconds=1000, unused_seconds=60)) as (pool, _):
        await pool.use(recipe(), hover, lease="one")
        await pool.use(recipe(), hover, lease="two")
        pool.release("one")
        await anyio.sleep(100)
        assert isinstance(pool.entries()[KEY].slot, Running)
        pool.release("two")
        await anyio.sleep(1)
        assert stopped_for(pool, KEY) is Why.UNUSED


@pytest.mark.proves("POOL-6", "F78")
async def test_the_memory_budget_stops_the_least_recently_used_but_never_one_that_answers() -> None:
    vitals = FakeVitals(memory={4242: 800.0})
    key = Key("other", AbsPath("/w"))
    async with pool_on(working, limits=Limits(memory_mib=1000), vitals=vitals) as (pool, _):
        await pool.use(recipe(), hover, lease="one")

        async def long_work(session: Session) -> None:
            await anyio.sleep(100)
            assert session.failure is None

        await pool.use(recipe(key), long_work, lease="one")
        assert stopped_for(pool, KEY) is Why.MEMORY
        assert isinstance(pool.entries()[key].slot, Running)


@pytest.mark.proves("POOL-6", "F78")
async def test_a_server_that_does_not_fit_beside_one_that_answers_waits_for_it_and_takes_its_place() -> None:
    vitals = FakeVitals(memory={4242: 800.0})
    key = Key(KEY.server, AbsPath("/other"))
    async with pool_on(working, limits=Limits(memory_mib=1000), vitals=vitals) as (pool, servers):
        await pool.use(recipe(), hover, lease="one")
        await anyio.sleep(1)
        ended: list[str] = []

        async def long_work(session: Session) -> None:
            await anyio.sleep(20)
            assert session.failure is None
            ended.append("first")

        async def other() -> None:
            assert await pool.use(recipe(key), hover, lease="two") == b'"fine"'
            ended.append("second")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: pool.use(recipe(), long_work, lease="one"))
            await anyio.sleep(1)
            tasks.start_soon(other)
            await anyio.sleep(1)
            assert len(servers) == 1
        assert ended == ["first", "second"]
        assert stopped_for(pool, KEY) is Why.CROWDED


@pytest.mark.proves("POOL-6", "F78")
async def test_a_burst_of_cold_starts_stays_within_the_memory_of_all() -> None:
    """Ten roots at once, a budget for four, and nobody knows before how large a server is: all are answered."""
    vitals = FakeVitals(memory={4242: 100.0})
    most = 0
    async with pool_on(working, limits=Limits(memory_mib=450), vitals=vitals) as (pool, _):

        async def work(session: Session) -> bytes:
            nonlocal most
            slots = [entry.slot for entry in pool.entries().values()]
            most = max(most, sum(isinstance(slot, Starting | Running | Stopping) for slot in slots))
            await anyio.sleep(1)
            return await hover(session)

        answers: list[bytes] = []

        async def agent(number: int) -> None:
            key = Key(KEY.server, AbsPath(f"/{number}"))
            answers.append(await pool.use(recipe(key), work, lease=str(number)))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(agent, number)
    assert answers == [b'"fine"'] * 10
    assert most == 4


@pytest.mark.proves("F78")
async def test_a_full_pool_stops_an_idle_server_to_make_room() -> None:
    key = Key("other", AbsPath("/w"))
    async with pool_on(working, limits=Limits(servers=1)) as (pool, _):
        await pool.use(recipe(), hover, lease="one")
        assert await pool.use(recipe(key), hover, lease="one") == b'"fine"'
        assert stopped_for(pool, KEY) is Why.CROWDED


@pytest.mark.proves("F18")
async def test_a_server_that_neither_speaks_nor_works_is_hung_inside_the_time_limit_and_replaced() -> None:
    async with pool_on(working, working) as (pool, servers):
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'
        servers[0].on("textDocument/hover", lambda params: SILENCE)
        asked_at = anyio.current_time()
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'
        assert anyio.current_time() - asked_at < 10
        assert servers[0].gone
        assert pool.counters.failures["scripted", Code.SERVER_HUNG] == 1
        assert len(servers) == 2


@pytest.mark.proves("F19")
@pytest.mark.parametrize("sign", ["processor time", "progress", "messages"])
async def test_a_server_that_is_only_slow_is_left_to_work(sign: str) -> None:
    vitals = FakeVitals()
    async with pool_on(mute, vitals=vitals) as (pool, servers), anyio.create_task_group() as tasks:

        async def work() -> None:
            server = await started(servers)
            for second in range(60):
                await anyio.sleep(1)
                if sign == "processor time":
                    vitals.cpu[server.pid] = float(second)
                elif sign == "progress":
                    server.notify("$/progress", {"token": 1, "value": {"kind": "begin", "title": "indexing"}})
                else:
                    server.notify("window/logMessage", {"type": 4, "message": "still here"})

        tasks.start_soon(work)
        with pytest.raises(ServerFailed) as caught:
            await pool.use(recipe(request_seconds=50), hover, lease="one")
        assert caught.value.code is Code.REQUEST_TIMEOUT
        assert not servers[0].gone
        tasks.cancel_scope.cancel()


async def started(servers: list[ScriptedServer]) -> ScriptedServer:
    await servers_started(servers, 1)
    return servers[0]


@pytest.mark.proves("F86", "C41", "P26")
async def test_nothing_looks_at_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    def stepped() -> float:
        raise AssertionError("the wall clock was read")

    monkeypatch.setattr("time.time", stepped)
    async with pool_on(working, limits=Limits(idle_seconds=100)) as (pool, _):
        await pool.use(recipe(), hover, lease="one")
        await anyio.sleep(101)
        assert stopped_for(pool, KEY) is Why.IDLE


async def test_the_monitor_sleeps_while_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def counted(slots: Mapping[Key, Slot], limits: Limits, now: float) -> tuple[Retire, ...]:
        looks.append(now)
        return upkeep(slots, limits, now)

    monkeypatch.setattr(pool_module, "upkeep", counted)
    async with pool_on(working, limits=Limits(idle_seconds=10_000)) as (pool, _):
        for _ in range(1000):
            await pool.use(recipe(), hover, lease="one")
        await anyio.sleep(9_000)
    assert len(looks) < 10


# --- Forgetting -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("POOL-6", "P31", "A16.1")
async def test_two_hundred_roots_that_are_used_once_and_left_do_not_pile_up() -> None:
    most = 0
    async with pool_on(working, limits=Limits(unused_seconds=60)) as (pool, _):
        for number in range(200):
            lease = str(number)
            await pool.use(recipe(Key("scripted", AbsPath(f"/w{number}"))), hover, lease=lease)
            pool.release(lease)
            await anyio.sleep(15)
            most = max(most, len(pool.entries()))
        assert most <= 9
        await anyio.sleep(200)
        assert not pool.entries()


@pytest.mark.proves("POOL-6")
async def test_a_stopped_server_is_remembered_for_an_hour_while_its_client_is_there() -> None:
    async with pool_on(working, limits=Limits(idle_seconds=100)) as (pool, servers):
        await pool.use(recipe(), hover, lease="one")
        await anyio.sleep(100 + LONGEST_REST - 10)
        documents = pool.entries()[KEY].documents
        assert documents is not None
        assert documents.paths == (FILE,)
        await anyio.sleep(20)
        assert KEY not in pool.entries()
        assert await pool.use(recipe(), hover, lease="one") == b'"fine"'
        assert len(servers) == 2


@pytest.mark.proves("POOL-6")
async def test_a_failure_is_remembered_while_the_client_is_there_that_it_was_reported_to() -> None:
    async with pool_on(dying_at_start) as (pool, _):
        with pytest.raises(ServerFailed):
            await pool.use(recipe(), hover, lease="one", restart="never")
        await anyio.sleep(10_000)
        assert isinstance(pool.entries()[KEY].slot, Broken)
        pool.release("one")
        await anyio.sleep(1)
        assert KEY not in pool.entries()


async def test_a_missing_program_is_forgotten_once_nobody_asks_for_it() -> None:
    def nowhere() -> None:
        raise Unavailable(Code.SERVER_MISSING, "not installed")

    async with pool_on(working, limits=Limits(unused_seconds=60)) as (pool, _):
        for lease in ("one", "two"):
            with pytest.raises(Unavailable):
                await pool.use(recipe(make=nowhere), hover, lease=lease)
        pool.release("one")
        await anyio.sleep(100)
        assert isinstance(pool.entries()[KEY].slot, Missing)
        pool.release("two")
        await anyio.sleep(1)
        assert KEY not in pool.entries()


async def test_whoever_watches_the_pool_hears_of_what_it_forgets() -> None:
    async with pool_on(working, limits=Limits(unused_seconds=60)) as (pool, _):
        await pool.use(recipe(), hover, lease="one")
        pool.release("one")
        seen: list[bool] = []
        while not seen or seen[-1]:
            await pool.changed.wait()
            seen.append(KEY in pool.entries())
        assert anyio.current_time() >= 120


# --- Stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("POOL-4", "P3", "A16.7")
async def test_sixteen_servers_that_misbehave_each_in_its_own_way_stop_within_five_seconds() -> None:
    def misbehaving(number: int) -> Scenario:
        def scenario(script: Script) -> None:
            assert isinstance(script, ScriptedServer)
            working(script)
            if number & 1:
                script.on("shutdown", lambda params: SILENCE)
            if number & 2:
                script.on("exit", lambda params: None)
            if number & 4:
                script.on_terminate = lambda: None
            if number & 8:
                script.on("shutdown", lambda params: script.leave(3) or SILENCE)

        return scenario

    scenarios = [misbehaving(number) for number in range(16)]
    async with pool_on(*scenarios) as (pool, servers):
        for number in range(16):
            await pool.use(recipe(Key(f"s{number}", AbsPath("/w"))), hover, lease="one")
        stopping_at = anyio.current_time()
    assert anyio.current_time() - stopping_at <= 5
    assert all(server.gone for server in servers)
    assert len(servers) == 16


@pytest.mark.proves("POOL-4", "POOL-5")
async def test_a_pool_that_is_cancelled_from_outside_ends_as_soon_as_its_servers_have() -> None:
    started: list[ScriptedServer] = []
    began = anyio.current_time()
    with anyio.CancelScope() as outer:
        async with pool_on(working) as (pool, servers):
            await pool.use(recipe(), hover, lease="one")
            started += servers
            outer.cancel()
            await anyio.sleep_forever()
    assert outer.cancelled_caught
    assert [[message.method for message in server.received][-1] for server in started] == ["exit"]
    assert anyio.current_time() == began


@pytest.mark.proves("F81")
async def test_a_server_that_is_retired_under_a_question_is_not_started_again_for_it() -> None:
    async with pool_on(mute) as (pool, servers), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(Failure):
                await pool.use(recipe(), hover, lease="one")

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        pool.retire(lambda root: root == KEY.root)
    assert len(servers) == 1


# --- Questions of one server for another ----------------------------------------------------------------------------

HOST = Key("host", KEY.root)
RELAY = Relay(("host",), "ask", "answer", "run", (), "nobody answers")
ABOUT: dict[str, object] = {"file": FILE}


def hosting(script: Script) -> None:
    working(script)
    script.capabilities["executeCommandProvider"] = {"commands": ["run"]}
    script.on("workspace/executeCommand", lambda params: {"body": params["arguments"]})


async def relayed(guest: ScriptedServer, *, arguments: object = None) -> object:
    guest.ignore("answer")
    guest.notify("ask", [[7, "info", arguments]])
    return (await guest.until("answer")).params


@pytest.mark.proves("REG-2")
async def test_what_a_server_asks_another_one_is_relayed() -> None:
    async with pool_on(hosting, working) as (pool, servers):
        await pool.use(recipe(HOST), hover, lease="a")
        await pool.use(recipe(relay=RELAY), hover, lease="a")
        assert await relayed(servers[1], arguments=ABOUT) == [[7, ["info", ABOUT]]]


async def test_a_server_without_the_other_one_gets_an_empty_answer_and_goes_on() -> None:
    async with pool_on(working) as (pool, servers):
        await pool.use(recipe(relay=RELAY), hover, lease="a")
        servers[0].notify("ask", [[]])
        servers[0].notify("ask", 3)
        assert await relayed(servers[0], arguments=ABOUT) == [[7, None]]


async def test_a_question_about_a_file_that_is_known_without_being_open_is_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other server checks files of its project without opening them."""
    monkeypatch.setattr(pool_module, "OPENING_SECONDS", math.inf)
    unopened = {"file": f"{FILE}.vue"}
    async with pool_on(hosting, working) as (pool, servers):
        await pool.use(recipe(HOST), hover, lease="a")
        await pool.use(recipe(relay=RELAY), hover, lease="a")
        assert await relayed(servers[1], arguments=unopened) == [[7, ["info", unopened]]]


async def test_a_question_waits_for_the_start_of_the_other_server_and_for_the_file_there() -> None:
    def slow(script: Script) -> None:
        hosting(script)
        script.on("initialize", lambda params: SILENCE)
        script.on("workspace/executeCommand", answer)

    def answer(params: Mapping[str, object]) -> object:
        is_open = any(one.method == "textDocument/didOpen" for one in servers[1].received)
        return {"body": params["arguments"]} if is_open else {"success": False}

    async with pool_on(working, slow) as (pool, servers), anyio.create_task_group() as tasks:
        await pool.use(recipe(relay=RELAY), hover, lease="a")
        tasks.start_soon(partial(pool.use, recipe(HOST), hover, lease="a"))
        await anyio.wait_all_tasks_blocked()
        servers[0].ignore("answer")
        servers[0].notify("ask", [[7, "info", ABOUT]])
        await anyio.wait_all_tasks_blocked()
        assert not [one for one in servers[1].received if one.method == "workspace/executeCommand"]
        servers[1].reply((await servers[1].until("initialize")).id or 0, {"capabilities": servers[1].capabilities})
        assert (await servers[0].until("answer")).params == [[7, ["info", ABOUT]]]


@pytest.mark.parametrize("answer", [SILENCE, 3, {}], ids=["silence", "no answer at all", "no body"])
async def test_a_question_without_an_answer_is_answered_with_nothing(answer: object) -> None:
    def useless(script: Script) -> None:
        hosting(script)
        script.on("workspace/executeCommand", lambda params: answer)

    async with pool_on(useless, working) as (pool, servers):
        await pool.use(recipe(HOST), hover, lease="a")
        await pool.use(recipe(relay=RELAY, request_seconds=1.0), hover, lease="a")
        assert await relayed(servers[1], arguments={"file": FILE}) == [[7, None]]


async def test_more_questions_than_wait_at_once_are_answered_with_nothing() -> None:
    def silent(script: Script) -> None:
        hosting(script)
        script.on("workspace/executeCommand", lambda params: SILENCE)

    async with pool_on(silent, working) as (pool, servers):
        await pool.use(recipe(HOST), hover, lease="a")
        await pool.use(recipe(relay=RELAY), hover, lease="a")
        servers[1].ignore("answer")
        servers[1].notify("ask", [[number, "info", None] for number in range(MAX_RELAYED + 2)])
        assert (await servers[1].until("answer")).params == [[MAX_RELAYED, None]]
        await anyio.wait_all_tasks_blocked()
        asked = [one for one in servers[0].received if one.method == "workspace/executeCommand"]
        assert len(asked) == MAX_RELAYED
