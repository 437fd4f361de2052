"""Where clients and the daemon meet: the folder, its locks and its socket, and what both ends check before they talk.

Rules:
- Everything lies in private folders of the user (0700, no link); a client connects only to a socket of the user, and
  checks that the peer is the user too (T22, T23).
- A socket file proves nothing. The process that holds the lock is the daemon, and the lock ends with that process.
- The names carry the version of the protocol, so that daemons of two versions can run side by side.

Imports next to nothing, because it runs for every edit: `dataclasses`, `socket` or `json` would cost as much as the
whole program may.
"""

import os
import stat
import sys

# `socket` wraps this module in enums, for ten times the price. `typing` costs as much.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
else:
    import _socket as socket

PROTOCOL = 1
"""Raised when a client and the daemon could misunderstand each other. New methods and fields do not raise it."""

BUILD = os.stat(__file__).st_mtime_ns
"""When this code was installed. A daemon that is called by a client with newer code ends as soon as it can."""

MAX_SOCKET_PATH = 107 if sys.platform == "linux" else 103
"""Bytes of a socket's path that the kernel takes, without the zero at its end."""


class Missed(Exception):
    """The client could not connect."""


class NoDaemon(Missed):
    """No daemon listens; one can be started."""


class Busy(Missed):
    """A daemon listens, and cannot accept one more connection."""


class Unsafe(Missed):
    """The folder or socket is not ours, or others could change it."""


class DaemonPlace:
    """The paths of one user's daemon: a function of the environment, and of one link where a path is too long."""

    __slots__ = ("folder", "lock", "log", "name", "short", "start_lock", "state")

    def __init__(self, environment: "Mapping[str, str]") -> None:
        self.state = state_folder(environment)
        self.folder = os.path.join(self.state, "run")
        self.lock = os.path.join(self.folder, f"daemon-{PROTOCOL}.lock")
        self.start_lock = os.path.join(self.folder, f"start-{PROTOCOL}.lock")
        self.log = os.path.join(self.state, "logs", "daemon.log")
        self.name = f"daemon-{PROTOCOL}.sock"
        long = len(os.fsencode(os.path.join(self.folder, self.name))) > MAX_SOCKET_PATH
        self.short = os.path.join(self.folder, "short") if long else ""
        """The link to a folder of a shorter path, which the daemon has made: its name cannot be guessed."""

    @property
    def socket_folder(self) -> str:
        try:
            return os.readlink(self.short) if self.short else self.folder
        except OSError:
            return self.folder

    @property
    def socket(self) -> str:
        return os.path.join(self.socket_folder, self.name)


def state_folder(environment: "Mapping[str, str]") -> str:
    """The folder of our own state. The same as `config.places` says, which imports too much for here."""
    own = environment.get("PILOTFISH_HOME")
    if own:
        return os.path.abspath(own)
    base = environment.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = environment.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
        usual = ("AppData", "Local") if sys.platform == "win32" else (".local", "state")
        base = os.path.join(home if os.path.isabs(home) else os.path.expanduser("~"), *usual)
    return os.path.join(base, "pilotfish")


def connect(place: DaemonPlace, seconds: float) -> "socket.socket":
    """Connect to the running daemon; later reads and writes time out after `seconds`. Raises `Missed`."""
    path = place.socket
    if sys.platform == "win32":
        return _meet(path, seconds)
    _check_private(place.folder)
    _check_private(os.path.dirname(path))
    check_socket(path)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The kernel waits for room in the queue of the daemon; with Python's own time limit, `connect` would not.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(seconds))
        end.connect(path)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(0.0))
        end.settimeout(seconds)
        if peer_user(end) != os.geteuid():
            raise Unsafe(f"another user listens at {path}")
    except (FileNotFoundError, ConnectionRefusedError):
        end.close()
        raise NoDaemon(f"no daemon listens at {path}") from None
    except (BlockingIOError, TimeoutError):
        end.close()
        raise Busy(f"the daemon at {path} accepts no connections") from None
    except BaseException:
        end.close()
        raise
    return end


def _meet(path: str, seconds: float) -> "socket.socket":
    from pilotfish.ipc.loopback import MOST, meet, read_endpoint

    try:
        with open(path, "rb", buffering=0) as file:
            endpoint = read_endpoint(file.read(MOST + 1))
        end = None if endpoint is None else meet(endpoint, seconds)
    except TimeoutError:
        raise Busy(f"the daemon of {path} accepts no connections") from None
    except (FileNotFoundError, ConnectionError):
        end = None
    if end is None:
        raise NoDaemon(f"no daemon listens for {path}")
    return end


def check_socket(path: str) -> None:
    """Raise `NoDaemon` when nothing is there, `Unsafe` when it is not a socket of the user."""
    status = _status(path)
    if not stat.S_ISSOCK(status.st_mode):
        raise Unsafe(f"{path} is not a socket")
    if status.st_uid != _user():
        raise Unsafe(f"{path} belongs to another user")


def peer_user(end: "socket.socket") -> int | None:
    """The user at the other end; None where the system cannot say."""
    if sys.platform == "linux":
        option = socket.SOL_SOCKET, socket.SO_PEERCRED
    elif sys.platform == "darwin":
        option = 0, 1  # SOL_LOCAL, LOCAL_PEERCRED
    else:
        return None
    # Both kinds of credentials have four other bytes first: the pid here, a version there.
    return int.from_bytes(end.getsockopt(*option, 128)[4:8], sys.byteorder)


def packed(environment: "Mapping[str, str]") -> str:
    """The client's variables as the daemon takes them: hexadecimal, because they may hold any bytes."""
    return b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items()).hex()


def _timeval(seconds: float) -> bytes:
    microseconds = int(seconds * 1_000_000)
    return b"".join(part.to_bytes(8, sys.byteorder) for part in divmod(microseconds, 1_000_000))


def _check_private(folder: str) -> None:
    status = _status(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != _user():
        raise Unsafe(f"{folder} is not a folder of this user")
    if status.st_mode & 0o077:
        raise Unsafe(f"{folder} is open to other users")


def _user() -> int:
    """As `system.calls` says, which is one import more."""
    return 0 if sys.platform == "win32" else os.geteuid()


def _status(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise NoDaemon(f"{path} does not exist") from None
