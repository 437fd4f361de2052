"""A user of hosts: a home and a project, for tests of `setup`."""

import stat
from pathlib import Path

import pytest


class User:
    """A home, a project, and what lies in them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project, self.state = folder / "home", folder / "project", folder / "state"

    def files(self) -> dict[str, tuple[int, bytes | None]]:
        """Every path below both, with mode and content."""
        found: dict[str, tuple[int, bytes | None]] = {}
        for top in (self.home, self.project):
            for path in sorted(top.rglob("*")):
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (stat.S_IMODE(path.lstat().st_mode), content)
        return found

    def give(self, files: dict[str, str]) -> None:
        for top in (self.home, self.project):
            for name, text in files.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_bytes(text.encode())
                (top / name).chmod(0o640)


def install(user: User, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Put programs of these names on the PATH."""
    (user.home / "bin").mkdir()
    for name in programs:
        (user.home / "bin" / name).touch(0o755)
    monkeypatch.setenv("PATH", str(user.home / "bin"))
