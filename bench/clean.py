"""Is an error ever called clean? Every server × case of `tests/support/services/clean.py`, by the hook and by `check`.

`python bench/clean.py [--only PATTERN] [--path FOLDER] [--write]` prints one row for each case; `--write` puts the rows
into the table of docs/RELIABILITY.md; rows that were not played stay. `--path` names a folder with further servers.
For Rust with the source of its library, `RUST_SRC_PATH` names that. Exits 1 after a false clean.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import anyio
from harness.pages import options, table
from harness.servers import CLONE

from pilotfish.servers.catalogue import load
from support.services.clean import CASES, WAYS, WRONG, Case, Way, play
from support.services.real import PROGRAMS

PAGE = CLONE / "docs" / "RELIABILITY.md"
BLOCK = re.compile(r"(<!-- begin of the matrix -->\n).*?(<!-- end of the matrix -->)", re.DOTALL)


def main() -> int:
    chosen = options(__doc__, only="", path="", write=False)
    if chosen.path:
        os.environ["PATH"] = os.pathsep.join([chosen.path, os.environ["PATH"]])
    rows: list[tuple[Case, list[str]]] = []
    for case in CASES:
        if not re.search(chosen.only, str(case)):
            continue
        if not _is_installed(case):
            print(f"{case!s:45} not installed")
            continue
        rows.append((case, [_played(case, way) for way in WAYS]))
        print(f"{case!s:45}", *(f"{way}: {said:60}" for way, said in zip(WAYS, rows[-1][1], strict=True)), flush=True)
    false = [case for case, said in rows if any(one.startswith(WRONG) for one in said)]
    print(f"{len(rows)} cases, {len(false)} with a false clean")
    if chosen.write:
        write({(case.server, case.name): said for case, said in rows})
    return 1 if false else 0


def _is_installed(case: Case) -> bool:
    if case.needs is not None and case.needs not in os.environ:
        return False
    path = os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]])
    command = case.options.get("command") or load()[case.server].command
    return shutil.which(command[0], path=path) is not None


def _played(case: Case, way: Way) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return anyio.run(play, case, way, Path(folder).resolve())


def write(played: dict[tuple[str, str], list[str]]) -> None:
    """Write the rows into the page; those that were not played stay as they are."""
    page = PAGE.read_text()
    block = BLOCK.search(page)
    assert block is not None
    lines = [line.strip("| ").split(" | ") for line in block[0].splitlines() if line.startswith("| ")]
    rows = {(cells[0], cells[1]): cells[2:] for cells in lines[1:]}
    rows |= {place: [one.replace("|", "/") for one in said] for place, said in played.items()}
    listed = [(case.server, case.name) for case in CASES if (case.server, case.name) in rows]
    shown = table(("server", "case", *WAYS), [[*place, *rows[place]] for place in listed])
    PAGE.write_text(BLOCK.sub(lambda found: f"{found[1]}{shown}\n{found[2]}", page))


if __name__ == "__main__":
    sys.exit(main())
