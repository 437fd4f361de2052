"""Every row of the manifest has a proof, and every proof is of a row."""

import pytest

from requirements import TESTS, manifest, proofs, stated, without_proof


@pytest.mark.proves("P29", "P30")
def test_every_row_has_a_proof() -> None:
    assert without_proof() == []


def test_tests_name_only_rows_that_exist() -> None:
    assert sorted(proofs().keys() - stated().keys()) == []


@pytest.mark.parametrize(
    ("table", "letter", "count"),
    [("conformance", "C", 117), ("faults", "F", 104), ("promises", "P", 34), ("threats", "T", 57)],
)
def test_a_list_has_all_its_rows(table: str, letter: str, count: int) -> None:
    assert list(manifest()[table]) == [f"{letter}{number}" for number in range(1, count + 1)]


FOUND = (3, 4, 1, 3, 1, 2, 3, 2, 3, 2, 3, 9, 8)
"""How many parts each finding of one round has."""

OTHERS = {"found before, and tried again": 24, "changes, and a question at once": 9, "load": 7, "held": 20,
          "new ideas": 30, "more of them": 1}  # fmt: skip
"""And how many attacks each other list has."""


def test_every_attack_of_every_list_has_its_row() -> None:
    rows = [
        f"A{group}.{number}"
        for group, count in enumerate((*FOUND, *OTHERS.values()), 1)
        for number in range(1, count + 1)
    ]
    assert list(manifest()["attacks"]) == rows


def test_every_proof_is_a_test_that_is_collected() -> None:
    tests = {test for named in proofs().values() for test in named}
    assert {test for test in tests if not test.partition("::")[2].startswith(("test_", "*"))} == set()
    assert not any("collect_ignore" in file.read_text() for file in TESTS.rglob("conftest.py"))


@pytest.mark.parametrize("table", ["pending", "measured", "beyond"])
def test_only_rows_that_exist_are_spoken_of(table: str) -> None:
    assert sorted(manifest()[table].keys() - stated().keys()) == []


def test_what_measures_a_row_is_there() -> None:
    files = {row: command.split()[0] for row, command in manifest()["measured"].items()}
    assert {row: file for row, file in files.items() if not (TESTS.parent / file).is_file()} == {}


def test_what_lies_beyond_this_machine_is_proven_as_far_as_it_reaches() -> None:
    assert sorted(manifest()["beyond"].keys() - proofs().keys() - manifest()["pending"].keys()) == []
