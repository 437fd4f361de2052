"""What we are made of: pinned, without code that calls out, and nothing that is fetched unasked."""

import ast
import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "pilotfish").rglob("*.py"))

CALLING_OUT = {
    "urllib.request",
    "http.client",
    "ftplib",
    "smtplib",
    "requests",
    "httpx",
    "aiohttp",
    "urllib3",
    "telnetlib",
}
"""Modules that open connections to other machines. Installing goes through pip and npm, which a person asked for."""

INTERPRETING = {"pickle", "marshal", "shelve", "dill"}
"""Formats that run code when they are read."""


def _imports(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.proves("T41", "OBS-1")
def test_no_module_calls_another_machine_or_runs_what_it_reads() -> None:
    banned = CALLING_OUT | INTERPRETING
    found = {file.name: bad for file in SOURCES if (bad := _imports(ast.parse(file.read_text())) & banned)}
    assert found == {}


@pytest.mark.proves("T13", "T41")
def test_no_program_is_started_through_a_shell() -> None:
    """`shell=True`, `os.system` and `os.popen` would read a file's name as a command."""
    calls = {"os.system", "os.popen", "asyncio.create_subprocess_shell"}
    found: list[str] = []
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "shell" and isinstance(node.value, ast.Constant):
                found += [f"{file.name}:{node.value.lineno}"] if node.value.value else []
            if isinstance(node, ast.Attribute) and ast.unparse(node) in calls:
                found.append(f"{file.name}:{node.lineno}")
    assert found == []


@pytest.mark.proves("T41")
def test_what_the_gate_runs_is_pinned_and_what_users_install_is_bounded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pinned = [one for name in ("dev", "servers", "fuzz", "python") for one in extras[name]]
    assert [one for one in pinned if "==" not in one] == []
    assert [one for one in project["dependencies"] if ">=" not in one or "<" not in one] == []
    packages = json.loads((ROOT / "tools" / "npm-packages.json").read_text())
    assert [name for name, version in packages.items() if not version[:1].isdigit()] == []
    assert "--ignore-scripts" in (ROOT / "tools" / "setup.py").read_text()


@pytest.mark.proves("T41")
def test_the_coding_agents_are_pinned_and_what_they_ask_for_is_of_a_day_that_is_over() -> None:
    hosts = json.loads((ROOT / "tools" / "hosts.json").read_text())
    packages = {name: host.get("npm") or host.get("pypi", {}) for name, host in hosts.items()}
    loose = [name for name, pins in packages.items() if not all(version[:1].isdigit() for version in pins.values())]
    assert loose == []
    days = [datetime.fromisoformat(host["before"]) for host in hosts.values() if "npm" in host]
    assert all(day.replace(tzinfo=UTC) < datetime.now(UTC) for day in days)
    installing = (ROOT / "tools" / "hosts.py").read_text()
    assert "--ignore-scripts" in installing
    assert "--before" in installing
