"""A repository that was cloned into one that a host trusts: that trust is not for it (TRUST-7, T57)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import pilotfish
from pilotfish.config.host_trust import receipt_of
from pilotfish.library.workspace import computer
from support.files.canaries import Canary
from support.files.repositories import commit_everything, run_git
from support.servers.real import User, make_user

pytestmark = [pytest.mark.anyio, pytest.mark.proves("TRUST-7", "T57")]


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Canary]:
    made = Canary(tmp_path / "ran")
    yield made
    made.close()


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Claude Code trusts the workspace, and is wired."""
    made = make_user(
        tmp_path, [], {"lsp": {"typescript": {"disabled": False}, "eslint": {"disabled": False}}}, trusted=False
    )
    home = Path(made.environment["HOME"])
    projects = {str(made.workspace): {"hasTrustDialogAccepted": True}}
    (home / ".claude.json").write_text(json.dumps({"projects": projects}))
    receipt = Path(receipt_of(made.places, str(home / ".claude/settings.json")))
    receipt.parent.mkdir(parents=True, mode=0o700)
    receipt.write_text("{}")
    (made.workspace / "README").write_text("ours\n")
    commit_everything(made.workspace)
    return made


def plant(folder: Path, ran: Canary, *files: str) -> None:
    """Programs that the folder brings along for its own files."""
    programs = folder / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    for name in ("typescript-language-server", "vscode-eslint-language-server"):
        (programs / name).write_text(f"#!/bin/sh\n: < {ran}\n")
        (programs / name).chmod(0o755)
    for name in (*files, "a.ts"):
        (folder / name).write_text("let x = 1\n" if name.endswith("s") else "{}\n")


async def check(user: User, *paths: Path) -> None:
    async with pilotfish.open(user.workspace, shell=computer(user.environment)) as workspace:
        for path in paths:
            await workspace.check(str(path))
            await workspace.after_edit(str(path))


async def test_what_the_trusted_repository_brings_along_runs(user: User, ran: Canary) -> None:
    plant(user.workspace, ran)
    await check(user, user.workspace / "a.ts")
    assert ran.was_read()


@pytest.mark.proves("A3.1")
@pytest.mark.parametrize("files", [("package.json",), ("tsconfig.json", "eslint.config.js"), ()], ids=" ".join)
@pytest.mark.parametrize("mark", ["folder", "file"])
async def test_what_a_repository_inside_it_brings_along_does_not(
    files: tuple[str, ...], mark: str, user: User, ran: Canary
) -> None:
    inner = user.workspace / "work" / "evil"
    inner.mkdir(parents=True)
    plant(inner, ran, *files)
    if mark == "folder":
        commit_everything(inner)
    else:
        (inner / ".git").write_text("gitdir: ../../.git\n")
    await check(user, inner / "a.ts")
    assert not ran.was_read()


@pytest.mark.proves("A3.1")
async def test_nor_does_a_server_of_the_repository_around_it_serve_its_files(user: User, ran: Canary) -> None:
    plant(user.workspace, ran)
    inner = user.workspace / "evil"
    inner.mkdir()
    (inner / "a.ts").write_text("let x = 1\n")
    commit_everything(inner)
    await check(user, inner / "a.ts")
    assert not ran.was_read()


async def test_a_worktree_of_the_trusted_repository_has_its_trust(user: User, ran: Canary) -> None:
    tree = user.workspace / ".worktrees" / "feature"
    run_git(user.workspace, "worktree", "add", "--quiet", str(tree))
    plant(tree, ran)
    await check(user, tree / "a.ts")
    assert ran.was_read()
