"""Is an error ever called clean? Every server × case of `tests/support/services/clean.py`, by the hook and by `check`.

`python bench/clean.py [--only TEXT] [--path FOLDER] [--write]` prints one row for each case; `--write` puts the rows
into the table of docs/RELIABILITY.md; rows that were not played stay. `--path` names a folder with further servers.
For Rust with the source of its library, `RUST_SRC_PATH` names that. Exits 1 after a false clean.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import anyio

CLONE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CLONE / "tests"))

from pilotfish.servers.catalogue import load
from support.services.clean import CASES, WAYS, WRONG, Case, Way, play
from support.services.real import PROGRAMS

PAGE = CLONE / "docs" / "RELIABILITY.md"
BLOCK = re.compile(r"(<!-- begin of the matrix -->\n).*?(<!-- end of the matrix -->)", re.DOTALL)


def main() -> int:
    options = _options()
    if options.path:
        os.environ["PATH"] = os.pathsep.join([options.path, os.environ["PATH"]])
    rows: list[tuple[Case, list[str]]] = []
    for case in CASES:
        if options.only and not re.search(options.only, str(case)):
            continue
        if not _is_installed(case):
            print(f"{case!s:45} not installed")
            continue
        rows.append((case, [_played(case, way) for way in WAYS]))
        print(f"{case!s:45}", *(f"{way}: {said:60}" for way, said in zip(WAYS, rows[-1][1], strict=True)), flush=True)
    false = [case for case, said in rows if any(one.startswith(WRONG) for one in said)]
    print(f"{len(rows)} cases, {len(false)} with a false clean")
    if options.write:
        write({(case.server, case.name): said for case, said in rows})
    return 1 if false else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a regular expression that `server: case` must match")
    parser.add_argument("--path", help="a folder with programs")
    parser.add_argument("--write", action="store_true", help="write the table into docs/RELIABILITY.md")
    return parser.parse_args()


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
    head = f"| server | case | {' | '.join(WAYS)} |\n|---|---|{'---|' * len(WAYS)}\n"
    listed = [(case.server, case.name) for case in CASES if (case.server, case.name) in rows]
    table = head + "".join(f"| {' | '.join([*place, *rows[place]])} |\n" for place in listed)
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + table + found[2], page))


if __name__ == "__main__":
    sys.exit(main())
