"""Homes with daemons, and verbs that are called in them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from support.daemon.homes import DaemonHome, daemon_home

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[DaemonHome]:
    """A user without a daemon; whatever daemon a test starts is ended after it."""
    with daemon_home(tmp_path) as made:
        yield made


@pytest.fixture
def run(home: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call a verb in the workspace of `home`."""
    for name in ("HOME", "PILOTFISH_HOME", "PATH"):
        monkeypatch.setenv(name, home.environment[name])
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home.root)

    def invoke(command: click.Command, *arguments: str) -> Result:
        return CliRunner().invoke(command, arguments)

    return invoke
