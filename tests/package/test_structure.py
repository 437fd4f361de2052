"""The tree stays easy to find one's way in: what `tools/structure.py` lists is empty, or an exception with a reason.

An exception that is no longer needed fails, too. `./check` prints the fourth list, of small modules.
"""

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "structure.py"

CROWDED: dict[str, str] = {}
"""Folders of more than 25 modules, and why."""

SAME_NAME: dict[str, str] = {
    "Diagnostic: pilotfish.api.answers, pilotfish.model": (
        "both are LSP's word: the answer's has paths, lines from 1 and names of severities, the model's has ranges"
    ),
    "Workspace: pilotfish.library.workspace, pilotfish.service.workspace": (
        "the library's is the public name that users import; the service's is the configuration in force behind it"
    ),
}
"""Types that several modules define under one name, and why."""

CIRCLES: dict[str, str] = {}
"""Modules that import each other, and why."""


LONG: dict[str, str] = {
    "pilotfish.api.answers": "a list of shapes, one after the other, with one invariant",
    "pilotfish.system.watching.tree": "one tree of watches, of which every method keeps the same invariant",
    "pilotfish.service.diagnostics.edit_feedback.judge": "one edit, step by step",
    "pilotfish.service.service.__init__": "the service is put together: a line for each part",
}
"""Functions over 40 lines and modules over 500, and why."""


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
    found = structure.repeated_names()
    only_exceptions([f"{name}: {', '.join(places)}" for name, places in found.items()], SAME_NAME)


def test_no_modules_import_each_other(structure: ModuleType) -> None:
    only_exceptions([" ".join(group) for group in structure.circles()], CIRCLES)


def test_functions_and_modules_are_short(structure: ModuleType) -> None:
    longer = {name: lines for name, lines in structure.long().items() if name not in LONG}
    assert longer == {}, "split it by noun, or give the reason here"


def test_a_circle_through_import_module_is_one(
    structure: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "SOURCE", tmp_path)
    (tmp_path / "verbs").mkdir()
    (tmp_path / "verbs" / "check.py").write_text("import table\n")
    (tmp_path / "other.py").write_text("import table\n")
    for text in ('import_module(f"verbs.{name}")', 'X = "verbs.check"\nimportlib.import_module(f"{name}")'):
        (tmp_path / "table.py").write_text(f"{text}\n")
        assert ["table", "verbs.check"] in [group[-2:] for group in structure.circles()]


def only_exceptions(found: Iterable[str], exceptions: Iterable[str]) -> None:
    listed, allowed = set(found), set(exceptions)
    assert sorted(listed - allowed) == [], "new; rename it, or give the reason here"
    assert sorted(allowed - listed) == [], "no longer needed; remove the exception"
