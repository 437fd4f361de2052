"""`pilotfish status` and `pilotfish stats`: servers as they are now, and counts since the daemon started.

Neither starts a daemon or a server. `status` exits with 0 when nothing is broken, 1 when a server is broken, 2 when
the service cannot run; `stats` with 1 when no daemon runs. Nothing leaves the machine (OBS-1).
"""

import json
import shutil
import sys
from collections.abc import Iterator

import click
import msgspec

from pilotfish.api.status import Stats
from pilotfish.errors import Code, Failure
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.project import only_project, servers_in_use, snapshot
from pilotfish.surfaces.cli.terminal.status_text import status_lines
from pilotfish.surfaces.cli.terminal.table import duration, latency, memory, table
from pilotfish.surfaces.cli.workspace import connect, host_option, json_option, root_option

BROKEN = 1
UNAVAILABLE = 2


@click.command()
@click.option("--all", "everything", is_flag=True, help="Every server of the catalogue, not only this project's.")
@root_option
@host_option
@json_option
@click.pass_context
def status(context: click.Context, root: str | None, *, everything: bool, as_json: bool) -> None:
    """Show the language servers of this project and their state.

    They are those for the languages found here, and those that are configured or run; JSON has every server. Without a
    daemon, what the configuration says. Nothing is started. Exit code: 0, 1 if a server is broken, 2 if nothing can
    run.
    """
    try:
        found, daemon = snapshot(root)
    except Failure as failure:
        if failure.code in {Code.ROOT_GONE, Code.INVALID_INPUT}:
            raise
        reason = sanitised(str(failure), 1000)
        click.echo(json.dumps({"unavailable": reason}) if as_json else f"LSP unavailable: {reason}")
        context.exit(UNAVAILABLE)
    if as_json:
        click.echo(json.dumps({"daemon": daemon, **msgspec.to_builtins(found)}, indent=2))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        shown = found if everything else only_project(found, servers_in_use(found.root))
        click.echo("\n".join(status_lines(shown, daemon=daemon, width=width)))
    context.exit(BROKEN if found.totals.broken else 0)


@click.command()
@json_option
@click.pass_context
def stats(context: click.Context, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show counts and latencies since the daemon started.

    Nothing leaves this machine. Exit code: 0, 1 if no daemon runs.
    """
    link = connect()
    if link is None:
        click.echo(json.dumps({"running": False}) if as_json else "No daemon is running: nothing was counted.")
        context.exit(1)
    with link:
        found = msgspec.convert(link.request("stats"), Stats)
    if as_json:
        click.echo(json.dumps({"running": True, **msgspec.to_builtins(found)}, indent=2))
    else:
        click.echo("\n".join(stats_lines(found)))


def stats_lines(stats: Stats) -> Iterator[str]:
    yield f"Daemon up {duration(stats.uptime_ms)}, {memory(stats.memory_mib)} without its servers"
    if not (stats.operations or stats.servers):
        yield "No requests yet."
        return
    yield ""
    operations = [(one.name, str(one.count), latency(one.p50_ms), latency(one.p95_ms)) for one in stats.operations]
    yield from table([("WHAT", "TIMES", "P50", "P95"), *operations])
    yield ""
    checks = {one.name: (latency(one.p50_ms), latency(one.p95_ms)) for one in stats.checks}
    rows = [("SERVER", "STARTS", "FAILURES", "CHECKS", "TIMED OUT", "FOUND", "P50", "P95", "MEMORY")]
    for one in stats.servers:
        failures = ", ".join(f"{count} × {code}" for code, count in one.failures.items()) or "0"
        counts = (str(one.checks), str(one.time_outs), str(one.diagnostics))
        times = checks.get(one.server_id, ("–", "–"))
        rows.append((one.server_id, str(one.starts), failures, *counts, *times, memory(one.memory_mib)))
    yield from table(rows)
