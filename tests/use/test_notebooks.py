"""A notebook is checked as one document, and every error is told with its cell, as is every use."""

import json
from pathlib import Path
from typing import Any

import pytest

import pilotfish
from pilotfish.operations.render import text_of
from support.servers.real import User, make_user, require

PATIENT = {"timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": 60_000}}
CELLS = [
    ("markdown", "# Names\n"),
    ("code", "%matplotlib inline\nimport greeting\nfiles = !ls\nfiles.grep('x')"),
    ("code", "%%bash\necho $HOME"),
    ("code", "%%time\nasync def name() -> str:\n    return 'é'\n\nfound = await name()\nfound"),
    ("code", "print('é'); greeting.greet(found)"),
]


def notebook(last: str) -> str:
    cells: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
        for number, (kind, source) in enumerate([*CELLS[:-1], ("code", last)])
    ]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> User:
    require([server])
    user = make_user(tmp_path, [server], PATIENT, trusted=False)
    (user.workspace / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (user.workspace / "names.ipynb").write_text(notebook(CELLS[-1][1]))
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    return user


@pytest.mark.parametrize("server", [pytest.param(one, marks=pytest.mark.server(one)) for one in ("basedpyright", "ty")])
def test_an_error_in_a_notebook_is_told_with_its_cell(user: User) -> None:
    clean, file = notebook(CELLS[-1][1]), user.workspace / "names.ipynb"
    with pilotfish.open_blocking(user.workspace) as workspace:
        found = workspace.check(".").unwrap()
        assert found == {"greeting.py": (), "names.ipynb": ()}, "magics, awaits and results of cells are no errors"
        file.write_text(notebook("print('é'); greeting.greet(len(found))"))
        assert "ERROR [cell 5:1:28] Argument" in workspace.after_edit("names.ipynb").text
        answer = workspace.check("names.ipynb")
        assert text_of(answer).startswith("names.ipynb:cell 5:1:28  error: Argument")
        (one,) = (answer.unwrap() or {})["names.ipynb"]
        assert (one.cell, one.cell_line, one.character) == (5, 1, 28)
        assert one.line > 1, "as questions count, in the text of all cells"
        file.write_text(clean)
        assert workspace.after_edit("names.ipynb").text == ""
        (user.workspace / "greeting.py").write_text("def greet(name: bytes) -> bytes:\n    return name\n")
        told = workspace.after_edit("greeting.py").text
        assert '<diagnostics file="names.ipynb">\nOPEN [cell 5:1:28]' in told, "broken by an edit of another file"


@pytest.mark.server("ty")
@pytest.mark.parametrize("server", ["ty"])
def test_uses_in_a_notebook_are_found_and_it_is_never_written(user: User) -> None:
    before = (user.workspace / "names.ipynb").read_text()
    with pilotfish.open_blocking(user.workspace) as workspace:
        uses = workspace.references("greeting.py", symbol="greet").unwrap() or ()
        assert [(use.path, use.cell, use.cell_line) for use in uses if use.cell] == [("names.ipynb", 5, 1)]
        renamed = workspace.rename("greeting.py", symbol="greet", new_name="hello", apply=True)
        assert not renamed.ok
        assert "is a notebook" in renamed.errors[0].message
    assert (user.workspace / "names.ipynb").read_text() == before


@pytest.mark.server("ty")
@pytest.mark.parametrize("server", ["ty"])
def test_a_notebook_of_another_language_is_said_not_to_be_checked(user: User) -> None:
    other: dict[str, Any] = {"cells": [], "metadata": {"kernelspec": {"language": "R"}}, "nbformat": 4}
    (user.workspace / "names.ipynb").write_text(json.dumps(other))
    with pilotfish.open_blocking(user.workspace) as workspace:
        answer = workspace.check("names.ipynb")
    assert not answer.ok
    assert "its cells are in r" in answer.errors[0].message
