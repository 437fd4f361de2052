"""The examples in the library's own documentation run as they stand there, on a real server."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from support.servers.real import make_user, require

MODULES = ["pilotfish.library.workspace", "pilotfish.library.blocking", "pilotfish.library.opta"]
PATIENT = {"timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": 60_000, "requestTimeoutMs": 60_000}}
"""The examples are about what is said, not about how soon."""

PAGE = Path(__file__).parents[2] / "docs" / "library.md"

pytestmark = [pytest.mark.server("basedpyright"), pytest.mark.proves("LIB-1", "DOCS-1")]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the examples speak of, below the current one."""
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], PATIENT, trusted=False)
    folder = user.workspace / "project"
    folder.mkdir()
    (folder / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (folder / "main.py").write_text('from greeting import greet\n\nprint(greet("x"))\n')
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(user.workspace)


@pytest.mark.proves("OPTA-1")
@pytest.mark.parametrize("module", MODULES)
def test_the_examples_are_true(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


def test_the_page_about_the_library_is_true() -> None:
    examples = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    result = doctest.DocTestRunner().run(parsed)
    assert result.attempted > 0
    assert result.failed == 0
