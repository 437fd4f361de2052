"""The wall clock."""

import time

import pytest

from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Clock


def now(clock: Clock) -> float:
    return clock.wall()


def test_the_wall_clock_is_the_system_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.25)
    assert now(WallClock()) == 1_800_000_000.25
