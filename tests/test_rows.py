"""Every row that must hold has a test that names it."""

import re

import pytest

from rows import CORE_ROWS, LATER, proven

KNOWN = re.compile(
    r"C([1-9]|[1-9]\d|10\d|11[0-7])|F([1-9]|[1-8]\d|9[0-2])|T([1-9]|[1-3]\d|4[0-5])|P([1-9]|[12]\d|3[0-4])"
    r"|(CFG|TRUST|REG|RPC|DOC|DIAG|FMT|POOL|WATCH|PATH|OPS|LIB|MCP|OPTA|SVC|HTTP|HOOK|TUI|CLI|OBS|BENCH|DOCS)-\d+"
)


@pytest.mark.parametrize("row", [row for row in CORE_ROWS if row not in LATER])
def test_the_row_is_proven_by_a_test(row: str) -> None:
    assert row in proven(), f"no test names {row}"


def test_a_row_for_later_is_not_proven_already() -> None:
    assert not set(LATER) & set(proven())


def test_tests_name_only_rows_that_exist() -> None:
    assert [row for row in proven() if not KNOWN.fullmatch(row)] == []
