"""Snapshots of servers in every state, for tests of what shows them."""

from typing import Any

from pilotfish.api.status import BrokenState, Counts, Instance, ServerRow, Snapshot, Totals, WatchState
from pilotfish.service.status.snapshot import state_of

NOW = 1_700_000_000_000
ROOT = "/home/you/project"


def row(server: str, **changes: Any) -> ServerRow:
    usual: dict[str, Any] = {
        "source": "builtin",
        "disabled": False,
        "extensions": (f".{server}",),
        "configured_roots": (),
        "connected_roots": (),
        "spawning_roots": (),
    }
    return ServerRow(server, **{**usual, **changes})


def active(server: str, **changes: Any) -> ServerRow:
    instance = Instance(
        root=ROOT,
        state="active",
        pid=4242,
        memory_mib=164.4,
        uptime_ms=3 * 60 * 1000,
        last_latency_ms=12,
        sessions=2,
        documents=1,
        watching=WatchState("ok", watched=12),
    )
    counts = Counts(error=2, warning=1, info=0, hint=0, total=3)
    usual = {"configured_roots": (ROOT,), "connected_roots": (ROOT,), "diagnostics": counts, "instances": (instance,)}
    return row(server, **{**usual, **changes})


def broken(server: str, error: str = "gopls exited with code 2") -> ServerRow:
    instance = Instance(root=f"{ROOT}/tools", state="broken", last_error=error, restarts=2)
    state = BrokenState(attempts=3, retry_at=NOW + 20_000, last_error=error)
    return row(server, broken=state, configured_roots=(f"{ROOT}/tools",), instances=(instance,))


def starting(server: str) -> ServerRow:
    instance = Instance(root=ROOT, state="starting")
    return row(server, configured_roots=(ROOT,), spawning_roots=(ROOT,), instances=(instance,))


def idle(server: str) -> ServerRow:
    return row(server)


def unavailable(
    server: str, why: str = 'LSP server "zls" is not available.\nInstall it with: brew install zls'
) -> ServerRow:
    return row(server, unavailable=why)


def disabled(server: str) -> ServerRow:
    return row(server, disabled=True, source="global")


def snapshot(*rows: ServerRow, **changes: Any) -> Snapshot:
    states = [state_of(row) for row in rows]
    totals = Totals(
        configured=len(rows),
        connected=states.count("connected"),
        spawning=states.count("spawning"),
        broken=states.count("broken"),
        disabled=states.count("disabled"),
        unavailable=states.count("unavailable"),
    )
    usual: dict[str, Any] = {"root": ROOT, "trusted": True}
    return Snapshot(NOW, rows, totals, **{**usual, **changes})
