"""Files of the configuration that change at random: what is in force is whole, and trust is decided anew."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from pilotfish.config.load import Config, Loaded
from pilotfish.config.trust import Trusted, Untrusted
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json
from support.files.config_home import Home, make_home

CHANGES = 400

PROJECT_COMMAND = "./from-the-project"
PROJECTS: list[Json] = [
    {},
    {"lsp": {"pyright": {"command": [PROJECT_COMMAND], "settings": {"python": {"pythonPath": PROJECT_COMMAND}}}}},
    {"lsp": {"eslint": {"disabled": True}}, "timing": {"requestTimeoutMs": 7}},
    {"lsp": False},
    {"navigationTools": False, "feedback": {"maxPerFile": 3}},
]
USERS: list[Json] = [
    {},
    {"lsp": {"pyright": {"command": ["mine"]}}},
    {"security": {"trustedProjectRoots": ["{workspace}"]}},
    {"security": {"projectConfigPolicy": "never", "trustedProjectRoots": ["{workspace}"]}},
    {"navigationTools": False},
]
BROKEN = (
    b"{",
    b"\xff",
    b'{"lsp": {"pyright": {"command": "no list"}}}',
    b'{"unknown": 1}',
    b'{"timing": {"requestTimeoutMs": -1}}',
)


@pytest.mark.proves("P27", "F80", "F81", "CFG-8", "CFG-10", "TRUST-4")
def test_after_any_change_the_last_good_files_are_in_force_and_nothing_untrusted_runs(tmp_path: Path) -> None:
    chance = random.Random(7)
    home, mirror = (make_home(_made(tmp_path / name)) for name in ("home", "mirror"))
    good = {"user": _good(USERS[0], home), "project": _good(PROJECTS[0], home)}
    for which, content in good.items():
        _write(home, which, content)
    loaded = home.load()
    for _ in range(CHANGES):
        which = chance.choice(("user", "project"))
        value = _good(chance.choice(USERS if which == "user" else PROJECTS), home)
        if chance.random() < 0.6:
            good[which] = value
            _write(home, which, value)
        else:
            _write(home, which, chance.choice((*BROKEN, value[: chance.randint(1, len(value) - 1)])))
        loaded = home.load(loaded)
        _check(loaded, home, mirror, good)


def _check(loaded: Loaded, home: Home, mirror: Home, good: dict[str, bytes]) -> None:
    for which, content in good.items():
        _write(mirror, which, content.replace(os.fsencode(home.workspace), os.fsencode(mirror.workspace)))
    wanted = mirror.load().config
    assert _comparable(loaded.config) == _comparable(wanted)
    if not loaded.config.trusted:
        assert PROJECT_COMMAND not in repr(
            [(one.command, one.settings, one.env) for one in loaded.config.servers.values()]
        )


def _comparable(config: Config) -> Config:
    """Without what differs between the two homes: where they are, and why something is not trusted."""
    security = msgspec.structs.replace(config.security, trusted_project_roots=())
    trust = Trusted("") if config.trusted else Untrusted("")
    return replace(config, root=AbsPath("/"), security=security, trust=trust)


def _good(value: Json, home: Home) -> bytes:
    return json.dumps(value).replace("{workspace}", str(home.workspace)).encode()


def _write(home: Home, which: str, content: bytes) -> None:
    (home.user if which == "user" else home.project)(content)


def _made(path: Path) -> Path:
    path.mkdir()
    return path
