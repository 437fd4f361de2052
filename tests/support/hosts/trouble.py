"""What can be wrong behind a host's back: no daemon, a dead one, a hung one, no language server, no configuration."""

import os
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pilotfish.config.places import user_places
from pilotfish.daemon.claim import listen, make_private
from support.daemon.homes import DaemonHome, ended

Trouble = Callable[[DaemonHome], AbstractContextManager[None]]


@contextmanager
def no_daemon_can_start(home: DaemonHome) -> Generator[None]:
    folder = Path(home.place.folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("no folder")
    yield
    assert home.daemons() == []


@contextmanager
def a_dead_daemon(home: DaemonHome) -> Generator[None]:
    """Killed, so that its socket is still there."""
    with home.control(start=True) as link:
        pid = int(link.welcome["pid"])
        os.kill(pid, signal.SIGKILL)
    assert ended(pid)
    assert os.path.exists(home.place.socket)
    yield


@contextmanager
def a_hung_daemon(home: DaemonHome) -> Generator[None]:
    """Something that takes connections and never says a word."""
    make_private(home.place.folder)
    with listen(home.place) as listener:
        yield
        assert _waited(listener) > 0


@contextmanager
def no_language_server(home: DaemonHome) -> Generator[None]:
    with no_configuration(home):
        for program in Path(home.environment["PATH"].partition(os.pathsep)[0]).iterdir():
            program.unlink()
        yield
        assert "hook session" in home.log


@contextmanager
def no_configuration(home: DaemonHome) -> Generator[None]:
    os.unlink(user_places(home.environment).global_file)
    yield


def _waited(listener: socket.socket) -> int:
    """How many have come to a listener that never took one."""
    listener.setblocking(False)
    count = 0
    try:
        while True:
            listener.accept()[0].close()
            count += 1
    except BlockingIOError:
        return count
