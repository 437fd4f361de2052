"""Which worktrees may share a server."""

from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import input_evidence
from pilotfish.servers.worktrees import Share, Started, share_of
from pilotfish.system.ports import Launch

pytestmark = pytest.mark.proves("POOL-6")

MANIFEST = "[project]\nname = 'p'\n"


def share(top: Path) -> Share | None:
    spec, root = load()["ty"], AbsPath(str(top))
    inputs = input_evidence(spec.inputs, root, root)
    started = Started(spec, root, Launch(("/bin/true",), root, {}, "ty"), None, inputs, root, ())
    return share_of(started, "/state")


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Two of a repository, both inside of its checkout."""
    repository = tmp_path / ".git"
    for name in ("one", "two"):
        (repository / "worktrees" / name).mkdir(parents=True)
        (repository / "worktrees" / name / "commondir").write_text("../..\n")
        (tmp_path / ".trees" / name).mkdir(parents=True)
        (tmp_path / ".trees" / name / ".git").write_text(f"gitdir: {repository}/worktrees/{name}\n")
        (tmp_path / ".trees" / name / "pyproject.toml").write_text(MANIFEST)
    (tmp_path / "pyproject.toml").write_text(MANIFEST)
    return tmp_path / ".trees" / "one", tmp_path / ".trees" / "two"


def test_those_inside_of_a_checkout_with_the_same_settings_share(trees: tuple[Path, Path]) -> None:
    one, two = map(share, trees)
    assert one is not None
    assert two is not None
    assert one.group == two.group


@pytest.mark.parametrize("name", ["pyproject.toml", "node_modules", "ty.toml"])
def test_settings_above_that_are_not_those_of_the_worktree_are_a_doubt(name: str, trees: tuple[Path, Path]) -> None:
    above = trees[0].parents[1] / name
    if name == "node_modules":
        above.mkdir()
    else:
        above.write_text(MANIFEST + "version = '2'\n")
    assert share(trees[0]) is None


def test_those_with_other_settings_do_not_share(trees: tuple[Path, Path]) -> None:
    one, two = trees
    (two / "pyproject.toml").write_text(MANIFEST + "[tool.ty.rules]\n")
    first, second = share(one), share(two)
    assert first is not None
    assert second is None or first.group != second.group
