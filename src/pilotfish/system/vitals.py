"""Memory and processor time of servers, in a worker thread: a walk over /proc takes milliseconds.

So does importing psutil, which is done there, too: nobody waits for it.
"""

import os
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

MIB = 1024 * 1024


class SystemVitals:
    """Implements `ports.Vitals`."""

    async def memory_mib(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(_memory_mib, pid)

    async def cpu_seconds(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(_cpu_seconds, pid)


def machine_memory_mib(limit: str = "/sys/fs/cgroup/memory.max") -> float:
    """The memory of this machine, or of the container that we run in."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        total = min(total, int(Path(limit).read_text()))
    return total / MIB


def _memory_mib(pid: int) -> float | None:
    from pilotfish.system.process_tree import memory_of_tree

    memory = memory_of_tree(pid)
    return None if memory is None else memory / MIB


def _cpu_seconds(pid: int) -> float | None:
    from pilotfish.system.process_tree import cpu_seconds_of_tree

    return cpu_seconds_of_tree(pid)
