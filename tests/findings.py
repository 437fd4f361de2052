"""Runs the tests of what was found by attacking it on the sources from before it was closed: each must fail there.

`.venv/bin/python tests/findings.py --help`. The old sources and the tests of their round come out of git; the packages
and the language servers are today's. A test that cannot even be loaded there shows nothing, so all of them go by ways
that were there before: the command line, the hook, MCP, HTTP, the service, the daemon's socket.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "ATTACKS.md"
BLOCK = re.compile(r"(<!-- findings -->\n).*?(<!-- end of findings -->)", re.DOTALL)
HEADINGS = ("finding", "test", "on the sources of")


@dataclass(frozen=True)
class Round:
    """What was found in one round, see `findings.toml`."""

    before: str
    tests: str
    findings: Mapping[str, str]


ROUNDS = [Round(**one) for one in tomllib.loads((TOP / "tests" / "findings.toml").read_text())["round"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only tests whose name has one of these", metavar="WORD")
    parser.add_argument("--write", action="store_true", help="put the rows into the table of docs/ATTACKS.md")
    options = parser.parse_args()
    rows = [row for one in ROUNDS for row in _played(one, options.words)]
    for row in rows:
        print(" | ".join(row))
    if options.write:
        _write(rows)
    return 0 if all(": failed" in outcome for _, _, outcome in rows) else 1


def _played(one: Round, words: Sequence[str]) -> Sequence[tuple[str, str, str]]:
    """A row for each finding whose test has one of the words in its name."""
    chosen = [test for test in one.findings.values() if not words or any(word in test for word in words)]
    if not chosen:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = _run(_old_tree(Path(os.path.realpath(folder)), one), chosen)
    return [(found, test, f"{one.before}: {outcomes[test]}") for found, test in one.findings.items() if test in chosen]


def _old_tree(folder: Path, one: Round) -> Path:
    """The old sources with the tests of the round, and an interpreter that imports these."""
    _unpack(folder, one.before)
    shutil.rmtree(folder / "tests")
    _unpack(folder, one.tests, "tests")
    (folder / ".tools").symlink_to(TOP / ".tools")
    here = Path(sys.executable).parent
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (packages,) = folder.glob(".venv/lib/python3*/site-packages")
    (todays,) = here.parent.glob("lib/python3*/site-packages")
    (packages / "before.pth").write_text(f"{folder}/src\n{todays}\n")
    for program in here.iterdir():
        if not (folder / ".venv" / "bin" / program.name).exists():
            (folder / ".venv" / "bin" / program.name).symlink_to(program)
    return folder


def _unpack(folder: Path, commit: str, *paths: str) -> None:
    archive = subprocess.run(["git", "-C", str(TOP), "archive", commit, *paths], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


def _run(tree: Path, tests: Sequence[str]) -> Mapping[str, str]:
    """For each test, how many of its cases failed."""
    report = tree / "report.xml"
    command = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([*command, *(f"tests/{test}" for test in tests)], cwd=tree, check=False)
    counts = {test: Counter[str]() for test in tests}
    for (test, _), outcome in dict(sorted(_cases(report), key=lambda case: case[1] == "failure")).items():
        counts[test][outcome] += 1
    return {test: _in_words(count) for test, count in counts.items()}


def _cases(report: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """A test and its case, and what came of it; one that failed may also have an error after its end."""
    for case in ET.parse(report).iter("testcase"):
        module = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
        name, _, values = case.attrib["name"].partition("[")
        yield (f"{module}.py::{name}", values), next(iter(sorted(outcomes)), "passed")


def _in_words(count: Counter[str]) -> str:
    if not count["failure"]:
        return ", ".join(f"{outcome}: {times}" for outcome, times in count.items()) or "not run"
    return "failed" if count.total() == 1 else f"failed ({count['failure']} of {count.total()} cases)"


def _write(rows: Sequence[tuple[str, ...]]) -> None:
    """Put the rows into the table of the page, in place of those before."""
    text = PAGE.read_text()
    found = BLOCK.search(text)
    known = {row[0]: row for row in _rows(found[0] if found else "")} | {row[0]: _shown(row) for row in rows}
    lines = [
        HEADINGS,
        ("---",) * len(HEADINGS),
        *(known[found] for one in ROUNDS for found in one.findings if found in known),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    PAGE.write_text(BLOCK.sub(lambda block: f"{block[1]}\n{table}\n\n{block[2]}", text))


def _shown(row: tuple[str, ...]) -> tuple[str, ...]:
    finding, test, outcome = row
    return finding, f"`{test}`", outcome


def _rows(table: str) -> Iterator[tuple[str, ...]]:
    for line in table.splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(HEADINGS) and any(cells[0] in one.findings for one in ROUNDS):
            yield cells


if __name__ == "__main__":
    sys.exit(main())
