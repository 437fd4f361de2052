"""Folders as git repositories."""

import shutil
import subprocess
from pathlib import Path

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]


def run_git(folder: Path, *words: str) -> str:
    """What git printed."""
    command = ["git", *AUTHOR, "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit_everything(folder: Path) -> None:
    """The folder as a git repository whose last commit has all of its files as they are."""
    run_git(folder, "init", "--quiet")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "a")


def offer_git(folder: Path) -> None:
    """Put git into this folder of programs."""
    git = shutil.which("git")
    assert git is not None
    folder.mkdir(exist_ok=True)
    (folder / "git").symlink_to(git)
