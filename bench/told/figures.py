"""Figures from the rows that `--out` wrote, whenever that was: for the tables that stand in reports and the plots.

A row is one edit of one subject: `report.record`, or the same without the texts, `report.kept`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.numbers import mean, percentile
from harness.pages import HIGH, MIDDLE, Bar, chart, listed, table
from harness.servers import CLONE

from told import subjects

Row = Mapping[str, Any]

HERE = Path(__file__).resolve().parent
SUBJECTS = HERE / "subjects.jsonl"
"""All subjects in one run."""
OTHERS = HERE / "others.jsonl"
"""Edits that break other files, a run for each project and server."""


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def runs(found: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """The rows of each project, server and subject, in the order of the file."""
    by: dict[tuple[str, str, str], list[Row]] = {}
    for row in found:
        by.setdefault((row["project"], row["server"], row["subject"]), []).append(row)
    return by


def size(row: Row) -> int:
    told = row["told"]
    return told["bytes"] if "bytes" in told else len((told["text"] + told.get("between", "")).encode())


@dataclass(frozen=True)
class Figures:
    """One subject on one project."""

    edits: int
    breaking: int
    own_new: int
    own_told: int
    """In the same turn."""
    own_late: int
    """Edits of those that a later turn told."""
    broken: int
    told: int
    late: int
    never: int
    shown: int
    """Findings that were told, right or not."""
    false: int
    """Of them, those that were not new."""
    old: int
    """Of these, those that the checker reports, though not as new."""
    size: float
    """Mean bytes, of all edits."""
    harmless_sizes: tuple[int, ...]
    quiet_sizes: tuple[int, ...]
    """After edits that brought nothing new, by the checker."""
    first_ms: float
    own_times: tuple[float, ...]
    """After edits that broke their own file or nothing; the first, with a cold server, is left out everywhere."""
    others_times: tuple[float, ...]
    harmless_times: tuple[float, ...]
    cpu_seconds: float | None
    """Per edit; None where it was not kept."""
    megabytes: float | None
    failed: int
    """Edits that the subject itself failed at."""

    @property
    def times(self) -> tuple[float, ...]:
        return (*self.own_times, *self.others_times)


def figures(found: Sequence[Row]) -> Figures:
    verdicts = [row["verdict"] for row in found]
    late = {tuple(pair) for verdict in verdicts for pair in verdict["late_for"]}
    untold = {
        (row["edit"]["number"], file)
        for row in found
        for file in row["verdict"]["broken"]
        if file not in row["verdict"]["told"]
    }
    missing = {(row["edit"]["number"], one["file"]) for row in found for one in row["verdict"]["missing"]}
    own_new = sum(verdict["own_new"] for verdict in verdicts)
    false = sum(len(verdict["old"]) + len(verdict["unknown"]) for verdict in verdicts)
    harmless = [row for row in found if row["edit"]["group"] == "harmless"]
    warm = [row for row in found if row["edit"]["number"] > 1]
    cost: Mapping[str, float] = found[0].get("cost") or {}
    return Figures(
        edits=len(found),
        breaking=sum(bool(row["verdict"]["broken"] or row["verdict"]["own_new"]) for row in found),
        own_new=own_new,
        own_told=own_new - sum(len(verdict["missing"]) for verdict in verdicts),
        own_late=len(missing & late),
        broken=sum(len(verdict["broken"]) for verdict in verdicts),
        told=sum(len(verdict["told"]) for verdict in verdicts),
        late=len(untold & late),
        never=len(untold - late),
        shown=false + sum(len(verdict["right"]) + len(verdict["late"]) for verdict in verdicts),
        false=false,
        old=sum(len(verdict["old"]) for verdict in verdicts),
        size=mean([size(row) for row in found]),
        harmless_sizes=tuple(map(size, harmless)),
        quiet_sizes=tuple(size(row) for row in found if not row["new"]),
        first_ms=next((row["told"]["milliseconds"] for row in found if row["edit"]["number"] == 1), 0.0),
        own_times=tuple(row["told"]["milliseconds"] for row in warm if not row["verdict"]["broken"]),
        others_times=tuple(row["told"]["milliseconds"] for row in warm if row["verdict"]["broken"]),
        harmless_times=tuple(row["told"]["milliseconds"] for row in harmless if row["edit"]["number"] > 1),
        cpu_seconds=cost["cpu_seconds"] / len(found) if cost else None,
        megabytes=cost["megabytes"] if cost else None,
        failed=sum(bool(row["told"]["error"]) for row in found),
    )


def delays(times: Sequence[float]) -> str:
    return f"{percentile(times, 0.5):.0f} / {percentile(times, 0.95):.0f} (n {len(times)})" if times else "–"


def precision(one: Figures) -> str:
    """Of what was told, how much was new or still untold."""
    return f"{(one.shown - one.false) / one.shown:.0%} ({one.false} of {one.shown} not new)" if one.shown else "–"


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "–"


# --- Tables ---------------------------------------------------------------------------------------------------------

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
    for (_, _, subject), found in runs(rows).items():
        one = figures(found)
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
    found = runs(rows)
    most = max(map(len, found.values()))
    return [
        f"{title(subject)}: {len(one)} edits of {most}, because "
        + ("it answered nothing." if all(row["told"]["error"] for row in one) else "its time was over.")
        for (_, _, subject), one in found.items()
        if len(one) < most
    ]


def of_hosts(rows: Sequence[Row]) -> str:
    """Own file in the same turn / other files in the same turn / delay p50: a host in each row."""
    by = {subject: figures(found) for (_, _, subject), found in runs(rows).items()}
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
    for (project, server, _), found in runs(rows).items():
        one = figures(found)
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
    one = figures(found)
    return Counts(one.edits, one.false, one.own_new - one.own_told, one.broken - one.told, sum(map(size, found)))


def compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, bool]:
    """A table of what both have, by what was told, and whether anything in it is worse than it was.

    How long it took depends on who else was there.
    """
    old, new = runs(before), runs(after)
    rows, worse = list[list[str]](), not old.keys() & new.keys()
    for key in [key for key in old if key in new]:
        was, is_ = counts(old[key]), counts(new[key])
        pairs = zip(vars(was).values(), vars(is_).values(), strict=True)
        mark = "worse" if is_.is_worse_than(was) else ""
        rows.append([*key, *(f"{one} → {two}" for one, two in pairs), mark])
        worse = worse or bool(mark)
    return table(COUNTS_HEAD, rows), worse


# --- Pages ----------------------------------------------------------------------------------------------------------

TEMPLATE = HERE / "page.md"
ABOUT = HERE / "subjects.about.json"
"""What the run of all subjects was measured on."""

SITE = Path("docs", "guide", "told.md")
README = Path("README.md")
_TABLE = re.compile(r"(<!-- told:[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
OWN = Path("bench", "told", "SUBJECTS.md")
TOLD, LATER, NEVER = "#2f855a", "#d69e2e", "#c53030"


def written() -> list[Path]:
    """Write all pages and plots of the kept results."""
    pages = made(rows(SUBJECTS), json.loads(ABOUT.read_text()))
    for path, text in pages.items():
        (CLONE / path).write_text(text)
    return list(pages)


def made(rows: Sequence[Row], about: Mapping[str, str]) -> dict[Path, str]:
    """Every page and plot by its path in the repository."""
    edits = next(iter(runs(rows).values()))
    site = TEMPLATE.read_text().format(
        project=rows[0]["project"],
        server=rows[0]["server"],
        edits=len(edits),
        breaking=figures(edits).breaking,
        others=sum(bool(row["verdict"]["broken"]) for row in edits),
        harmless=sum(row["edit"]["group"] == "harmless" for row in edits),
        hosts=of_hosts(rows),
        everybody=of_subjects(rows),
        about=listed(about),
    )
    head = "# All subjects in one run\n\nWhat the program printed; [README.md](README.md) explains the columns.\n"
    own = "\n".join([head, listed(about), "", of_hosts(rows), "", of_subjects(rows), ""])
    plots = {"told-others": _others, "told-own": _own, "told-delay": _delay}
    drawn = {Path("docs", "pictures", f"{name}.svg"): plot(rows) for name, plot in plots.items()}
    readme = _TABLE.sub(rf"\g<1>{of_hosts(rows)}\n\g<2>", (CLONE / README).read_text())
    return {SITE: site, OWN: own, README: readme, **drawn}


# --- A bar for each subject: told in the same turn, told later, never told; and delays --------------------------------


def _others(rows: Sequence[Row]) -> str:
    bars = [
        Bar(name, ((one.told, TOLD), (one.late, LATER), (one.never, NEVER)), f"{one.told} of {one.broken}")
        for name, one in _subjects(rows)
    ]
    shares = (("told in the same turn", TOLD), ("told later", LATER), ("never told", NEVER))
    return chart("Other files that an edit broke", shares, bars)


def _own(rows: Sequence[Row]) -> str:
    bars = [
        Bar(name, ((one.own_told, TOLD), (one.own_new - one.own_told, NEVER)), f"{one.own_told} of {one.own_new}")
        for name, one in _subjects(rows)
    ]
    return chart("Errors in the edited file", (("told in the same turn", TOLD), ("not then", NEVER)), bars)


def _delay(rows: Sequence[Row]) -> str:
    bars = list[Bar]()
    for name, one in _subjects(rows):
        middle, high = percentile(one.times, 0.5), percentile(one.times, 0.95)
        if high:
            bars.append(Bar(name, ((middle, MIDDLE), (high - middle, HIGH)), f"{middle:.0f} / {high:.0f} ms"))
    return chart("From the edit to what the model reads next", (("median", MIDDLE), ("95 of 100 edits", HIGH)), bars)


def _subjects(rows: Sequence[Row]) -> list[tuple[str, Figures]]:
    return [(title(key[2]), figures(found)) for key, found in runs(rows).items()]
