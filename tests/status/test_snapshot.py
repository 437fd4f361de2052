"""One model behind `status`, the panel and the page: what it says, and that reading it changes nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.api.status import Counts, ServerRow, Snapshot
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Key, Limits, Slot
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.status.activity import activity
from pilotfish.service.status.snapshot import ORDER, current_diagnostics, state_of
from support.servers.pools import FakeVitals
from support.servers.script import Script
from support.services.several import MUTE, Ground, answering, custom, dying, hanging, service_on
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


pytestmark = [pytest.mark.anyio, pytest.mark.proves("TUI-1", "TUI-2")]


def row(snapshot: Snapshot, server: str) -> ServerRow:
    return next(row for row in snapshot.rows if row.server_id == server)


async def test_a_running_server_is_shown_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": answering("wrong")}) as ground:
        ground.write("a.x", "bad\n")
        await ground.touched("a.x")
        session = next(iter(ground.service.pool.entries().values())).session
        assert session is not None
        vitals(ground).memory[session.pid] = 123.0
        found = row(await ground.service.inspect(ground.client), "toy")
    (instance,) = found.instances
    assert (instance.root, instance.state, instance.pid) == (str(ground.root), "active", session.pid)
    assert (instance.memory_mib, instance.documents, instance.sessions) == (123.0, 1, 1)
    assert (instance.restarts, instance.last_error) == (0, None)
    assert instance.uptime_ms is not None
    assert instance.last_latency_ms is not None
    assert found.diagnostics == Counts(error=1, warning=0, info=0, hint=0, total=1)


def vitals(ground: Ground) -> FakeVitals:
    found = ground.service.servers._vitals  # pyright: ignore[reportPrivateUsage] -- the fake that the test handed in
    assert isinstance(found, FakeVitals)
    return found


@pytest.mark.parametrize(
    ("scenario", "state"),
    [
        pytest.param(answering(), "connected", id="active"),
        pytest.param(dying, "broken", id="broken"),
        pytest.param(hanging, "spawning", id="starting"),
    ],
)
async def test_reading_changes_nothing(tmp_path: Path, scenario: Any, state: str) -> None:
    async with service_on(tmp_path, {"toy": scenario}) as ground:
        ground.write("a.x")
        with anyio.move_on_after(1):
            await ground.touched("a.x")
        before, launches = facts(ground), len(ground.launches)
        snapshot = await ground.service.inspect(ground.client)
        for _ in range(3):
            await ground.service.inspect(ground.client)
            ground.service.servers.details(ground.service.workspaces.of(ground.client), "toy")
            await ground.service.servers.stats()
        assert state_of(row(snapshot, "toy")) == state
        assert (facts(ground), len(ground.launches)) == (before, launches)


def facts(ground: Ground) -> Mapping[Key, tuple[Slot, set[str], float, int]]:
    entries = ground.service.pool.entries().items()
    return {key: (entry.slot, set(entry.leases), entry.last_used, entry.starts) for key, entry in entries}


async def test_a_broken_server_says_why_how_often_and_when_it_is_tried_again(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": dying}) as ground:
        ground.write("a.x")
        await ground.touched("a.x")
        snapshot = ground.service.status(ground.client)
        (details,) = ground.service.servers.details(ground.service.workspaces.of(ground.client), "toy")
    found = row(snapshot, "toy")
    assert found.broken is not None
    assert found.broken.attempts == 1
    assert found.broken.retry_at > snapshot.generated_at
    assert "exited with code 1" in found.broken.last_error
    assert found.instances[0].last_error == found.broken.last_error
    assert details.stderr == ("cannot find module",)


async def test_a_server_that_runs_again_still_says_why_it_failed(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": [dying, answering()]}) as ground:
        ground.write("a.x")
        await ground.touched("a.x")
        await anyio.sleep(10)
        await ground.touched("a.x")
        (instance,) = row(ground.service.status(ground.client), "toy").instances
    assert (instance.state, instance.restarts) == ("active", 1)
    assert "exited with code 1" in (instance.last_error or "")


async def test_a_program_that_is_not_there_makes_a_server_unavailable_and_not_broken(tmp_path: Path) -> None:
    config = {"lsp": {"toy": custom(command=["no-such-program"])}}
    async with service_on(tmp_path, {"toy": MUTE}, config) as ground:
        before = row(ground.service.status(ground.client), "toy")
        ground.write("a.x")
        await ground.touched("a.x")
        after = row(ground.service.status(ground.client), "toy")
    assert [state_of(before), state_of(after)] == ["unavailable", "unavailable"]
    assert '"no-such-program" is not available' in (before.unavailable or "")


async def test_what_is_turned_off_is_disabled_and_everything_off_says_so(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": MUTE}, {"lsp": {"toy": custom(disabled=True)}}) as ground:
        assert state_of(row(ground.service.status(ground.client), "toy")) == "disabled"
    async with service_on(tmp_path, {"toy": MUTE}, {"lsp": False}) as ground:
        snapshot = ground.service.status(ground.client)
    assert snapshot.disabled == "LSP disabled by configuration"
    assert snapshot.totals.connected == 0


@pytest.mark.proves("TRUST-4")
async def test_what_an_untrusted_project_does_not_get_is_a_warning(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": MUTE}) as ground:
        (ground.root / ".pilotfish").mkdir()
        ground.write(".pilotfish/lsp.json", '{"lsp": {"toy": {"command": ["evil"]}}}')
        snapshot = ground.service.status(ground.client)
    assert [warning for warning in snapshot.warnings if "command" in warning], snapshot.warnings
    assert not snapshot.trusted


async def test_rows_come_by_trouble_and_then_by_id(tmp_path: Path) -> None:
    scenarios = {"b-broken": dying, "a-broken": dying, "active": answering(), "starting": hanging}
    config = {"lsp": {server: custom(f".{server}") for server in scenarios} | {"off": custom(disabled=True)}}
    async with service_on(tmp_path, scenarios, config, Limits()) as ground:
        for server in scenarios:
            ground.write(f"f.{server}")
        with anyio.move_on_after(2):
            await ground.check(*(f"f.{server}" for server in scenarios))
        rows = ground.service.status(ground.client).rows
    states = [state_of(row) for row in rows]
    assert [row.server_id for row in rows[:4]] == ["a-broken", "b-broken", "starting", "active"]
    assert states == sorted(states, key=ORDER.index)
    for state in ORDER:
        ids = [row.server_id for row in rows if state_of(row) == state]
        assert ids == sorted(ids)


async def test_restarting_starts_again_where_it_ran_and_stopping_does_not(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": answering()}) as ground:
        ground.write("a.x")
        await ground.touched("a.x")
        workspace = ground.service.workspaces.of(ground.client)
        (outcome,) = await ground.service.servers.restart(workspace, "toy", "person")
        assert (outcome.root, outcome.error, len(ground.launches)) == (str(ground.root), None, 2)
        assert await ground.service.servers.halt(workspace, "toy") == (str(ground.root),)
        assert row(ground.service.status(ground.client), "toy").instances[0].state == "idle"
        assert await ground.service.servers.halt(workspace, "toy") == ()
        assert (await ground.touched("a.x")).state == State.FRESH
        assert len(ground.launches) == 3


async def test_restarting_a_server_that_waits_after_a_failure_tries_at_once(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": [dying, answering()]}) as ground:
        ground.write("a.x")
        await ground.touched("a.x")
        (outcome,) = await ground.service.servers.restart(ground.service.workspaces.of(ground.client), "toy", "person")
        assert outcome.error is None
        assert state_of(row(ground.service.status(ground.client), "toy")) == "connected"


async def test_a_restart_that_fails_says_why(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": dying}) as ground:
        ground.write("a.x")
        await ground.touched("a.x")
        (outcome,) = await ground.service.servers.restart(ground.service.workspaces.of(ground.client), "toy", "person")
    assert (outcome.pid, "exited with code 1" in (outcome.error or "")) == (None, True)


async def test_a_server_that_nobody_knows_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"toy": MUTE}) as ground:
        with pytest.raises(Refused) as refused:
            ground.service.servers.details(ground.service.workspaces.of(ground.client), "pyrigth")
    assert refused.value.hint == "Did you mean pyright?"


@pytest.mark.proves("OBS-1")
async def test_what_happened_is_counted(tmp_path: Path) -> None:
    def slow(script: Script) -> None:
        answering("wrong")(script)

    async with service_on(tmp_path, {"toy": slow}) as ground:
        ground.write("a.x")
        for _ in range(3):
            await ground.touched("a.x")
        await ground.check("a.x")
        stats = await ground.service.servers.stats()
    (server,) = stats.servers
    assert (server.server_id, server.starts, server.failures) == ("toy", 1, {})
    assert (server.checks, server.time_outs, server.diagnostics) == (4, 0, 4)
    assert {one.name: one.count for one in stats.operations} == {"edit": 3, "check": 1}
    assert [one.name for one in stats.checks] == ["toy"]


async def test_what_is_said_twice_of_one_line_is_listed_once(tmp_path: Path) -> None:
    def scenario(script: Script) -> None:
        answering()(script)
        places = [{"start": {"line": 0, "character": n}, "end": {"line": 0, "character": n + 1}} for n in (0, 1)]
        items = [{"range": place, "severity": 1, "message": "wrong"} for place in places]
        script.on("textDocument/diagnostic", lambda _: {"kind": "full", "items": items})

    async with service_on(tmp_path, {"toy": scenario}) as ground:
        ground.write("a.x", "bad\n")
        await ground.touched("a.x")
        workspace = ground.service.workspaces.of(ground.client)
        (listed,) = current_diagnostics(ground.service.states, ground.service.pool.entries(), workspace).values()
    assert [(one.line, one.message) for one in listed] == [(1, "wrong")]


@pytest.mark.proves("TUI-2", "DIAG-14")
async def test_what_was_changed_since_is_not_shown_as_wrong(tmp_path: Path) -> None:
    """Somebody else writes a file: its errors may be gone, and those of files that use it are marked."""
    async with service_on(tmp_path, {"toy": answering("wrong")}) as ground:
        service = ground.service
        await ground.check(ground.write("a.x", "bad\n"), ground.write("b.x", "bad\n"))
        before = activity(service, ground.client).files
        changed = PathChange(AbsPath(str(ground.root / "a.x")), Change.CHANGED)
        service.states.note(AbsPath(str(ground.root)), [changed])
        after = activity(service, ground.client).files
        (details,) = service.servers.details(service.workspaces.of(ground.client), "toy")
        counts = row(service.status(ground.client), "toy").diagnostics
    assert [(one.path, one.outdated) for one in before] == [("a.x", False), ("b.x", False)]
    assert [(one.path, one.outdated) for one in after] == [("b.x", True)]
    assert (counts, details.diagnostics) == (None, {})
