"""What can be wrong with the daemon from the outside: gone, dead, hung, an impostor, without a language server."""

import itertools
import os
import signal
import socket
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from pilotfish.daemon.claim import listen, make_private
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.hosts.trouble import Trouble, a_dead_daemon, no_daemon_can_start

__all__ = ["SILENT", "Trouble", "a_dead_daemon", "a_hung_daemon", "impostor", "no_language_server"]


@contextmanager
def a_hung_daemon(home: DaemonHome) -> Generator[None]:
    """For as long as this lasts; then it goes on."""
    with home.control(start=True) as link:
        pid = int(link.welcome["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
        assert home.daemons() == [pid]
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def no_language_server(home: DaemonHome) -> Generator[None]:
    for program in Path(home.environment["PATH"].partition(os.pathsep)[0]).iterdir():
        program.unlink()
    yield


@contextmanager
def impostor(home: DaemonHome, *talks: Sequence[bytes]) -> Generator[None]:
    """Something of our own user in the daemon's place: a talk for each client, and the last one for all that follow.

    A talk is what it says for each thing that it hears; then it hangs up.
    """
    make_private(home.place.folder)
    listener = listen(home.place)
    listener.settimeout(WAIT_SECONDS)

    def serve() -> None:
        with suppress(OSError):  # that is how it ends
            for talk in itertools.chain(talks, itertools.repeat(talks[-1])):
                end, _ = listener.accept()
                with end, suppress(BrokenPipeError, ConnectionResetError):
                    for answer in talk:
                        end.recv(1 << 20)
                        end.sendall(answer)

    with ThreadPoolExecutor(1) as pool, listener:
        pool.submit(serve)
        yield
        listener.shutdown(socket.SHUT_RDWR)


SILENT: dict[str, Trouble] = {
    "no daemon can start": no_daemon_can_start,
    "a hung daemon": a_hung_daemon,
}
"""What leaves an edit without a word of ours."""
