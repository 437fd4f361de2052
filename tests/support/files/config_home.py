"""A user's home and a workspace in a temporary folder, and a small catalogue, for tests of the configuration."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pilotfish.config.load import Catalogue, ConfigRequest, Loaded, load
from pilotfish.config.places import Places, user_places
from pilotfish.protocol.wire import Json

SERVERS: dict[str, dict[str, Json]] = {
    "eslint": {"command": ["eslint-server", "--stdio"], "extensions": [".js", ".ts"]},
    "pyright": {
        "command": ["pyright-langserver", "--stdio"],
        "extensions": [".py"],
        "roots": ["pyproject.toml"],
        "settings": {"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
    },
    "rust-analyzer": {
        "command": ["rust-analyzer"],
        "extensions": [".rs"],
        "timeouts": {"initializeTimeoutMs": 60000},
    },
    "spare": {"disabled": True, "command": ["spare"], "extensions": [".py"]},
    "typescript": {"command": ["typescript-language-server", "--stdio"], "extensions": [".ts", ".js"]},
}

ALIASES = {"rust": "rust-analyzer", "ts_ls": "typescript"}


def canonical_id(name: str) -> str:
    return ALIASES.get(name, name)


CATALOGUE = Catalogue(SERVERS, canonical_id)


@dataclass(frozen=True)
class Home:
    """One user with one workspace."""

    path: Path
    workspace: Path
    environment: dict[str, str]

    @property
    def places(self) -> Places:
        return user_places(self.environment)

    def user(self, content: Json | bytes, name: str | None = None) -> Path:
        """Write the user's file, or another one below the home."""
        return _written(self.path / name if name else Path(self.places.global_file), content)

    def project(self, content: Json | bytes, name: str = ".pilotfish/lsp.json") -> Path:
        """Write a file of the workspace."""
        return _written(self.workspace / name, content)

    def request(self, host: str | None = None) -> ConfigRequest:
        return ConfigRequest(str(self.workspace), self.places, CATALOGUE, host)

    def load(self, previous: Loaded | None = None, host: str | None = None) -> Loaded:
        return load(self.request(host), previous)


def make_home(base: Path) -> Home:
    """A home and a workspace beside each other, under a real path."""
    real = Path(os.path.realpath(base))
    home, workspace = real / "home", real / "code" / "project"
    home.mkdir()
    workspace.mkdir(parents=True)
    return Home(home, workspace, {"HOME": str(home)})


def _written(path: Path, content: Json | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path
