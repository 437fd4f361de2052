"""What the Linux kernel holds a program to, once it has asked for it: no way back, for it and all that it starts.

Used in the child of `supervisor`, between `fork` and `execve`, and therefore free of imports that cost time. No
privilege is needed. What a kernel does not offer is left out, and `confine` says what holds:

- `privileges`: no set-user-id program gives it more rights (`PR_SET_NO_NEW_PRIVS`).
- `files`: it changes only what lies in folders of its own, executes nothing below the sealed folders, and reads
  nothing of the private ones (the user's home) but what is listed (Landlock). Landlock only knows what is allowed, so
  everything beside those folders and the folders above them is listed. What comes into one of the folders above later
  is not allowed either. The names of files are not hidden, their contents are.
- `network`: it gets no sockets but local ones (seccomp), nor `io_uring`, which would make some unseen.

A script that some interpreter outside reads is no execution for the kernel: this is the second line of defence, and
the catalogue the first. Signals are not scoped: servers ask by signal 0 whether we still live.
"""

import ctypes
import os
import stat
import struct
import sys

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REFER, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 13, 1 << 14
REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
"""REMOVE_DIR, REMOVE_FILE, and MAKE of every kind of file."""
DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom")
"""What everybody may write to."""
CONNECT_AND_BIND_TCP = 3
SCOPE_ABSTRACT_SOCKETS = 1

ABI_REFER, ABI_TRUNCATE, ABI_NETWORK, ABI_SCOPE = 2, 3, 4, 6
"""The versions of Landlock that brought these; moving files between folders is always denied before the first."""

AF_UNIX, AF_NETLINK = 1, 16
SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By machine: the architecture as seccomp names it, and the number of `socket`."""
IO_URING_SETUP = 425
X32 = 0x40000000
ALLOW, REFUSE, ABSENT = 0x7FFF0000, 0x00050000 | 13, 0x00050000 | 38
"""EACCES, and ENOSYS: programs that find no `io_uring` use something else."""


def landlock_abi() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION))


def confinable() -> list[str]:
    """What `confine` would hold here, as it names it."""
    if sys.platform != "linux":
        return []
    found = ["privileges"]
    if landlock_abi():
        found.append("files")
    if os.uname().machine in SOCKET_CALL and os.path.exists("/proc/sys/kernel/seccomp"):
        found.append("network")
    return found


def confine(folders: dict[bytes, list[bytes]], *, network: bool) -> list[str]:
    """Confine this process. `folders` by what they are: `sealed`, `private`, `readable`, `writable`."""
    if sys.platform != "linux" or _prctl(PR_SET_NO_NEW_PRIVS, 1) != 0:
        return []
    held = ["privileges"]
    if _restrict(folders, network=network):
        held.append("files")
    if not network and _close_network():
        held.append("network")
    return held


def _restrict(folders: dict[bytes, list[bytes]], *, network: bool) -> bool:
    abi = landlock_abi()
    if not abi or b"/" in (*folders[b"sealed"], *folders[b"private"]):
        return False
    change = WRITE_FILE | REMOVE_AND_MAKE
    change |= (REFER if abi >= ABI_REFER else 0) | (TRUNCATE if abi >= ABI_TRUNCATE else 0)
    attributes = struct.pack("=Q", EXECUTE | READ_FILE | READ_DIR | change)
    if abi >= ABI_NETWORK:
        attributes += struct.pack("=Q", 0 if network else CONNECT_AND_BIND_TCP)
    if abi >= ABI_SCOPE:
        attributes += struct.pack("=Q", SCOPE_ABSTRACT_SOCKETS)
    ruleset = _syscall(LANDLOCK_CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for path, rights in _allowed(folders, change):
            _allow(ruleset, path, rights)
        return _syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0, 0) == 0
    finally:
        os.close(ruleset)


def _allowed(folders: dict[bytes, list[bytes]], change: int) -> list[tuple[bytes, int]]:
    """Every place, and what may be done there and below. What it can change it cannot execute."""
    private, readable, writable = folders[b"private"], folders[b"readable"], folders[b"writable"]
    sealed = [*folders[b"sealed"], *writable]
    found = [(b"/", READ_DIR)]
    found += [(path, READ_FILE) for path in (*_beside(b"/", private), *readable)]
    found += [(path, EXECUTE) for path in _beside(b"/", [*sealed, *private])]
    found += [(path, EXECUTE) for top in readable if not _below(top, sealed) for path in _beside(top, sealed)]
    found += [(path, READ_FILE | change) for path in writable]
    return [*found, *((device, WRITE_FILE) for device in DEVICES)]


def _below(path: bytes, tops: list[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


def _beside(folder: bytes, apart: list[bytes]) -> list[bytes]:
    """All of `folder` but what is in `apart`, each at its highest place."""
    if not any(one.startswith(folder.rstrip(b"/") + b"/") for one in apart):
        return [] if folder in apart else [folder]
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    return [place for path in paths if path not in apart for place in _beside(path, apart)]


def _allow(ruleset: int, path: bytes, rights: int) -> None:
    """What cannot be opened stays denied; a link leads to something that has its own place."""
    if sys.platform != "linux":
        return
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        if not stat.S_ISDIR(mode):
            rights &= EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE
        rule = struct.pack("=Qi", rights, descriptor)
        _syscall(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(descriptor)


def _close_network() -> bool:
    if sys.platform != "linux":
        return False
    known = SOCKET_CALL.get(os.uname().machine)
    if known is None:
        return False
    architecture, socket_call = known
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 0, 9, architecture),
        (load, 0, 0, 0),
        (at_least, 7, 0, X32),
        (equal, 6, 0, IO_URING_SETUP),
        (equal, 0, 4, socket_call),
        (load, 0, 0, 16),
        (equal, 2, 0, AF_UNIX),
        (equal, 1, 0, AF_NETLINK),
        (give, 0, 0, REFUSE),
        (give, 0, 0, ALLOW),
        (give, 0, 0, ABSENT),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    filter_program = struct.pack("@HP", len(program), ctypes.addressof(code))
    return _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(filter_program)) == 0


def _prctl(option: int, *arguments: object) -> int:
    padded = (*arguments, *(0 for _ in range(4 - len(arguments))))
    return _library.prctl(option, *map(_word, padded))


def _syscall(number: int, *arguments: object) -> int:
    _library.syscall.restype = ctypes.c_long
    return _library.syscall(_word(number), *map(_word, arguments))


def _word(argument: object) -> object:
    """A whole register for a number: a variadic function reads all of it."""
    return ctypes.c_ulong(argument) if isinstance(argument, int) else argument


_library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
