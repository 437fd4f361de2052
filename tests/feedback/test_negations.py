"""Edits that change the meaning and hardly a word: whatever they break is among the files that may be affected."""

from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import AffectedFiles
from pilotfish.service.diagnostics.project_words import ProjectWords
from support.oracles.negations import Negation, basedpyright, negations, newly_broken, written

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

PYTHON = negations("python")


@pytest.mark.parametrize("case", PYTHON, ids=lambda case: case.name)
async def test_whatever_an_edit_breaks_may_be_affected(tmp_path: Path, case: Negation) -> None:
    written(tmp_path, case.after)
    root = AbsPath(str(tmp_path))
    found = await AffectedFiles(ProjectWords()).of_edits(root, case.edits(tmp_path), (".py", ".pyi"), 60.0)
    assert case.broken <= {str(Path(path).relative_to(tmp_path)) for path in found.files}
    assert found.complete


@pytest.mark.slow
@pytest.mark.server("basedpyright")
def test_the_table_says_what_the_checker_says(tmp_path: Path) -> None:
    assert newly_broken(PYTHON, tmp_path, basedpyright) == {case.name: case.broken for case in PYTHON}


def test_the_table_is_long_and_says_nothing_twice() -> None:
    names = [case.name for case in PYTHON]
    assert len(set(names)) == len(names) >= 60
