"""The examples in the library's own documentation run as they stand there, on a real server."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from support.real_servers import make_user, require

MODULES = ["pilotfish.library.workspace", "pilotfish.library.blocking", "pilotfish.library.opta"]


@pytest.mark.server("basedpyright")
@pytest.mark.proves("LIB-1", "OPTA-1", "DOCS-1")
@pytest.mark.parametrize("module", MODULES)
def test_the_examples_are_true(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=False)
    project = user.workspace / "project"
    project.mkdir()
    (project / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (project / "main.py").write_text('from greeting import greet\n\nprint(greet("x"))\n')
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(user.workspace)
    result = doctest.testmod(import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
