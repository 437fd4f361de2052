"""The tables of committed results: every subject in one run, and other files by project and server."""

from collections.abc import Sequence

from told import figures, subjects
from told.figures import Row, delays, line, precision, rule, share

TITLES = {
    "nothing": "nothing at all",
    "plain": "Pilotfish, hook program, files only",
    "claude-code": "Pilotfish, hook program, Claude Code's events",
    "touched": "Pilotfish, `pilotfish touched`",
    "library": "Pilotfish, library",
    "mcp": "Pilotfish, MCP: the model asks for diagnostics and impact",
    "mcp-project": "Pilotfish, MCP: the model asks for the whole project",
    "serena": "Serena, MCP: the model asks for diagnostics",
    "agent-lsp": "agent-lsp, MCP: the model asks for diagnostics",
}
HOSTS = {"claude-code": "Claude Code", "opencode": "OpenCode", "qwen": "Qwen Code"}
HELP = {"nothing": "no help", "own": "its own LSP", "pilotfish": "Pilotfish"}


def title(subject: str) -> str:
    host, slash, help_ = subject.partition("/")
    return f"{HOSTS.get(host, host)}, {HELP[help_]}" if slash else TITLES.get(subject, subject)


SUBJECTS_HEAD = (
    "| who | edits | edited file: told in the same turn (late) | other files: told in the same turn | late | never "
    "| precision | bytes per edit | delay ms p50 / p95 | wait on a harmless edit ms p50 / p95 | MB |"
)


ASKED = ("mcp", "mcp-project", "serena", "agent-lsp")
"""Nobody tells these models anything: they ask for the errors of a file, which are all of them, new or not."""


def of_subjects(rows: Sequence[Row]) -> str:
    """A row for each subject, and one for each that could not be measured."""
    lines = [SUBJECTS_HEAD, rule(SUBJECTS_HEAD)]
    for (_, _, subject), found in figures.runs(rows).items():
        one = figures.figures(found)
        cells = (
            title(subject),
            one.edits,
            f"{share(one.own_told, one.own_new)} ({one.own_late})",
            share(one.told, one.broken),
            one.late,
            one.never,
            f"asked ({one.false} of {one.shown} not new)" if subject in ASKED and one.shown else precision(one),
            f"{one.size:.0f}",
            delays(one.times) if subject != "nothing" else "–",
            delays(one.harmless_times) if subject != "nothing" else "–",
            f"{one.megabytes:.0f}" if one.megabytes else "–",
        )
        lines.append(line(cells))
    lines += [f"\n{SUBJECTS_NOTE}", *map("\n{}".format, _stopped(rows))]
    return "\n".join(
        [*lines, *(f"\n{name.capitalize()} is not measured: {why}." for name, why in subjects.ABSENT.items())]
    )


SUBJECTS_NOTE = (
    "Who is asked answers with all errors of a file, the old ones too: what was not new there is no mistake, "
    "and stands without a percentage."
)


def _stopped(rows: Sequence[Row]) -> list[str]:
    """Who made fewer edits than the others, and why."""
    found = figures.runs(rows)
    most = max(map(len, found.values()))
    return [
        f"{title(subject)}: {len(one)} edits of {most}, because "
        + ("it answered nothing." if all(row["told"]["error"] for row in one) else "its time was over.")
        for (_, _, subject), one in found.items()
        if len(one) < most
    ]


HOSTS_HEAD = "| | no help | its own LSP | Pilotfish |"


def of_hosts(rows: Sequence[Row]) -> str:
    """Own file in the same turn / other files in the same turn / delay p50: a host in each row."""
    by = {subject: figures.figures(found) for (_, _, subject), found in figures.runs(rows).items()}
    lines = [HOSTS_HEAD, rule(HOSTS_HEAD)]
    for host, name in HOSTS.items():
        cells = [name]
        for help_ in HELP:
            one = by.get(f"{host}/{help_}")
            late = f" ({one.own_late} a turn later)" if one and one.own_late else ""
            more = f" ({one.late} later)" if one and one.late else ""
            cells.append(
                f"{one.own_told} of {one.own_new}{late} / {one.told} of {one.broken}{more} "
                f"/ {figures.percentile(one.times, 0.5):.0f} ms"
                if one
                else "–"
            )
        if len(set(cells)) > 2:
            lines.append(line(cells))
    return "\n".join(lines)


OTHERS_HEAD = (
    "| project | server | edits | other files told | late | never | precision "
    "| delay ms p50 / p95: own file or nothing broken "
    "| others broken | CPU s per edit | MB |"
)


def of_others(rows: Sequence[Row]) -> str:
    """A row for each project and server (and subject, where there is more than one)."""
    lines = [OTHERS_HEAD, rule(OTHERS_HEAD)]
    for (project, server, _), found in figures.runs(rows).items():
        one = figures.figures(found)
        cells = (
            project,
            server,
            one.edits,
            share(one.told, one.broken),
            one.late,
            one.never,
            precision(one),
            delays(one.own_times),
            delays(one.others_times),
            f"{one.cpu_seconds:.1f}" if one.cpu_seconds is not None else "–",
            f"{one.megabytes:.0f}" if one.megabytes is not None else "–",
        )
        lines.append(line(cells))
    return "\n".join(lines)
