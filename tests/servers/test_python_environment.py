"""Python environments found as data, where each tool makes them; and the stand-in that answers for them."""

import ast
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers.python_environment import Project, PythonEnvironment, find_environment, stand_in
from pilotfish.servers.tree import DiskTree

PYRIGHT_VERSION = "import sys, json; json.dump(tuple(sys.version_info), sys.stdout)"
PYRIGHT_PATHS = (
    'import os, sys, json; orig_sys_path = [p for p in sys.path if p != ""]; '
    "json.dump(dict(path=orig_sys_path, prefix=sys.prefix), sys.stdout)"
)


def environment(prefix: Path, *, home: str = "/usr/bin", version: str = "3.12.4", more: str = "") -> Path:
    """An environment that no tool has made: its interpreter fails."""
    site = prefix / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = {home}\nversion = {version}\n{more}")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    (prefix / "bin" / "python").chmod(0o755)
    return site


def found(root: Path, home: Path, workspace: Path | None = None, **variables: str) -> PythonEnvironment | None:
    project = Project(AbsPath(str(root)), AbsPath(str(workspace or root)), {"HOME": str(home), **variables})
    return find_environment(project, DiskTree())


def folders(environment: PythonEnvironment | None) -> list[str]:
    assert environment is not None
    return list(environment.packages)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", [".venv", "venv", "env", "some-environment"])
def test_an_environment_in_the_project_is_found_whatever_it_is_called(root: Path, tmp_path: Path, name: str) -> None:
    site = environment(root / name)
    assert folders(found(root, tmp_path)) == [str(site)]
    assert found(root, tmp_path) is not None


def test_without_an_environment_there_is_none(root: Path, tmp_path: Path) -> None:
    (root / ".venv").mkdir()
    (root / "pyproject.toml").write_text("not toml at all [")
    assert found(root, tmp_path) is None


def test_the_activated_environment_comes_before_the_project_s_own(root: Path, tmp_path: Path) -> None:
    environment(root / ".venv")
    site = environment(tmp_path / "elsewhere")
    assert folders(found(root, tmp_path, VIRTUAL_ENV=str(tmp_path / "elsewhere"))) == [str(site)]


def test_a_package_of_a_workspace_uses_the_environment_above_it(root: Path, tmp_path: Path) -> None:
    site = environment(root / ".venv")
    package = root / "packages" / "one"
    package.mkdir(parents=True)
    assert folders(found(package, tmp_path, workspace=root)) == [str(site)]
    assert found(package, tmp_path, workspace=package) is None


@pytest.mark.parametrize(
    ("files", "place"),
    [
        # The names below are those that each tool made for this very path, as its own code makes them.
        pytest.param({"pyproject.toml": '[project]\nname = "My_App"\n'}, "poetry", id="Poetry"),
        pytest.param({"Pipfile": ""}, "pipenv", id="Pipenv"),
        pytest.param({"pyproject.toml": "[project]\n"}, "pdm", id="PDM"),
        pytest.param({"pyproject.toml": '[project]\nname = "My_App"\n'}, "hatch", id="Hatch"),
    ],
)
def test_environments_that_tools_keep_elsewhere_are_found(tmp_path: Path, files: dict[str, str], place: str) -> None:
    home, root = tmp_path / "home", Path("/srv/my-app")
    shelves = {
        "poetry": ".cache/pypoetry/virtualenvs/my_app-6-Ahu0Vk-py3.12",
        "pipenv": ".local/share/virtualenvs/my-app-6sZRiYPi",
        "pdm": ".local/share/pdm/venvs/my-app-p1LVWN_T-3.12",
        "hatch": ".local/share/hatch/env/virtual/my-app/6-Ahu0Vk/my-app",
    }
    site = environment(home / shelves[place])
    tree = Overlaid({str(root / name): text for name, text in files.items()})
    project = Project(AbsPath(str(root)), AbsPath(str(root)), {"HOME": str(home)})
    assert folders(find_environment(project, tree)) == [str(site)]


class Overlaid(DiskTree):
    """The disk, and files that are not on it."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def exists(self, path: str) -> bool:
        return path in self._files or super().exists(path)

    def read(self, path: str, limit: int) -> str | None:
        return self._files.get(path) or super().read(path, limit)


def test_conda_s_environment_counts_when_there_is_no_other(root: Path, tmp_path: Path) -> None:
    conda = tmp_path / "conda"
    site = conda / "lib" / "python3.13" / "site-packages"
    site.mkdir(parents=True)
    (conda / "conda-meta").mkdir()
    assert folders(found(root, tmp_path, CONDA_PREFIX=str(conda))) == [str(site)]
    own = environment(root / ".venv")
    assert folders(found(root, tmp_path, CONDA_PREFIX=str(conda))) == [str(own)]


def test_a_file_may_name_the_environment(root: Path, tmp_path: Path) -> None:
    site = environment(tmp_path / "shelf" / "app")
    (root / ".venv").write_text("../shelf/app\n")
    assert folders(found(root, tmp_path)) == [str(site)]
    (root / ".venv").unlink()
    (root / ".pdm-python").write_text(f"{tmp_path}/shelf/app/bin/python")
    assert folders(found(root, tmp_path)) == [str(site)]


def test_path_files_add_folders_and_nothing_in_them_is_run(root: Path, tmp_path: Path) -> None:
    site = environment(root / ".venv")
    source, library = tmp_path / "library" / "src", tmp_path / "editable"
    source.mkdir(parents=True)
    (library / "thing").mkdir(parents=True)
    (site / "_plain.pth").write_text(f"# a comment\n{source}\n../../../gone\n\n")
    (site / "__editable__.pth").write_text(
        "import __editable___thing_1_0_finder; __editable___thing_1_0_finder.install()"
    )
    finder = f"import os\nMAPPING: dict[str, str] = {{'thing': '{library}/thing', 'odd': '/elsewhere/other'}}\n"
    (site / "__editable___thing_1_0_finder.py").write_text(finder)
    (site / "evil.pth").write_text(f"import os; os.system('touch {tmp_path}/ran')\n")
    assert folders(found(root, tmp_path)) == [str(site), str(library), str(source)]
    assert not (tmp_path / "ran").exists()


@pytest.mark.proves("T43")
def test_the_table_of_an_editable_install_is_read_once_however_often_it_is_looked_at(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = environment(root / ".venv")
    (site / "a.pth").write_text("import __editable___a_finder\n")
    finder = site / "__editable___a_finder.py"
    read, literal = list[str](), ast.literal_eval

    def counted(table: str) -> object:
        read.append(table)
        return literal(table)

    monkeypatch.setattr(ast, "literal_eval", counted)
    for name in ("one", "two"):
        finder.write_text(f"MAPPING = {{'a': '{tmp_path / name}/a'}}\n")
        assert [folders(found(root, tmp_path)) for _ in range(3)] == [[str(site), str(tmp_path / name)]] * 3
    assert len(read) == 2


def test_system_packages_count_where_the_environment_says_so(root: Path, tmp_path: Path) -> None:
    base = tmp_path / "usr" / "lib" / "python3.12"
    (base / "site-packages").mkdir(parents=True)
    (base / "dist-packages").mkdir()
    more = "include-system-site-packages = true\n"
    site = environment(root / ".venv", home=str(tmp_path / "usr" / "bin"), more=more)
    assert folders(found(root, tmp_path)) == [str(site), str(base / "site-packages"), str(base / "dist-packages")]


def test_the_stand_in_answers_as_the_real_interpreter_does(root: Path, tmp_path: Path) -> None:
    venv.create(root / ".venv", symlinks=True)
    environment = found(root, tmp_path)
    assert environment is not None
    program = tmp_path / "stand-in"
    program.write_text(stand_in(environment))
    program.chmod(0o755)
    real = str(root / ".venv" / "bin" / "python")

    def said(interpreter: str, code: str) -> Any:
        return json.loads(subprocess.run([interpreter, "-I", "-c", code], capture_output=True, check=True).stdout)

    assert said(str(program), PYRIGHT_VERSION) == said(real, PYRIGHT_VERSION)
    ours, theirs = said(str(program), PYRIGHT_PATHS), said(real, PYRIGHT_PATHS)
    assert ours["prefix"] == theirs["prefix"]
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    assert ours["path"] == [path for path in theirs["path"] if os.path.basename(path) != zipped]


def test_the_stand_in_runs_nothing_and_fails_when_asked_for_more(root: Path, tmp_path: Path) -> None:
    quoted = root / "it's $(touch ran) `touch ran`"
    environment(quoted)
    found_there = found(root, tmp_path, VIRTUAL_ENV=str(quoted))
    assert found_there is not None
    program = tmp_path / "stand-in"
    program.write_text(stand_in(found_there))
    program.chmod(0o755)
    done = subprocess.run([str(program), "-c", "print(1)"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    done = subprocess.run([str(program), "-c", PYRIGHT_PATHS], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout)["prefix"] == str(quoted)
    assert not (tmp_path / "ran").exists()
