"""Where a server of an untrusted workspace finds a place to write."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from pilotfish.servers.confining import own_variables

pytestmark = pytest.mark.proves("T35")


@pytest.mark.parametrize("length", [1, 40, 200], ids=["short", "usual", "long"])
def test_a_socket_in_the_cache_of_a_server_has_a_path_that_fits(length: int, tmp_path: Path) -> None:
    own = tmp_path / ("a" * length)
    below = "biome/biome-daemon/biome-socket-2.6.6"
    (own / "cache" / below).parent.mkdir(parents=True)
    cache = own_variables({}, str(own))["XDG_CACHE_HOME"]
    assert own_variables({}, str(own))["XDG_CACHE_HOME"] == cache
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{cache}/{below}")
    assert (own / "cache" / below).is_socket()


HOLDS = """
import os, sys
from pilotfish.servers.confining import own_variables
print(own_variables({}, sys.argv[1])["XDG_CACHE_HOME"], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary() -> Generator[Path]:
    """With a short name, as the one of the system has."""
    with tempfile.TemporaryDirectory(prefix="links-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.linux("a process is killed")
def test_what_a_killed_process_left_in_the_temporary_folder_is_removed_by_the_next(
    temporary: Path, tmp_path: Path
) -> None:
    own = tmp_path / ("a" * 60)
    (temporary / "pilotfish-links-0-1-of-another-container").mkdir(0o700)
    with _holding(own, temporary) as living:
        with _holding(own, temporary) as killed:
            killed.kill()
        before = _left(temporary)
        with _holding(own, temporary) as last:
            assert {str(killed.pid), str(living.pid)} <= before
            assert _left(temporary) == before - {str(killed.pid)} | {str(last.pid)}
            last.communicate()
        living.communicate()
    assert _left(temporary) == {"1"}


def _holding(own: Path, temporary: Path) -> "subprocess.Popen[str]":
    """A process that has made a link to the folder, and keeps it until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(own)],
        env={**os.environ, "TMPDIR": str(temporary)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(str(temporary))
    return process


def _left(temporary: Path) -> set[str]:
    """Whose links are there, by process."""
    return {path.name.split("-")[3] for path in temporary.iterdir()}
