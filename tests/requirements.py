"""The manifest: what must hold (`requirements.toml`), and the tests that prove it, read from their sources.

`python tests/requirements.py` prints the rows that lack a proof; with rows as arguments it prints their proofs.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent

LISTS = ("requirements", "conformance", "faults", "promises", "threats", "attacks")
"""Tables of the manifest that state rows; the others say something about rows."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def manifest() -> dict[str, dict[str, str]]:
    return tomllib.loads((TESTS / "requirements.toml").read_text())


def stated() -> dict[str, str]:
    """Row → what it says."""
    return {row: words for name in LISTS for row, words in manifest()[name].items()}


@cache
def proofs() -> dict[str, set[str]]:
    """Row → the tests that name it, as `file::test`; a mark of a whole file counts for the file."""
    found: dict[str, set[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for row, test in _marks(ast.parse(file.read_text())):
            found.setdefault(row, set()).add(f"{file.relative_to(TESTS)}::{test}")
    return found


def without_proof() -> list[str]:
    """Rows that neither a test proves nor a figure shows, and that no surface still to come will."""
    shown = {*proofs(), *manifest()["pending"], *manifest()["measured"]}
    return [row for row in stated() if row not in shown]


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Rows and the test that proves them, wherever the mark stands: decorator, `pytestmark`, `pytest.param`."""
    for statement in tree.body:
        name = statement.name if isinstance(statement, Function) else "*"
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves":
                values = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
                yield from ((str(row), name) for row in values)


def main(rows: list[str]) -> None:
    for row in rows:
        print(row, stated()[row], *sorted(proofs().get(row, {"no proof"})), sep="\n  ")
    if not rows:
        print(f"{len(stated())} rows, {len(proofs())} proven; without proof: {' '.join(without_proof()) or 'none'}")
        print("pending:", *(f"{row}{' (proven now)' * (row in proofs())}" for row in manifest()["pending"]))


if __name__ == "__main__":
    main(sys.argv[1:])
