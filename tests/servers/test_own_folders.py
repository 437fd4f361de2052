"""Where a server of an untrusted workspace finds a place to write."""

import socket
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
