"""Memory and processor time of servers: of a process and all below it, by psutil.

In a worker thread: a walk over /proc takes milliseconds. So does importing psutil, which is done there, too: nobody
waits for it.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

if TYPE_CHECKING:
    from psutil import Process

MIB = 1024 * 1024


class SystemVitals:
    """Implements `ports.Vitals`."""

    async def memory_mib(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(
            lambda: _sum_over_tree(pid, lambda process: process.memory_info().rss / MIB)
        )

    async def cpu_seconds(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(lambda: _sum_over_tree(pid, lambda process: sum(process.cpu_times()[:2])))


def machine_memory_mib(limit: str = "/sys/fs/cgroup/memory.max") -> float:
    """The memory of this machine, or of the container that we run in."""
    import psutil

    total = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        total = min(total, int(Path(limit).read_text()))
    return total / MIB


def _sum_over_tree(pid: int, measure: "Callable[[Process], float]") -> float | None:
    """Of what ends while we walk nothing counts; the others still do."""
    import psutil

    try:
        root = psutil.Process(pid)
        below = _below(pid)
        pids = [process.pid for process in root.children(recursive=True)] if below is None else below
    except psutil.NoSuchProcess:
        return None
    total = 0.0
    for each in (pid, *pids):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            total += measure(psutil.Process(each))
    return total


def _below(pid: int) -> list[int] | None:
    """The descendants of a process as the kernel lists them; None where it does not.

    psutil reads the parent of every process there is, which takes as long as all the rest.
    """
    found: list[int] = []
    waiting = [pid]
    while waiting:
        tasks = f"/proc/{waiting.pop()}/task"
        try:
            children = [child for task in os.listdir(tasks) for child in _children(f"{tasks}/{task}/children")]
        except FileNotFoundError:
            if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
                return None
            # It ended while we walked.
            continue
        found += children
        waiting += children
    return found


def _children(file: str) -> list[int]:
    with open(file, encoding="ascii") as listed:
        return [int(child) for child in listed.read().split()]
