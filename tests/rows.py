"""Which rows of the requirement lists must have a test, and which belong to parts that are not built yet.

A test names the rows that it proves with `@pytest.mark.proves("C26", …)`: C is `conformance.md`, F is `faults.md`.
"""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent

LATER: dict[str, str] = {}
"""Conformance rows whose part is not built yet, with the part that will prove them."""

CORE_ROWS = [f"C{row}" for row in (*range(1, 83), *range(101, 118))]
"""The rows of the protocol core, the client and one real server."""


@cache
def proven() -> dict[str, set[str]]:
    """Row → the test files that name it, read from the sources."""
    rows: dict[str, set[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(file.read_text())
        named = [row for node in ast.walk(tree) for row in _marks(node)]
        for row in named:
            rows.setdefault(row, set()).add(str(file.relative_to(TESTS)))
    return rows


def _marks(node: ast.AST) -> list[str]:
    """The rows named by a `proves(...)` call, wherever it stands: decorator, `pytestmark`, `pytest.param`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves"):
        return []
    return [
        argument.value
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
