"""Imports of packages that are not installed, told from those that an edit broke."""

import pytest

from pilotfish.feedback.unresolved_imports import missing_imports_line, without_missing_imports
from support.values.findings import diagnostic

MISSING = "reportMissingImports"
CODES = {MISSING, "unresolved-import", "2307"}


@pytest.mark.parametrize(
    ("message", "code", "package"),
    [
        pytest.param('Import "requests.adapters" could not be resolved', MISSING, "requests.adapters", id="Pyright"),
        pytest.param("Cannot resolve imported module `rich`", "unresolved-import", "rich", id="ty"),
        pytest.param("Cannot find module '@scope/lib' or its types.", "2307", "@scope/lib", id="TypeScript"),
        pytest.param('Import "app.models" could not be resolved', MISSING, None, id="the project's own"),
        pytest.param('Import ".sibling" could not be resolved', MISSING, None, id="relative in Python"),
        pytest.param("Cannot find module './sibling'.", "2307", None, id="relative in TypeScript"),
        pytest.param('"requests" is not defined', "reportUndefinedVariable", None, id="another error"),
        pytest.param("Unresolved import", "unresolved-import", None, id="a message that names nothing"),
    ],
)  # fmt: skip
def test_only_packages_are_set_apart(message: str, code: str, package: str | None) -> None:
    found = diagnostic(message, code=code)
    kept, packages = without_missing_imports([found], CODES, lambda name: name.partition(".")[0] == "app")
    assert packages == ({package} if package else set())
    assert kept == ([] if package else [found])


def test_they_are_counted_in_one_line() -> None:
    assert missing_imports_line(1) == "1 import could not be resolved: is the environment installed?"
    assert missing_imports_line(1, "Why.") == "1 import could not be resolved: Why."
    assert missing_imports_line(12) == "12 imports could not be resolved: is the environment installed?"
