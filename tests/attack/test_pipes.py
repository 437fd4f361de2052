"""Files of a repository that nobody may wait for: pipes in their place, and very many of them (T43)."""

import os
from pathlib import Path

import pytest

from pilotfish.hosts.shared.hook_settings import read_setting
from pilotfish.model import AbsPath
from pilotfish.servers.python_environment import Project, find_environment
from pilotfish.service.project_shapes import ShapeCache
from support.files.virtual_tree import VirtualTree

pytestmark = pytest.mark.proves("T43")


@pytest.mark.proves("A17.1")
@pytest.mark.timeout(20)
def test_nobody_waits_for_a_pipe_in_place_of_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    os.mkfifo(tmp_path / "opencode.json")
    assert ShapeCache().of_file(AbsPath(str(tmp_path / "a.py"))) is None
    assert read_setting(str(tmp_path / "opencode.json"), "lsp") is None


def test_of_many_editable_installs_not_all_are_read() -> None:
    count, site = 500, "/w/.venv/lib/python3.11/site-packages"
    files = {"/w/.venv/pyvenv.cfg": "home = /usr/bin\n"}
    files[f"{site}/a.pth"] = "".join(f"import __editable___a{number}_finder\n" for number in range(count))
    for number in range(count):
        table = f"'a{number}': '/w/f{number}/a{number}', " + "'b': '/w/b', " * 200
        files[f"{site}/__editable___a{number}_finder.py"] = f"MAPPING = {{{table}}}\n"
        files[f"/w/f{number}/a{number}/__init__.py"] = ""
    tree = VirtualTree(files)
    found = find_environment(Project(AbsPath("/w"), AbsPath("/w"), {"HOME": "/h"}), tree)
    assert found is not None
    read = [path for kind, path in tree.questions if kind == "read" and path.endswith("_finder.py")]
    assert len(read) < count / 10
    assert 0 < len([path for path in found.packages if path.startswith("/w/f")]) < count / 10
