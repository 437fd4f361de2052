"""Servers check what the project asked for: as their own command line does, and linters only where they are set up."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pilotfish.servers.catalogue import load
from pilotfish.servers.spec import Role
from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.servers.real import NPM, PYPI, User, make_user, require

pytestmark = pytest.mark.proves("REG-8")

CONFIG = {"timing": {"diagnosticsWaitTimeoutMs": 60_000}, "feedback": {"includeSeverities": ["error", "warning"]}}

UNTYPED = """\
import os


def first(rows, _unused=None):
    return rows[0]


class Base:
    def run(self, count: int) -> int:
        return count


class Derived(Base):
    def run(self, count: str) -> int:
        return len(count)


number: int = first("word").upper()
print(Derived()._hidden)
"""
"""Each mode of the checker finds something else in it."""


def checked(user: User, name: str) -> list[tuple[int, str]]:
    """Line and rule of the errors and warnings that `pilotfish check` finds."""
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", "check", name, "--json"],
        cwd=user.workspace,
        env={**user.environment, NO_DAEMON: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    answer: Any = json.loads(done.stdout)
    assert answer["meta"]["state"] == "fresh", answer
    shown = [one for one in answer["data"][name] if one["severity"] in {"error", "warning"}]
    return sorted((one["line"], one["code"]) for one in shown)


def by_command_line(folder: Path, configuration: Path) -> list[tuple[int, str]]:
    """The same of the checker's own program."""
    done = subprocess.run(
        [PYPI / "basedpyright", "--outputjson", "--project", configuration],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    found: Any = json.loads(done.stdout)["generalDiagnostics"]
    return sorted((one["range"]["start"]["line"] + 1, one["rule"]) for one in found)


@pytest.mark.slow
@pytest.mark.server("basedpyright")
@pytest.mark.parametrize(
    ("asked", "mode"), [(None, "standard"), ("basic", "basic"), ("strict", "strict")], ids=["nothing", "less", "more"]
)
def test_a_checker_is_as_strict_as_the_project_asked(tmp_path: Path, asked: str | None, mode: str) -> None:
    """What nobody asked for is that one mode of basedpyright, whose own default goes beyond all others."""
    require(["basedpyright"])
    user = make_user(tmp_path, ["basedpyright"], CONFIG, trusted=False)
    (user.workspace / "a.py").write_text(UNTYPED)
    if asked is not None:
        (user.workspace / "pyproject.toml").write_text(f'[tool.basedpyright]\ntypeCheckingMode = "{asked}"\n')
    beside = tmp_path / "configuration.json"
    beside.write_text(json.dumps({"include": [str(user.workspace)], "typeCheckingMode": mode}))
    assert checked(user, "a.py") == by_command_line(user.workspace, beside) != []


PROJECTS: Mapping[str, tuple[str, str, str, str, str]] = {
    "ruff": ("a.py", "import os\n", "ruff.toml", "", "F401"),
    "eslint": (
        "a.js",
        "const unused = 1;\n",
        "eslint.config.mjs",
        'export default [{ rules: { "no-unused-vars": "error" } }];\n',
        "no-unused-vars",
    ),
}
"""Server → a file with something to find, its text, the configuration, its text, the rule."""


@pytest.mark.slow
@pytest.mark.parametrize("server", [pytest.param(name, marks=pytest.mark.server(name)) for name in PROJECTS])
def test_a_linter_speaks_only_where_it_is_configured(tmp_path: Path, server: str) -> None:
    require([server])
    user = make_user(tmp_path, [server], CONFIG, trusted=True)
    name, text, configuration, settings, rule = PROJECTS[server]
    (user.workspace / name).write_text(text)
    (user.workspace / "package.json").write_text('{"name": "a"}\n')
    (user.workspace / "node_modules").symlink_to(NPM.parent)
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", "touched", name, "--kind", "write"],
        cwd=user.workspace,
        env={**user.environment, NO_DAEMON: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0)
    (user.workspace / configuration).write_text(settings)
    assert checked(user, name) == [(1, rule)]


def test_every_linter_of_the_catalogue_needs_a_configuration() -> None:
    """Those that check one kind of file, whose name alone says what it is, need none."""
    beside = {name: spec for name, spec in load().items() if spec.rank.role is Role.COMPANION}
    unasked = {name for name, spec in beside.items() if not spec.root.required}
    assert unasked == {"ansible", "azure-pipelines", "docker-compose", "github-actions", "termux"}
