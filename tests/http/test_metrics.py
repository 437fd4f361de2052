"""The text that Prometheus reads, made from counters."""

from collections.abc import Mapping

import pytest

from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code
from pilotfish.model import AbsPath
from pilotfish.pool.counters import Counters
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Key, Running
from pilotfish_http.metrics import metrics_text
from support.servers.pools import recipe

pytestmark = pytest.mark.proves("OBS-1")


def lines(counters: Counters, seconds: float = 0.0, entries: Mapping[Key, Entry] | None = None) -> list[str]:
    return metrics_text(counters, seconds, 0, entries).splitlines()


def test_nothing_has_happened_yet() -> None:
    said = lines(Counters(), 1.5)
    assert "pilotfish_uptime_seconds 1.5" in said
    assert not [line for line in said if "server=" in line]


def test_a_failure_is_counted_by_its_code() -> None:
    counters = Counters()
    counters.failures["toy", Code.SERVER_CRASHED] += 1
    said = lines(counters)
    assert 'pilotfish_server_failures_total{server="toy",code="server_crashed"} 1' in said
    assert 'pilotfish_server_crashes_total{server="toy"} 1' in said


def test_buckets_add_up() -> None:
    counters = Counters()
    for seconds in (0.001, 0.3, 99.0):
        counters.add_check("toy", seconds=seconds, found=2, timed_out=seconds > 10)
    said = lines(counters)
    assert 'pilotfish_check_seconds_bucket{server="toy",le="0.25"} 1' in said
    assert 'pilotfish_check_seconds_bucket{server="toy",le="0.5"} 2' in said
    assert 'pilotfish_check_seconds_bucket{server="toy",le="+Inf"} 3' in said
    assert 'pilotfish_check_timeouts_total{server="toy"} 1' in said


@pytest.mark.anyio
async def test_a_root_with_a_strange_name_is_one_line_of_its_own() -> None:
    root = AbsPath('/a "quoted"\\\nroot\udcff')
    entries = {
        key: Entry(key, Running(0, 0), recipe(key), Pulse(), memory_mib=2.0)
        for key in (Key("toy", root, "one"), Key("toy", root, "another"))
    }
    [line] = [line for line in lines(Counters(), 0, entries) if line.startswith("pilotfish_server_memory")]
    assert line == 'pilotfish_server_memory_bytes{server="toy",root="/a \\"quoted\\"\\\\\\nroot\\\\udcff"} 4.1943e+06'
