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


@pytest.mark.parametrize("table", ["pending", "measured", "beyond"])
def test_only_rows_that_exist_are_spoken_of(table: str) -> None:
    assert sorted(manifest()[table].keys() - stated().keys()) == []


def test_what_measures_a_row_is_there() -> None:
    files = {row: command.split()[0] for row, command in manifest()["measured"].items()}
    assert {row: file for row, file in files.items() if not (TESTS.parent / file).is_file()} == {}


def test_what_lies_beyond_this_machine_is_proven_as_far_as_it_reaches() -> None:
    assert sorted(manifest()["beyond"].keys() - proofs().keys() - manifest()["pending"].keys()) == []
