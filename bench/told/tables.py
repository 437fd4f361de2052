"""The tables of committed results: every subject in one run, and other files by project and server."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.numbers import percentile
from harness.pages import table

from told import figures, subjects
from told.figures import Row, delays, precision, share

TITLES = {
    "nothing": "nothing at all",
    "claude-code": "Pilotfish, hook program, Claude Code's events",
    "library": "Pilotfish, library",
    "mcp": "Pilotfish, MCP: the model asks for diagnostics and impact",
    "serena": "Serena, MCP: the model asks for diagnostics",
    "agent-lsp": "agent-lsp, MCP: the model asks for diagnostics",
}
HOSTS = {"claude-code": "Claude Code", "opencode": "OpenCode", "qwen": "Qwen Code"}
HELP = {"nothing": "no help", "own": "its own LSP", "pilotfish": "Pilotfish"}


def title(subject: str) -> str:
    host, slash, help_ = subject.partition("/")
    return f"{HOSTS.get(host, host)}, {HELP[help_]}" if slash else TITLES.get(subject, subject)


SUBJECTS_HEAD = (
    *("who", "edits", "edited file: told in the same turn (late)", "other files: told in the same turn", "late"),
    *("never", "precision", "bytes per edit", "delay ms p50 / p95", "wait on a harmless edit ms p50 / p95", "MB"),
)

ASKED = ("mcp", "serena", "agent-lsp")
"""Nobody tells these models anything: they ask for the errors of a file, which are all of them, new or not."""


def of_subjects(rows: Sequence[Row]) -> str:
    """A row for each subject, and one for each that could not be measured."""
    cells = list[Sequence[object]]()
    for (_, _, subject), found in figures.runs(rows).items():
        one = figures.figures(found)
        asked = f"asked ({one.false} of {one.shown} not new)" if subject in ASKED and one.shown else precision(one)
        waits = ("–", "–") if subject == "nothing" else (delays(one.times), delays(one.harmless_times))
        own, others = f"{share(one.own_told, one.own_new)} ({one.own_late})", share(one.told, one.broken)
        megabytes = f"{one.megabytes:.0f}" if one.megabytes else "–"
        told = (title(subject), one.edits, own, others, one.late, one.never)
        cells.append([*told, asked, f"{one.size:.0f}", *waits, megabytes])
    absent = [f"{name.capitalize()} is not measured: {why}." for name, why in subjects.ABSENT.items()]
    return "\n".join([table(SUBJECTS_HEAD, cells), *map("\n{}".format, [SUBJECTS_NOTE, *_stopped(rows), *absent])])


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


def of_hosts(rows: Sequence[Row]) -> str:
    """Own file in the same turn / other files in the same turn / delay p50: a host in each row."""
    by = {subject: figures.figures(found) for (_, _, subject), found in figures.runs(rows).items()}
    found = list[list[str]]()
    for host, name in HOSTS.items():
        cells = [name]
        for help_ in HELP:
            one = by.get(f"{host}/{help_}")
            late = f" ({one.own_late} a turn later)" if one and one.own_late else ""
            more = f" ({one.late} later)" if one and one.late else ""
            cells.append(
                f"{one.own_told} of {one.own_new}{late} / {one.told} of {one.broken}{more} "
                f"/ {percentile(one.times, 0.5):.0f} ms"
                if one
                else "–"
            )
        found += [cells] if len(set(cells)) > 2 else []
    return table(["", *HELP.values()], found).replace("|  |", "| |", 1)


OTHERS_HEAD = (
    *("project", "server", "edits", "other files told", "late", "never", "precision"),
    *("delay ms p50 / p95: own file or nothing broken", "others broken", "CPU s per edit", "MB"),
)


def of_others(rows: Sequence[Row]) -> str:
    """A row for each project and server (and subject, where there is more than one)."""
    cells = list[Sequence[object]]()
    for (project, server, _), found in figures.runs(rows).items():
        one = figures.figures(found)
        cpu = f"{one.cpu_seconds:.1f}" if one.cpu_seconds is not None else "–"
        megabytes = f"{one.megabytes:.0f}" if one.megabytes is not None else "–"
        told = (project, server, one.edits, share(one.told, one.broken), one.late, one.never, precision(one))
        cells.append([*told, delays(one.own_times), delays(one.others_times), cpu, megabytes])
    return table(OTHERS_HEAD, cells)


# --- Two runs side by side --------------------------------------------------------------------------------------------

MORE_BYTES = 1.1
"""Texts name folders, whose names are longer on one machine than on another."""

COUNTS_HEAD = (
    *(
        "project",
        "server",
        "subject",
        "edits",
        "wrong",
        "missing in the edited file",
        "other files untold",
        "bytes",
        "",
    ),
)


@dataclass(frozen=True)
class Counts:
    edits: int
    wrong: int
    missing: int
    untold: int
    size: int

    def is_worse_than(self, other: "Counts") -> bool:
        counts = zip((self.wrong, self.missing, self.untold), (other.wrong, other.missing, other.untold), strict=True)
        # Fewer edits would be compared with more.
        return self.edits != other.edits or any(one > two for one, two in counts) or self.size > other.size * MORE_BYTES


def counts(found: Sequence[Row]) -> Counts:
    one = figures.figures(found)
    size = sum(map(figures.size, found))
    return Counts(one.edits, one.false, one.own_new - one.own_told, one.broken - one.told, size)


def compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, bool]:
    """A table of what both have, by what was told, and whether anything in it is worse than it was.

    How long it took depends on who else was there.
    """
    old, new = figures.runs(before), figures.runs(after)
    rows, worse = list[list[str]](), not old.keys() & new.keys()
    for key in [key for key in old if key in new]:
        was, is_ = counts(old[key]), counts(new[key])
        pairs = zip(vars(was).values(), vars(is_).values(), strict=True)
        mark = "worse" if is_.is_worse_than(was) else ""
        rows.append([*key, *(f"{one} → {two}" for one, two in pairs), mark])
        worse = worse or bool(mark)
    return table(COUNTS_HEAD, rows), worse
