"""`pilotfish stats`: what the daemon has counted since it was started. Nothing of it leaves the machine (OBS-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pilotfish.api.status import Latencies, ServerStats, Stats


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def stats(context: click.Context, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Counts and latencies since the daemon started.

    Nothing leaves this machine. Exit code: 0, 1 when no daemon runs.
    """
    import msgspec

    from pilotfish.api.status import Stats
    from pilotfish.errors import Code, Unavailable
    from pilotfish.ipc.client import Terms, open_link

    try:
        link = open_link(terms=Terms(start=False))
    except Unavailable as unavailable:
        if unavailable.code is not Code.NOT_FOUND:
            raise
        click.echo(json.dumps({"running": False}) if as_json else "No daemon is running: nothing was counted.")
        context.exit(1)
    with link:
        found = msgspec.convert(link.request("stats"), Stats)
    if as_json:
        click.echo(json.dumps({"running": True, **msgspec.to_builtins(found)}, indent=2))
    else:
        click.echo("\n".join(stats_lines(found)))


def stats_lines(stats: Stats) -> Iterator[str]:
    from pilotfish.surfaces.cli.terminal.quantities import duration, memory

    yield f"Daemon up {duration(stats.uptime_ms)}, {memory(stats.memory_mib)} without its servers"
    if not (stats.operations or stats.servers):
        yield "Nothing was asked yet."
        return
    yield ""
    yield from _aligned([("WHAT", "TIMES", "P50", "P95"), *map(_latencies, stats.operations)])
    yield ""
    checks = {one.name: one for one in stats.checks}
    headings = ("SERVER", "STARTS", "FAILURES", "CHECKS", "TIMED OUT", "FOUND", "P50", "P95", "MEMORY")
    yield from _aligned([headings, *(_server(one, checks.get(one.server_id)) for one in stats.servers)])


def _latencies(one: Latencies) -> tuple[str, ...]:
    from pilotfish.surfaces.cli.terminal.quantities import latency

    return (one.name, str(one.count), latency(one.p50_ms), latency(one.p95_ms))


def _server(one: ServerStats, checks: Latencies | None) -> tuple[str, ...]:
    from pilotfish.surfaces.cli.terminal.quantities import latency, memory

    failures = ", ".join(f"{count} × {code}" for code, count in one.failures.items()) or "0"
    times = (latency(checks.p50_ms), latency(checks.p95_ms)) if checks else ("–", "–")
    counts = (str(one.checks), str(one.time_outs), str(one.diagnostics))
    return (one.server_id, str(one.starts), failures, *counts, *times, memory(one.memory_mib))


def _aligned(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        yield "  ".join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip()
