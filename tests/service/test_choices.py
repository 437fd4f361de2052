"""Which servers serve a file is kept, and is right at every moment all the same."""

import os
from collections import Counter
from pathlib import Path

import pytest

import pilotfish
from pilotfish.errors import Code
from pilotfish.library.workspace import Workspace
from pilotfish.model import AbsPath
from pilotfish.servers import tree as evidence
from pilotfish.servers.catalogue import load
from pilotfish.servers.tree import DiskTree
from support.services.computer import ScriptedShell, scripted_shell

pytestmark = [pytest.mark.anyio, pytest.mark.proves("REG-3", "P1")]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedShell:
    monkeypatch.setattr(evidence, "DOUBT_NANOSECONDS", 0)
    program = str(tmp_path.resolve() / "home" / "toy-server")
    toy = {"command": [program], "extensions": [".toy"], "roots": ["toy.mark"], "languageId": {".toy": "toy"}}
    shell = scripted_shell(tmp_path, {"lsp": {"toy": toy}})
    (shell.root / "inner").mkdir()
    (shell.root / "inner" / "b.toy").write_text("let b = 1\n")
    return shell


def root_of(workspace: Workspace, path: Path) -> str:
    """Where the server of a file runs, from the folder of the workspace."""
    service, client = workspace._service, workspace._client  # pyright: ignore[reportPrivateUsage]
    (candidate,) = service.workspaces.of(client).servers_for(AbsPath(str(path))).servers
    return os.path.relpath(candidate.root, workspace.root)


async def test_a_marker_that_comes_or_goes_counts_at_once(shell: ScriptedShell) -> None:
    file, marker = shell.root / "inner" / "b.toy", shell.root / "inner" / "toy.mark"
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        for _ in range(3):
            assert root_of(workspace, file) == "."
            marker.touch()
            assert root_of(workspace, file) == "inner"
            marker.unlink()


async def test_a_second_look_asks_the_disk_nothing_but_whether_something_changed(
    shell: ScriptedShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def exists(_tree: DiskTree, path: str) -> bool:
        asked[path] += 1
        return os.path.exists(path)

    monkeypatch.setattr(DiskTree, "exists", exists)
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        root_of(workspace, shell.root / "a.toy")
        before = sum(asked.values())
        root_of(workspace, shell.root / "a.toy")
        assert 0 < before == sum(asked.values())


async def test_a_program_that_is_installed_meanwhile_is_found(tmp_path: Path, shell: ScriptedShell) -> None:
    tools = tmp_path / "home" / "nothing"
    shown = load()["basedpyright"].shown
    assert shown is not None
    records = tmp_path / "home" / "lib" / "python3" / "site-packages"
    (records / f"basedpyright-{shown.last}.dist-info").mkdir(parents=True)
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        file = shell.root / "c.py"
        file.write_text("")
        assert workspace.missing(file) is not None
        tools.mkdir()
        (tools / "basedpyright-langserver").write_text("")
        (tools / "basedpyright-langserver").chmod(0o755)
        assert workspace.missing(file) is None


@pytest.mark.proves("T46")
async def test_a_version_that_was_not_tested_is_not_used_and_the_tested_one_named(
    tmp_path: Path, shell: ScriptedShell
) -> None:
    tools = tmp_path / "home" / "nothing"
    tools.mkdir(parents=True)
    records = tmp_path / "home" / "lib" / "python3" / "site-packages"
    (records / "basedpyright-999.0.dist-info").mkdir(parents=True)
    (tools / "basedpyright-langserver").write_text("")
    (tools / "basedpyright-langserver").chmod(0o755)
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        file = shell.root / "c.py"
        file.write_text("")
        missing = workspace.missing(file)
    assert missing is not None
    assert missing.code is Code.UNTRUSTED
    assert "version 999.0 of basedpyright has not been tested with hostile projects" in missing.message
    assert missing.hint is not None
    assert "pilotfish install basedpyright" in missing.hint
    assert f"pilotfish trust {shell.root}" in missing.hint
