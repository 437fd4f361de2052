"""Servers are found and started with the variables of whoever asks, not with those of whoever started the daemon."""

from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.daemon.surroundings import another_user, given

EVENT = b'{"files":["a.x"],"session":"7"}'


@pytest.mark.proves("REG-5", "F1", "T35")
@pytest.mark.parametrize("through", ["link", "hook"])
def test_whoever_asks_has_its_own_servers(home: DaemonHome, tmp_path: Path, through: str) -> None:
    def told(user: DaemonHome) -> str:
        if through == "hook":
            return user.run_hook(EVENT).stdout.decode()
        with user.link() as link:
            return str(link.request("touched", {"paths": ["a.x"], "kind": "edit"}))

    another = another_user(home, tmp_path)
    assert "bad word" not in told(home)
    assert "bad word" in told(another)
    assert "bad word" not in told(home)
    assert len(home.daemons()) == 1
    assert b"VIRTUAL_ENV=/project/.venv" in given(home)
    assert b"GOFLAGS=-tags=caf\xe9" in given(home)
    assert not any(line.startswith(b"GITHUB_TOKEN") for line in given(home))
