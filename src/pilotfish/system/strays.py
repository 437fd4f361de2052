"""What is left of a tree whose supervisor was killed, found by the tag in its environment.

The last resort: a supervisor that ended properly has left nothing, and then this is not used.
Not found are processes that cleared their environment or changed their user. Where there is no `/proc`, the server's
process group is all that can be ended. It is not used either when we are killed together with the supervisor: then the
kernel ends the server (Linux), and what the server had started stays.
"""

import os
import select
import signal
import sys
from contextlib import suppress

TAG = "PILOTFISH_TREE"
"""The variable every process of a tree inherits; its value is `OWNER_PID-RANDOM`, unique to one launch."""

DEATH_MILLISECONDS = 1000
"""A killed process is gone within milliseconds; one stuck in the kernel must not hold up the others."""

PASSES = 50
"""A tree that still grows after so many passes outruns us; the bound keeps the caller's thread from staying here."""


def kill_strays(token: str, group: int | None) -> None:
    """SIGKILL every process tagged with `token`, until a whole pass finds none. Blocks: call it in a thread."""
    if sys.platform != "linux" and group is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    for _ in range(PASSES):
        killed = [_kill(pid) for pid in find_strays(token)]
        if not any(killed):
            return


def find_strays(token: str) -> list[int]:
    """The living processes whose environment carries the tag."""
    if sys.platform != "linux":
        return []
    needle = f"{TAG}={token}".encode()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _has_variable(name, needle)]


def _has_variable(pid: str, variable: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as environment:
            return variable in environment.read().split(b"\0")
    except OSError:
        return False  # gone, or not ours to look at


def _kill(pid: int) -> bool:
    """Kill and wait for the death; False when there was nothing to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a kernel without descriptors of processes, or not ours: the next pass tells
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        poller.poll(DEATH_MILLISECONDS)
    finally:
        os.close(descriptor)
    return True
