"""Real language servers for tests: where they are, and a user whose computer holds nothing else.

Servers come from `tools/setup.py`: PyPI's beside the interpreter, npm's in `.tools/npm`, Debian's wherever they are. A
test sees a `PATH` with one folder in it, which holds links to the programs it asked for: no other tool of the machine
changes what a server says.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pilotfish.config.merge import overlaid
from pilotfish.config.places import Places, user_places
from pilotfish.servers.catalogue import load

REPOSITORY = Path(__file__).parents[3]
PYPI = Path(sys.executable).parent
NPM = REPOSITORY / ".tools" / "npm" / "node_modules" / ".bin"


@dataclass(frozen=True)
class User:
    """A user with one workspace, an own configuration and the servers that were asked for."""

    workspace: Path
    environment: Mapping[str, str]

    @property
    def places(self) -> Places:
        return user_places(self.environment)


def require(servers: Iterable[str]) -> None:
    """Skip the test where a server is missing; in CI that is a failure, or the test would prove nothing."""
    missing = [server for server in servers if not programs_of(server)]
    if missing:
        reason = f"not installed: {', '.join(missing)} (python3 tools/setup.py check)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def make_user(base: Path, servers: Iterable[str], config: Mapping[str, Any], *, trusted: bool) -> User:
    """Only these servers are enabled and only they are there; `config` is laid over the user's file."""
    real = Path(os.path.realpath(base))
    workspace, home, tools = real / "workspace", real / "home", real / "bin"
    for folder in (workspace, home, tools):
        folder.mkdir()
    wanted = set(servers)
    for name, program in {name: path for server in wanted for name, path in programs_of(server).items()}.items():
        (tools / name).symlink_to(program)
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": str(tools),
        "PILOTFISH_HOME": str(home / "pilotfish"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
    }
    user = User(workspace, environment)
    own: dict[str, Any] = {
        "lsp": {server: {"disabled": True} for server in load() if server not in wanted},
        "security": {"trustedProjectRoots": [str(workspace)] if trusted else []},
    }
    file = Path(user.places.global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(overlaid(own, config)))
    return user


def programs_of(server: str) -> dict[str, Path]:
    """What has to be on the `PATH` for a server, by name; nothing where something of it is missing."""
    spec = load()[server]
    name = spec.command[0]
    if (PYPI / name).exists():
        return {name: PYPI / name}
    if (NPM / name).exists():
        return _of_the_system("node") | {name: NPM / name} if _of_the_system("node") else {}
    return _of_the_system(name, *spec.needs)


def _of_the_system(*names: str) -> dict[str, Path]:
    """All of them, or none."""
    found = {name: shutil.which(name) for name in names}
    return {name: Path(path) for name, path in found.items() if path} if all(found.values()) else {}
