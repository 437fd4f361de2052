"""The plugins on Windows, where the daemon is at a port and behind two secrets.

A node of this system takes itself for one of Windows. What is proven here of the text that both plugins share
holds for OpenCode, too.
"""

import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from pilotfish.daemon.claim import make_private
from pilotfish.ipc.loopback import SIZE, Endpoint, new_endpoint, written
from support.daemon.homes import DaemonHome
from support.hosts.pi_events import edited, status_after
from support.hosts.plugins import NOWHERE, driven
from support.hosts.recording_daemon import recording_daemon

pytestmark = [pytest.mark.host("node"), pytest.mark.proves("PLAT-1", "HOOK-1")]


@pytest.mark.parametrize("settings", [{"PILOTFISH_HOME": ""}, {}], ids=["the usual folder", "another"])
def test_an_edit_is_told_to_the_daemon_at_a_port(settings: dict[str, str], own: DaemonHome, tmp_path: Path) -> None:
    own.environment["LOCALAPPDATA"] = own.environment["XDG_STATE_HOME"] = str(tmp_path / "local")
    own.environment.update(settings)
    windows = driven("pi", own, tmp_path / "driver", system="win32", command=NOWHERE)
    with recording_daemon(own, at_port=True) as daemon, windows as pi:
        assert edited(pi) is None
    assert daemon.touches == [{"paths": [str(own.root / "a.x")], "kind": "edit"}]


CONTENTS: dict[str, Callable[[Endpoint], bytes]] = {
    "nobody listens": written,
    "no port": lambda own: written(own).replace(b" ", b"9999 ", 1),
    "cut off": lambda own: written(own)[:-1],
    "empty": lambda _: b"",
}


@pytest.mark.proves("FMT-8")
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_file_that_leads_to_no_daemon_has_one_started(
    content: Callable[[Endpoint], bytes], own: DaemonHome, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = new_endpoint(listener.getsockname()[1])
    make_private(own.place.folder)
    Path(own.place.socket).write_bytes(content(endpoint))
    with driven("pi", own, tmp_path / "driver", system="win32", command=NOWHERE) as pi:
        assert edited(pi) is None
        assert "pilotfish cannot be run" in status_after(pi)


@pytest.mark.proves("T22", "FMT-8")
@pytest.mark.parametrize("answer", [b"", b"x" * SIZE, b"x"], ids=["silent", "wrong", "short"])
def test_a_program_that_took_the_port_is_told_nothing_but_the_dead_secret(
    answer: bytes, own: DaemonHome, tmp_path: Path
) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = new_endpoint(listener.getsockname()[1])
        make_private(own.place.folder)
        Path(own.place.socket).write_bytes(written(endpoint))

        def impostor() -> None:
            end, _ = listener.accept()
            with end:
                heard.append(end.recv(1000))
                end.sendall(answer)
                end.shutdown(socket.SHUT_WR)
                heard.append(end.recv(1000))

        thread = Thread(target=impostor)
        thread.start()
        with driven("pi", own, tmp_path / "driver", system="win32", command=NOWHERE) as pi:
            assert edited(pi) is None
            assert "pilotfish cannot be run" in status_after(pi)
        thread.join()
    assert heard == [endpoint.word, b""]
