"""The plugin of Codex and the extension of Gemini CLI, installed by the hosts themselves in place of `setup`."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS
from support.hosts.programs import put_on_the_path
from support.hosts.real import left_by_host, program
from support.hosts.told import hears_once
from support.servers.real import REPOSITORY

PLUGINS = REPOSITORY / "src" / "pilotfish" / "hosts" / "plugins"

INSTALLED: dict[str, Sequence[Sequence[str]]] = {
    "codex": (("plugin", "marketplace", "add", str(REPOSITORY)), ("plugin", "add", "pilotfish@pilotfish")),
    "gemini": (("extensions", "install", str(PLUGINS / "gemini"), "--consent", "--skip-settings"),),
}


@pytest.mark.server("ty")
@pytest.mark.proves("HOOK-1", "PLAT-2")
@pytest.mark.parametrize("host", [pytest.param(host, marks=pytest.mark.host(host, gate=False)) for host in INSTALLED])
def test_what_the_host_installs_tells_it_what_an_edit_broke(host: str, home: DaemonHome) -> None:
    put_on_the_path(home)
    agent = next(agent for agent in AGENTS if agent.host == host)
    agent.command(home, "http://127.0.0.1:9")  # writes the settings of a person who uses the host
    folder = Path(home.environment["HOME"])
    for words in INSTALLED[host]:
        done = subprocess.run(
            [program(host), *words],
            cwd=folder,
            env=home.environment,
            input="y\n",  # Gemini CLI asks whether the folder of an extension is trusted
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, done.stdout + done.stderr
    hears_once(agent, home)
    assert left_by_host(home) == []
