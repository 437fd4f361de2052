"""The plan, row by row."""

from math import inf

import pytest

from pilotfish.errors import Code, Failure, Scene, ServerFailed, Unavailable
from pilotfish.model import AbsPath
from pilotfish.pool.plan import (
    CRASH_LIMIT,
    CRASH_WINDOW,
    LONGEST_REST,
    UNKNOWN_MIB,
    Broken,
    Decision,
    Demand,
    Evict,
    Join,
    Key,
    Limits,
    Missing,
    Refuse,
    Rested,
    Retire,
    Running,
    Slot,
    Start,
    Starting,
    Stopping,
    Wait,
    WaitForRoom,
    Why,
    admission,
    forgettable,
    next_upkeep,
    of_process,
    setback,
    upkeep,
)

A, B, C = (Key(name, AbsPath("/w")) for name in "abc")
CRASH = ServerFailed(Code.SERVER_CRASHED, "a exited with code 1", scene=Scene(server="a", stderr=("boom",)))
GONE = Unavailable(Code.SERVER_MISSING, "a is not installed", scene=Scene(server="a"))
NOW = 1000.0


def decided(slot: Slot | None, demand: Demand | None = None, **others: Slot) -> Decision:
    slots = {Key(name, AbsPath("/w")): other for name, other in others.items()}
    if slot is not None:
        slots[A] = slot
    return admission(A, slots, demand or Demand(), Limits(servers=3), NOW)


BUSY = Running(0, 0, in_flight=1)


@pytest.mark.proves("POOL-1", "POOL-2")
@pytest.mark.parametrize(
    ("slot", "demand", "decision"),
    [
        pytest.param(None, Demand(), Start(), id="nothing yet → start"),
        pytest.param(Starting(NOW), Demand(), Join(), id="starting → share the start"),
        pytest.param(Running(0, 0), Demand(), Join(), id="running → share it"),
        pytest.param(BUSY, Demand(), Join(), id="running and busy → share it"),
        pytest.param(Stopping(Why.IDLE), Demand(), Wait(), id="being stopped → wait, then decide again"),
        pytest.param(Rested(Why.IDLE), Demand(), Start(), id="stopped for idleness → comes back on use"),
        pytest.param(Rested(Why.MEMORY), Demand(), Start(), id="stopped for memory → comes back on use"),
        pytest.param(Broken(CRASH, 1, NOW), Demand(), Start(), id="broken, its time has come → start"),
        pytest.param(
            Broken(CRASH, 1, NOW - 1, leases=2, witnesses=1),
            Demand("never"),
            Refuse(CRASH),
            id="broken, never restarted",
        ),
        pytest.param(
            Broken(CRASH, 1, NOW - 1, leases=2),
            Demand("never"),
            Start(),
            id="broken, and whoever saw it has left",
        ),
        pytest.param(Missing(GONE, "p1"), Demand(fingerprint="p1"), Refuse(GONE), id="missing, nothing changed"),
        pytest.param(Missing(GONE, "p1"), Demand(fingerprint="p2"), Start(), id="missing, PATH or config changed"),
    ],
)
def test_admission(slot: Slot | None, demand: Demand, decision: Decision) -> None:
    assert decided(slot, demand) == decision


@pytest.mark.proves("POOL-2")
def test_a_broken_server_is_refused_until_its_time_with_the_reason_and_the_time() -> None:
    refused = decided(Broken(CRASH, 2, NOW + 10))
    assert isinstance(refused, Refuse)
    failure = refused.failure
    assert isinstance(failure, Unavailable)
    assert (failure.code, failure.retry_at) == (Code.SERVER_CRASHED, NOW + 10)
    assert failure.message == "a exited with code 1; tried again in 10 s"
    assert failure.scene.stderr == ("boom",)


@pytest.mark.proves("F7", "C40", "C41", "P6")
def test_five_failures_in_the_window_open_the_circuit_until_it_has_passed() -> None:
    crashes = tuple(NOW - 100 + number for number in range(CRASH_LIMIT))
    refused = decided(Broken(CRASH, 1, NOW - 1, crashes))
    assert isinstance(refused, Refuse)
    assert isinstance(refused.failure, Unavailable)
    assert refused.failure.code is Code.CRASH_LOOP
    assert "failed 5 times" in refused.failure.message
    assert refused.failure.retry_at == crashes[0] + CRASH_WINDOW
    assert admission(A, {A: Broken(CRASH, 1, NOW, crashes)}, Demand(), Limits(), NOW + CRASH_WINDOW) == Start()


@pytest.mark.proves("F78", "POOL-6")
def test_a_full_pool_makes_room_by_the_least_recently_used_idle_one() -> None:
    assert decided(None, b=Running(0, 7), c=Running(0, 5), d=BUSY) == Evict(C)


@pytest.mark.proves("F78")
def test_a_full_pool_of_busy_servers_refuses_as_overloaded() -> None:
    refused = decided(None, b=BUSY, c=BUSY, d=Starting(0))
    assert isinstance(refused, Refuse)
    assert refused.failure.code is Code.OVERLOADED


def test_servers_at_rest_take_no_room() -> None:
    assert decided(None, b=Rested(Why.IDLE), c=Broken(CRASH, 1, 0), d=Missing(GONE, ""), e=BUSY, f=BUSY) == Start()


SMALL = Running(0, 5, memory_mib=100, proven=True)
ANSWERING = Running(0, 0, in_flight=1, memory_mib=100, proven=True)
GROWING = Running(0, 0, in_flight=1, memory_mib=10)


@pytest.mark.proves("POOL-6")
@pytest.mark.parametrize(
    ("slots", "decision"),
    [
        pytest.param([], Start(), id="nothing runs: one always may, however large"),
        pytest.param([SMALL], Start(), id="there is room"),
        pytest.param([ANSWERING, SMALL], Evict(Key("a", AbsPath("/1"))), id="an idle one makes room"),
        pytest.param([ANSWERING, ANSWERING], WaitForRoom(), id="all are answering"),
        pytest.param([GROWING, GROWING], WaitForRoom(), id="they will be as large as their like"),
        pytest.param([Starting(0), ANSWERING], WaitForRoom(), id="one is starting"),
        pytest.param([Stopping(Why.CROWDED), ANSWERING], WaitForRoom(), id="one is not gone yet"),
        pytest.param([Rested(Why.MEMORY), ANSWERING], Start(), id="one that rests has no memory"),
    ],
)
def test_a_server_is_started_only_where_its_like_fit_into_the_memory_of_all(
    slots: list[Slot], decision: Decision
) -> None:
    known = {Key("a", AbsPath(f"/{number}")): slot for number, slot in enumerate(slots)}
    limits = Limits(memory_mib=250)
    assert admission(Key("a", AbsPath("/new")), known, Demand(), limits, NOW, {"a": 100.0}) == decision
    # Of another server nothing is known, and none is stopped for a guess.
    assert admission(Key("b", AbsPath("/new")), known, Demand(), limits, NOW, {"a": 100.0}) == Start()


UNMEASURED = Running(0, 0, in_flight=1, memory_mib=10)
FORSAKEN = Running(0, 0, memory_mib=10)


@pytest.mark.proves("POOL-6")
@pytest.mark.parametrize(
    ("slots", "budget", "decision"),
    [
        pytest.param([], 250, Start(), id="the first one"),
        pytest.param([Starting(0)], 250, WaitForRoom(), id="another one is starting"),
        pytest.param([UNMEASURED], 250, WaitForRoom(), id="another one has not answered yet"),
        pytest.param([FORSAKEN], 250, Start(), id="another one that nobody waits for will not be measured"),
        pytest.param([SMALL], 250, Start(), id="another one is known"),
        pytest.param([Starting(0), UNMEASURED], 3 * UNKNOWN_MIB, Start(), id="there is room for all, however large"),
        pytest.param([Starting(0), UNMEASURED], 3 * UNKNOWN_MIB - 1, WaitForRoom(), id="not quite"),
        pytest.param([Starting(0)], None, Start(), id="no budget"),
    ],
)
def test_servers_of_unknown_size_start_one_at_a_time_where_they_may_not_fit(
    slots: list[Slot], budget: float | None, decision: Decision
) -> None:
    known = {Key("a", AbsPath(f"/{number}")): slot for number, slot in enumerate(slots)}
    limits = Limits(memory_mib=budget)
    assert admission(Key("a", AbsPath("/new")), known, Demand(), limits, NOW, {}) == decision


# --- Setbacks ---------------------------------------------------------------------------------------------------------


def again(before: Broken | None, *, healthy: bool = False, jitter: float = 0.0, now: float = NOW) -> Broken:
    return setback(before, CRASH, healthy=healthy, now=now, jitter=jitter)


@pytest.mark.proves("POOL-2")
def test_failed_starts_back_off_from_five_seconds_to_a_minute() -> None:
    broken: Broken | None = None
    delays: list[float] = []
    for _ in range(6):
        broken = again(broken)
        delays.append(broken.retry_at - NOW)
    assert delays == [5, 10, 20, 40, 60, 60]


@pytest.mark.proves("POOL-2")
@pytest.mark.parametrize(("jitter", "delay"), [(-1.0, 4.0), (0.0, 5.0), (1.0, 6.0)])
def test_the_delay_varies_by_a_fifth(jitter: float, delay: float) -> None:
    assert again(None, jitter=jitter).retry_at == pytest.approx(NOW + delay)


@pytest.mark.proves("POOL-2", "F6")
def test_a_server_that_worked_and_crashed_is_started_again_at_once() -> None:
    broken = again(Broken(CRASH, 4, 0, (NOW - 5,)), healthy=True)
    assert (broken.attempts, broken.retry_at) == (1, NOW)
    assert broken.crashes == (NOW - 5, NOW)


@pytest.mark.proves("C40")
def test_old_crashes_leave_the_window() -> None:
    assert again(Broken(CRASH, 1, 0, (NOW - CRASH_WINDOW, NOW - 1))).crashes == (NOW - 1, NOW)


def test_a_crash_loop_is_reached_even_if_each_start_gives_one_good_answer() -> None:
    broken: Broken | None = None
    for number in range(CRASH_LIMIT):
        broken = again(broken, healthy=True, now=NOW + number)
    assert broken is not None
    refused = admission(A, {A: broken}, Demand(), Limits(), NOW + CRASH_LIMIT)
    assert isinstance(refused, Refuse)
    assert isinstance(refused.failure, Failure)
    assert refused.failure.code is Code.CRASH_LOOP


# --- Upkeep -----------------------------------------------------------------------------------------------------------

LIMITS = Limits(idle_seconds=100, unused_seconds=10)


@pytest.mark.proves("POOL-6")
@pytest.mark.parametrize(
    ("slot", "retired"),
    [
        pytest.param(Running(0, NOW - 99, leases=1), None, id="used lately"),
        pytest.param(Running(0, NOW - 100, leases=1), Why.IDLE, id="idle"),
        pytest.param(Running(0, NOW - 500, in_flight=1, leases=1), None, id="never one that is answering"),
        pytest.param(Running(0, NOW - 9), None, id="nobody left, but only just"),
        pytest.param(Running(0, NOW - 10), Why.UNUSED, id="nobody left"),
        pytest.param(Starting(0), None, id="starting"),
        pytest.param(Broken(CRASH, 1, 0), None, id="broken"),
    ],
)
def test_idle_servers_are_retired(slot: Slot, retired: Why | None) -> None:
    assert upkeep({A: slot}, LIMITS, NOW) == (() if retired is None else (Retire(A, retired),))


@pytest.mark.proves("POOL-6", "T36")
def test_a_server_over_its_own_budget_is_retired_unless_it_is_answering() -> None:
    limits = Limits(memory_mib_per_server=100)
    slots: dict[Key, Slot] = {A: Running(0, NOW, memory_mib=101), B: Running(0, NOW, in_flight=1, memory_mib=900)}
    assert upkeep(slots, limits, NOW) == (Retire(A, Why.MEMORY),)


@pytest.mark.proves("POOL-6")
def test_the_least_recently_used_go_until_all_fit_the_budget() -> None:
    limits = Limits(memory_mib=1000)
    slots: dict[Key, Slot] = {
        A: Running(0, NOW - 1, memory_mib=400),
        B: Running(0, NOW - 5, memory_mib=400),
        C: Running(0, NOW - 9, in_flight=1, memory_mib=500),
    }
    assert upkeep(slots, limits, NOW) == (Retire(B, Why.MEMORY),)


@pytest.mark.proves("POOL-6")
def test_the_one_that_was_used_last_may_be_as_large_as_it_is() -> None:
    """Its project would be read anew for every question."""
    slots: dict[Key, Slot] = {A: Running(0, NOW - 1, memory_mib=5000), B: Running(0, NOW - 5, memory_mib=1)}
    assert upkeep(slots, Limits(memory_mib=1000), NOW) == (Retire(B, Why.MEMORY),)


def _taking_turns(key: Key, last_used: float, in_flight: int = 0) -> tuple[Key, Running]:
    return key, Running(0, last_used, in_flight, 1, 400, proven=True, process="shared")


@pytest.mark.proves("POOL-6")
@pytest.mark.parametrize(
    ("limits", "used", "retired"),
    [
        pytest.param(Limits(memory_mib=700), (NOW - 9, NOW - 8), (), id="counts once"),
        pytest.param(Limits(memory_mib=500), (NOW - 9, NOW - 8), (Retire(A, Why.MEMORY),), id="goes whole"),
        pytest.param(
            Limits(memory_mib=500), (NOW - 9, None), (Retire(C, Why.MEMORY),), id="stays while one is answered"
        ),
        pytest.param(Limits(memory_mib=500), (NOW - 9, NOW - 1), (Retire(C, Why.MEMORY),), id="as old as the youngest"),
        pytest.param(
            Limits(memory_mib_per_server=300), (NOW - 9, NOW), (Retire(A, Why.MEMORY),), id="its size is whole"
        ),
    ],
)
def test_a_process_that_worktrees_share(
    limits: Limits, used: tuple[float, float | None], retired: tuple[Retire, ...]
) -> None:
    one, other = (_taking_turns(key, when or 0, when is None) for key, when in zip((A, B), used, strict=True))
    slots: dict[Key, Slot] = dict([one, other, (C, Running(0, NOW - 5, memory_mib=200))])
    assert upkeep(slots, limits, NOW) == retired
    assert {key for one in retired for key in of_process(one.key, slots)} in (set(), {C}, {A, B})
    assert admission(Key("d", AbsPath("/w")), slots, Demand(), Limits(servers=3), NOW) == Start()


def test_what_idleness_frees_counts_for_the_budget() -> None:
    limits = Limits(idle_seconds=100, memory_mib=500)
    slots: dict[Key, Slot] = {
        A: Running(0, NOW - 100, leases=1, memory_mib=400),
        B: Running(0, NOW, leases=1, memory_mib=400),
    }
    assert upkeep(slots, limits, NOW) == (Retire(A, Why.IDLE),)


def test_the_next_look_is_when_the_first_idle_server_is_due() -> None:
    slots: dict[Key, Slot] = {A: Running(0, 50, leases=1), B: Running(0, 60), C: Running(0, 0, in_flight=1)}
    assert next_upkeep(slots, LIMITS) == 70
    assert next_upkeep({C: slots[C]}, LIMITS) == inf


# --- Forgetting -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("POOL-6")
@pytest.mark.parametrize(
    ("slot", "when"),
    [
        pytest.param(Rested(Why.UNUSED, NOW), NOW + 10, id="stopped, no client left"),
        pytest.param(Rested(Why.IDLE, NOW, leases=1), NOW + LONGEST_REST, id="stopped, its client is there"),
        pytest.param(Broken(CRASH, 1, NOW, (NOW - 5, NOW)), NOW + CRASH_WINDOW, id="failed, no client left"),
        pytest.param(Broken(CRASH, 1, NOW + 300, (NOW,)), NOW + 300, id="failed, not to be tried before its time"),
        pytest.param(Broken(CRASH, 1, NOW), NOW, id="failed before the window"),
        pytest.param(Missing(GONE, "p1", NOW), NOW + 10, id="missing, no client left"),
        pytest.param(Broken(CRASH, 1, NOW, (NOW,), leases=1), inf, id="failed, its client is there"),
        pytest.param(Missing(GONE, "p1", NOW, leases=1), inf, id="missing, its client is there"),
        pytest.param(Starting(NOW), inf, id="starting"),
        pytest.param(BUSY, inf, id="answering"),
        pytest.param(Stopping(Why.IDLE), inf, id="being stopped"),
    ],
)
def test_servers_that_do_not_run_are_forgotten_in_time(slot: Slot, when: float) -> None:
    assert next_upkeep({A: slot}, LIMITS) == when
    if when == inf:
        assert forgettable({A: slot}, LIMITS, NOW + 1e9) == ()
    else:
        assert forgettable({A: slot, B: Starting(0)}, LIMITS, when - 1) == ()
        assert forgettable({A: slot, B: Starting(0)}, LIMITS, when) == (A,)
