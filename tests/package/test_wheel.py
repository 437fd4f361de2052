"""What is published: a wheel and a source archive, which install into an empty environment and work there."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from pilotfish.servers.catalogue import load
from pilotfish.version import VERSION
from support.daemon.homes import no_daemon_left
from support.servers.real import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.proves("DOCS-1")]

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def installed(wheelhouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment that got the wheel and what it declares, without a network."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    argv = [*pip, "install", "--quiet", "--no-index", "--find-links", str(wheelhouse), "pilotfish"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return folder / "bin"


def test_the_wheel_has_all_that_runs(dist: Path) -> None:
    source = REPOSITORY / "src"
    files = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    inside = set(zipfile.ZipFile(next(dist.glob("*.whl"))).namelist())
    assert wanted - inside == set()


def test_the_source_archive_has_what_the_gate_needs(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"check", "demo", "mkdocs.yml", "tools/check.py", "docs/index.md", "tests/conftest.py"} <= names
    assert {"npm/llxprt/src/index.ts", "packaging/channels.toml", "CHANGELOG.md", ".pre-commit-hooks.yaml"} <= names


@pytest.mark.parametrize("word", ["python", "panel", "all", "mcp", "serve"])
def test_an_extra_is_declared(word: str) -> None:
    assert PROJECT["optional-dependencies"][word]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param("--version", 0, f"pilotfish {VERSION}", id="version"),
        pytest.param("servers", 0, f"{len(load())} servers, ", id="the catalogue is there"),
        pytest.param("config schema", 0, "Pilotfish configuration", id="the schema"),
        pytest.param("setup pi --dry-run", 0, "pilotfish.ts", id="the plugins are there"),
        pytest.param("check --no-daemon a.py", 2, "is not available", id="no server"),
        pytest.param("mcp --in-process", 2, "pip install 'pilotfish[mcp]'", id="without an extra: mcp"),
        pytest.param("serve", 3, "pip install 'pilotfish[serve]'", id="without an extra: serve"),
        pytest.param("daemon stop", 0, "", id="the daemon"),
    ],
)
def test_with_nothing_but_what_is_declared(words: str, code: int, said: str, installed: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    state = str(tmp_path / "state")
    environment = {"HOME": str(tmp_path), "PILOTFISH_HOME": state, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    with no_daemon_left(state):
        done = subprocess.run(
            [installed / "pilotfish", *words.split()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=project,
            env=environment,
            check=False,
        )
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize("name", ["hook.py", "aider_lint.py"])
def test_what_hosts_start_has_no_version_of_python_in_its_path(name: str, installed: Path, tmp_path: Path) -> None:
    """So that another Python in the same environment does not break the hosts' files."""
    script = installed.parent / "share" / "pilotfish" / name
    home = {"HOME": str(tmp_path), "PILOTFISH_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    host = "aider" if name == "aider_lint.py" else "claude-code"
    (tmp_path / ".aider.conf.yml").touch()
    shown = subprocess.run(
        [installed / "pilotfish", "setup", host, "--dry-run"], capture_output=True, text=True, env=home, check=True
    ).stdout
    assert f"{installed / 'python'} -I -S {script}" in shown
    traced = subprocess.run(
        [installed / "python", "-I", "-S", "-v", script, "claude-code"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**home, "PILOTFISH_HOME": "/proc/nowhere"},
        check=True,
    )
    assert "import 'pilotfish.ipc.hook_program'" in traced.stderr
