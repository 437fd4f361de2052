"""The pages of what was found name tests that are there, and what they said on the sources from before."""

import re

import pytest

from findings import PAGE, ROUNDS, TOP

TESTS = TOP / "tests"


@pytest.mark.proves("T46")
def test_every_finding_has_a_test_that_is_still_there_and_failed_before() -> None:
    page = PAGE.read_text()
    findings = [(found, test, one.before) for one in ROUNDS for found, test in one.findings.items()]
    files = (file.read_text() for file in TESTS.rglob("test_*.py"))
    there = {name for text in files for name in re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE)}
    assert [one for one in findings if one[1].partition("::")[2] not in there] == []
    assert [one for one in findings if f"| {one[0]} | `{one[1]}` | {one[2]}: failed" not in page] == []


def test_the_page_names_only_tests_that_are_there() -> None:
    named = re.findall(r"`((?:[\w/]+/)?test_\w+\.py)`", PAGE.read_text())
    assert named
    places = [(TESTS / "attack" / name, TESTS / name, TOP / name) for name in named]
    assert [name for name, them in zip(named, places, strict=True) if not any(one.exists() for one in them)] == []
