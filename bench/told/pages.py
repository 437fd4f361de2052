"""The pages that kept results are shown on: `SUBJECTS.md` here, and "What your agent is told" on the site, with plots.

`bench/told/run --pages` writes them; a test says whether they are those of the kept results.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.numbers import percentile
from harness.pages import HIGH, MIDDLE, Bar, chart, listed
from harness.servers import CLONE

from told import figures, tables
from told.figures import Figures, Row

TEMPLATE = figures.HERE / "page.md"
ABOUT = figures.HERE / "subjects.about.json"
"""What the run of all subjects was measured on."""

SITE = Path("docs", "guide", "told.md")
README = Path("README.md")
_TABLE = re.compile(r"(<!-- told:[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
OWN = Path("bench", "told", "SUBJECTS.md")
TOLD, LATER, NEVER = "#2f855a", "#d69e2e", "#c53030"


def written() -> list[Path]:
    """Write all pages and plots of the kept results."""
    pages = made(figures.rows(figures.SUBJECTS), json.loads(ABOUT.read_text()))
    for path, text in pages.items():
        (CLONE / path).write_text(text)
    return list(pages)


def made(rows: Sequence[Row], about: Mapping[str, str]) -> dict[Path, str]:
    """Every page and plot by its path in the repository."""
    edits = next(iter(figures.runs(rows).values()))
    site = TEMPLATE.read_text().format(
        project=rows[0]["project"],
        server=rows[0]["server"],
        edits=len(edits),
        breaking=figures.figures(edits).breaking,
        others=sum(bool(row["verdict"]["broken"]) for row in edits),
        harmless=sum(row["edit"]["group"] == "harmless" for row in edits),
        hosts=tables.of_hosts(rows),
        everybody=tables.of_subjects(rows),
        about=listed(about),
    )
    head = "# All subjects in one run\n\nWhat the program printed; [README.md](README.md) explains the columns.\n"
    own = "\n".join([head, listed(about), "", tables.of_hosts(rows), "", tables.of_subjects(rows), ""])
    plots = {"told-others": _others, "told-own": _own, "told-delay": _delay}
    drawn = {Path("docs", "pictures", f"{name}.svg"): plot(rows) for name, plot in plots.items()}
    readme = _TABLE.sub(rf"\g<1>{tables.of_hosts(rows)}\n\g<2>", (CLONE / README).read_text())
    return {SITE: site, OWN: own, README: readme, **drawn}


# --- A bar for each subject: told in the same turn, told later, never told; and delays --------------------------------


def _others(rows: Sequence[Row]) -> str:
    bars = [
        Bar(name, ((one.told, TOLD), (one.late, LATER), (one.never, NEVER)), f"{one.told} of {one.broken}")
        for name, one in _subjects(rows)
    ]
    return chart("Other files that an edit broke", _SHARES, bars)


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


_SHARES = (("told in the same turn", TOLD), ("told later", LATER), ("never told", NEVER))


def _subjects(rows: Sequence[Row]) -> list[tuple[str, Figures]]:
    return [(tables.title(key[2]), figures.figures(found)) for key, found in figures.runs(rows).items()]
