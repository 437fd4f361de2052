"""A home with secrets in it that tells what was read and written there: a trap is not only what runs (T35).

`@HOME@` in a trap repository is its path. What a server has opened of the secrets the kernel tells (inotify); what it
wrote is seen by comparing the home, and the repository, with what they were.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from support.files.canaries import Canaries

SECRET = "sk-canary-7Zq3"
"""In every secret: no answer may hold it."""

SECRETS = (
    ".aws/credentials", ".bashrc", ".claude/CLAUDE.md", ".config/gh/hosts.yml", ".netrc", ".npmrc",
    ".ssh/authorized_keys", ".ssh/id_ed25519", "Documents/letter.json", "secret.schema.json",
)  # fmt: skip

OURS = "pilotfish"
"""The folder of our own state, where a server may write what is its own."""


class WatchedHome:
    """The home at `folder`, and a repository that nothing but the test changes, by appending newlines."""

    def __init__(self, folder: Path, repository: Path) -> None:
        """What is there now is as it should be."""
        self.folder = folder
        self._repository = repository
        self._before = self._texts()
        self._secrets = [folder / name for name in SECRETS]
        self._canaries = Canaries(*self._secrets)

    def read(self) -> set[str]:
        """The secrets that somebody has opened."""
        return {str(path.relative_to(self.folder)) for path in self._canaries.opened()}

    def written(self) -> set[str]:
        """What was changed or made in the home or the repository, by its path; asked last, as it opens the secrets."""
        now, before = self._texts(), self._before
        changed = {path for path in now if now[path].rstrip(b"\n") != before.get(path, b"new").rstrip(b"\n")}
        return {str(path.relative_to(self.folder.parent)) for path in changed | (before.keys() - now.keys())}

    def _texts(self) -> Mapping[Path, bytes]:
        found: dict[Path, bytes] = {}
        for top in (self.folder, self._repository):
            for folder, folders, names in os.walk(top):
                if Path(folder) == self.folder and OURS in folders:
                    folders.remove(OURS)
                found |= {
                    Path(folder, name): Path(folder, name).read_bytes() for name in names if _is_file(folder, name)
                }
        return found


def _is_file(folder: str, name: str) -> bool:
    path = Path(folder, name)
    return path.is_file() and not path.is_symlink()


def plant_secrets(home: Path) -> None:
    for name in SECRETS:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"enum": ["{SECRET}"]}}\n')
