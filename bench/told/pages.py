"""The pages that kept results are shown on: `SUBJECTS.md` here, and "What your agent is told" on the site, with plots.

`bench/told/run --pages` writes them; a test says whether they are those of the kept results.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from told import figures, plots, tables
from told.figures import Row

CLONE = figures.HERE.parents[1]
TEMPLATE = figures.HERE / "page.md"
ABOUT = figures.HERE / "subjects.about.json"
"""What the run of all subjects was measured on."""

SITE = Path("docs", "guide", "told.md")
README = Path("README.md")
_TABLE = re.compile(r"(<!-- told:[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
OWN = Path("bench", "told", "SUBJECTS.md")
PLOTS = {"told-others": plots.others, "told-own": plots.own, "told-delay": plots.delay}


def written() -> list[Path]:
    """Write all pages and plots of the kept results."""
    pages = made(figures.rows(figures.SUBJECTS), json.loads(ABOUT.read_text()))
    for path, text in pages.items():
        (CLONE / path).write_text(text)
    return list(pages)


def made(rows: Sequence[Row], about: Mapping[str, str]) -> dict[Path, str]:
    """Every page and plot by its path in the repository."""
    listed = "\n".join(f"- {name}: {value}" for name, value in about.items())
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
        about=listed,
    )
    head = "# All subjects in one run\n\nWhat the program printed; [README.md](README.md) explains the columns.\n"
    own = "\n".join([head, listed, "", tables.of_hosts(rows), "", tables.of_subjects(rows), ""])
    drawn = {Path("docs", "pictures", f"{name}.svg"): plot(rows) for name, plot in PLOTS.items()}
    readme = _TABLE.sub(rf"\g<1>{tables.of_hosts(rows)}\n\g<2>", (CLONE / README).read_text())
    return {SITE: site, OWN: own, README: readme, **drawn}
