"""The tree stays easy to find one's way in: what `tools/structure.py` lists is empty, or an exception with a reason.

An exception that is no longer needed fails, too. `./check` prints the fourth list, of small modules.
"""

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "structure.py"

CROWDED: dict[str, str] = {
    "pilotfish/operations": "being renamed",
}
"""Folders of more than 25 modules, and why."""

SAME_NAME: dict[str, str] = {}
"""Types that several modules define under one name, and why."""

BEING_RENAMED = frozenset(
    [
        "Answer",
        "Asked",
        "Candidate",
        "Change",
        "Changes",
        "Choice",
        "Diagnostic",
        "Entry",
        "Exchange",
        "Feedback",
        "FileChange",
        "Finding",
        "Folder",
        "Form",
        "Found",
        "Limits",
        "Located",
        "Location",
        "Missing",
        "Operation",
        "Outcome",
        "Pool",
        "Pull",
        "Row",
        "Search",
        "Selection",
        "Snapshot",
        "State",
        "Step",
        "Tree",
        "Wanted",
        "Workspace",
    ]
)

CIRCLES: dict[str, str] = {}
"""Modules that import each other, and why."""


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_folder_is_crowded(structure: ModuleType) -> None:
    only_exceptions([line.partition(":")[0] for line in structure.crowded()], CROWDED)


def test_one_type_name_means_one_thing(structure: ModuleType) -> None:
    only_exceptions(structure.repeated_names().keys() - BEING_RENAMED, SAME_NAME)


def test_no_modules_import_each_other(structure: ModuleType) -> None:
    only_exceptions([" ".join(group) for group in structure.circles()], CIRCLES)


def only_exceptions(found: Iterable[str], exceptions: Iterable[str]) -> None:
    listed, allowed = set(found), set(exceptions)
    assert sorted(listed - allowed) == [], "new; rename it, or give the reason here"
    assert sorted(allowed - listed) == [], "no longer needed; remove the exception"
