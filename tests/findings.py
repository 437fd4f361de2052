"""Runs the tests of what was found by attacking it on the sources from before it was closed: each must fail there.

`.venv/bin/python tests/findings.py --help`. The old sources come out of git; the tests, the packages and the language
servers are today's. A test that cannot even be loaded there shows nothing, so all of `FINDINGS` go by ways that were
there before: the command line, the hook, MCP, HTTP, the service, the daemon's socket.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

TOP = Path(__file__).resolve().parent.parent
BEFORE = "c15fcb5"
"""The commit before the first of these findings was closed."""

PAGE = TOP / "docs" / "ATTACKS.md"
BLOCK = re.compile(r"(<!-- findings -->\n).*?(<!-- end of findings -->)", re.DOTALL)
HEADINGS = ("finding", "test", f"failed at {BEFORE}")

FINDINGS: Mapping[str, str] = {
    "fortls, herb, rumdl, sqruff, prisma, perlnavigator, rust-analyzer run code on open": (
        "attack/test_every_way_in.py::test_nothing_of_a_trap_runs"
    ),
    "`PYTHONPATH` with a `sitecustomize.py` reaches a server": (
        "attack/test_variables.py::test_a_module_of_the_repository_is_not_loaded_into_a_real_server"
    ),
    "`NODE_PATH`, `LD_LIBRARY_PATH`, `GOFLAGS`, `VIRTUAL_ENV` … reach a server": (
        "attack/test_variables.py::test_no_variable_that_leads_into_the_root_reaches_a_server"
    ),
    "`PATH` of a client decides which program runs": (
        "attack/test_variables.py::test_a_path_into_the_repository_does_not_decide_which_program_runs"
    ),
    "variables of the first session live on in a shared server": (
        "attack/test_variables.py::test_what_one_client_has_set_is_not_in_the_server_of_another"
    ),
    "an approved program that changed still runs": (
        "attack/test_approvals.py::test_an_approved_program_that_has_changed_does_not_run"
    ),
    "the same, started anew within a session": "attack/test_approvals.py::test_nor_after_a_crash_within_one_session",
    "a file inside an option is not hashed": (
        "attack/test_approvals.py::test_a_file_in_an_option_that_has_changed_stops_the_server"
    ),
    "nor one in `sh -c`, `-m`, `.venv`, settings, initialization, variables": (
        "attack/test_approvals.py::test_an_approval_is_of_every_file_that_is_named"
    ),
    "trust survives replacing the folder": (
        "attack/test_approvals.py::test_a_folder_that_was_cloned_again_is_not_trusted"
    ),
    "`trust --hash` without a person": (
        "attack/test_approvals.py::test_a_hash_that_no_terminal_has_shown_approves_nothing"
    ),
    "the constant hash of an empty offer": "attack/test_approvals.py::test_nothing_is_approved_by_the_hash_of_nothing",
    "types are fetched with npm": "attack/test_network.py::test_no_types_are_fetched_for_a_javascript_file",
    "a schema that a file names is fetched": (
        "attack/test_network.py::test_a_schema_is_fetched_by_the_users_own_setting_alone"
    ),
    "the project can allow it": "attack/test_network.py::test_nor_can_the_project_allow_it",
    "the database that a project names is connected to": (
        "attack/test_network.py::test_a_database_server_waits_until_the_user_has_configured_it"
    ),
    "an edit of a server creates a file that steers": (
        "attack/test_server_output.py::test_no_edit_of_a_server_creates_a_file_that_steers"
    ),
    "the one-time link in another program's arguments": (
        "attack/test_http_neighbours.py::test_the_link_that_works_once_is_in_no_arguments"
    ),
    "a 401 names the token's place": "attack/test_http_neighbours.py::test_a_stranger_is_told_of_no_place",
    "slow strangers keep the owner out": (
        "attack/test_http_neighbours.py::test_the_owner_gets_in_however_many_strangers_stay"
    ),
    "another user's `.git` above the folder is its root": (
        "attack/test_other_owners.py::test_a_repository_of_another_user_above_ours_is_not_its_root"
    ),
    "another user's configuration counts": (
        "attack/test_other_owners.py::test_a_configuration_of_another_user_does_not_count"
    ),
    "the socket or the state folder deleted": (
        "daemon/test_daemon.py::test_a_daemon_that_nobody_can_find_ends_and_the_next_call_starts_another"
    ),
    "`install` in `/` finds no npm": "install/test_install.py::test_npm_is_found_wherever_the_person_stands",
}
"""What was found, and the test of it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only tests whose name has one of these", metavar="WORD")
    parser.add_argument("--write", action="store_true", help="put the rows into the table of docs/ATTACKS.md")
    options = parser.parse_args()
    chosen = [test for test in FINDINGS.values() if not options.words or any(word in test for word in options.words)]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = _run(_old_tree(Path(os.path.realpath(folder))), chosen)
    rows = [(finding, test, outcomes[test]) for finding, test in FINDINGS.items() if test in chosen]
    for row in rows:
        print(" | ".join(row))
    if options.write:
        _write(rows)
    return 0 if all(outcome.startswith("failed") for _, _, outcome in rows) else 1


def _old_tree(folder: Path) -> Path:
    """The old sources with the tests of today, and an interpreter that imports these."""
    archive = subprocess.run(["git", "-C", str(TOP), "archive", BEFORE], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    shutil.rmtree(folder / "tests")
    shutil.copytree(TOP / "tests", folder / "tests")
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


def _run(tree: Path, tests: Sequence[str]) -> Mapping[str, str]:
    """For each test, how many of its cases failed."""
    report = tree / "report.xml"
    command = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([*command, *(f"tests/{test}" for test in tests)], cwd=tree, check=False)
    counts = {test: Counter[str]() for test in tests}
    for test, outcome in _cases(report):
        counts[test][outcome] += 1
    return {test: _in_words(count) for test, count in counts.items()}


def _cases(report: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(report).iter("testcase"):
        module = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
        yield f"{module}.py::{case.attrib['name'].partition('[')[0]}", next(iter(sorted(outcomes)), "passed")


def _in_words(count: Counter[str]) -> str:
    if not count["failure"]:
        return ", ".join(f"{outcome}: {times}" for outcome, times in count.items()) or "not run"
    return "failed" if count.total() == 1 else f"failed ({count['failure']} of {count.total()} cases)"


def _write(rows: Sequence[tuple[str, ...]]) -> None:
    """Put the rows into the table of the page, in place of those before."""
    text = PAGE.read_text()
    found = BLOCK.search(text)
    known = {row[0]: row for row in _rows(found[0] if found else "")} | {row[0]: _shown(row) for row in rows}
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(known[finding] for finding in FINDINGS if finding in known)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    PAGE.write_text(BLOCK.sub(lambda block: f"{block[1]}\n{table}\n\n{block[2]}", text))


def _shown(row: tuple[str, ...]) -> tuple[str, ...]:
    finding, test, outcome = row
    return finding, f"`{test}`", outcome


def _rows(table: str) -> Iterator[tuple[str, ...]]:
    for line in table.splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(HEADINGS) and cells[0] in FINDINGS:
            yield cells


if __name__ == "__main__":
    sys.exit(main())
