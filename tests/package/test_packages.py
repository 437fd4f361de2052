"""What `tools/package.py` publishes, and the marketplaces that Claude Code and Codex read from the repository."""

import importlib
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from pilotfish.version import VERSION
from support.servers.real import REPOSITORY

pytestmark = pytest.mark.proves("DOCS-1")

ADDRESS = "https://example.org/you/pilotfish"


def test_a_python_without_what_the_builder_needs_is_told_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-S", REPOSITORY / "tools/package.py"], capture_output=True, text=True, check=False
    )
    how = "run `python3 tools/setup.py quick`, and then this with `.venv/bin/python`"
    assert (done.returncode, done.stderr) == (1, f"{sys.executable} has no module packaging: {how}\n")


def test_what_sets_up_a_clone_says_what_it_can_do_before_it_does_anything(tmp_path: Path) -> None:
    for words in ((), ("--help",), ("everything",)):
        argv = [sys.executable, REPOSITORY / "tools/setup.py", *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
        assert (done.returncode, done.stdout) == (1, "")
        assert "`python3 tools/setup.py demo|quick|check|hosts|ray`" in done.stderr


def test_a_package_comes_as_it_is_here_but_where_it_has_nothing_for_that_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some systems get the last cryptography that has a wheel for them."""
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "tools"), *sys.path])
    bundle = importlib.import_module("bundle")
    ours = f"cryptography=={metadata.version('cryptography')}"
    others = {"darwin-x86_64": "cryptography<49", "win32-aarch64": "cryptography<47"}
    for system in tomllib.loads((REPOSITORY / "packaging/channels.toml").read_text())["platforms"]:
        needed = bundle.of_each(bundle.needs("pilotfish", system, "3.11", ["mcp", "serve"]))
        named = [one for one in needed if one.startswith(("cryptography", "pilotfish"))]
        assert named == [others.get(system, ours)], system


@pytest.mark.slow
def test_what_pypi_shows_has_links_that_work_there(dist: Path) -> None:
    wheel = zipfile.ZipFile(next(dist.glob("*.whl")))
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    page = metadata.partition("\n\n")[2]
    assert [target for target in re.findall(r"\]\(([^)]+)\)", page) if "://" not in target] == []
    assert f"git clone {ADDRESS}`" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "files"),
    [
        ("pilotfish-pi", {"pilotfish.ts"}),
        ("pilotfish-opencode", {"pilotfish.ts"}),
        ("pilotfish", {"pilotfish.js", "pilotfish.pyz", "README.md"}),
    ],
)
def test_an_npm_package_has_what_it_runs_and_no_more(package: str, files: set[str], dist: Path) -> None:
    with tarfile.open(dist / f"{package}-{VERSION}.tgz") as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    assert names == {"package.json", "LICENSE", *files}


def test_the_workflow_tries_every_python_on_every_system() -> None:
    """Of what runs at each push, and of what runs at night."""
    jobs = yaml.safe_load((REPOSITORY / ".github/workflows/check.yml").read_text())["jobs"]
    named = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = {found[1] for found in map(re.compile(r".*Python :: (3\.\d+)$").match, named) if found}
    for nightly in (False, True):
        tried: dict[str, set[str]] = {}
        for job in jobs.values():
            if ("schedule" in job.get("if", "")) == nightly:
                matrix = job.get("strategy", {}).get("matrix", {})
                for system in matrix.get("os", [job["runs-on"]]):
                    tried.setdefault(system, set()).update(matrix.get("python", ()))
        assert tried == dict.fromkeys(("ubuntu-latest", "macos-latest", "macos-15-intel", "windows-latest"), pythons)


@pytest.mark.parametrize(
    ("marketplace", "manifest"),
    [
        (".claude-plugin/marketplace.json", ".claude-plugin/plugin.json"),
        (".agents/plugins/marketplace.json", ".codex-plugin/plugin.json"),
    ],
)
def test_a_marketplace_names_the_plugin_that_is_there(marketplace: str, manifest: str) -> None:
    (plugin,) = json.loads((REPOSITORY / marketplace).read_text())["plugins"]
    source = plugin["source"] if isinstance(plugin["source"], str) else plugin["source"]["path"]
    assert json.loads((REPOSITORY / source / manifest).read_text())["name"] == plugin["name"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["darwin", "linux", "win32"])
def test_the_extension_of_gemini_has_its_manifest_at_the_top(system: str, dist: Path) -> None:
    with zipfile.ZipFile(dist / f"{system}.pilotfish.zip") as archive:
        assert {name for name in archive.namelist() if not name.endswith("/")} == {
            "gemini-extension.json",
            "hooks/hooks.json",
        }


@pytest.mark.slow
@pytest.mark.proves("PLAT-1")
def test_the_extension_for_windows_starts_no_shell_and_is_else_the_same(dist: Path) -> None:
    with zipfile.ZipFile(dist / "win32.pilotfish.zip") as archive:
        manifest = json.loads(archive.read("gemini-extension.json"))
        hooks = json.loads(archive.read("hooks/hooks.json"))["hooks"]
    assert manifest["mcpServers"] == {"pilotfish": {"command": "pilotfish", "args": ["mcp"]}}
    started = {name: group["hooks"][0]["command"] for name, (group,) in hooks.items()}
    brief = "pilotfish hook gemini --deadline-ms 2000"
    usual = dict.fromkeys(("AfterTool", "BeforeAgent", "AfterAgent"), "pilotfish hook gemini")
    assert started == {**usual, "SessionStart": brief, "SessionEnd": brief}
    assert hooks["AfterTool"][0]["hooks"][0]["timeout"] == 10000
