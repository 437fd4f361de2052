"""Memory and processor time of a process tree, by psutil, in a worker thread: a walk over /proc takes milliseconds."""

from collections.abc import Callable

import anyio.to_thread
import psutil

MIB = 1024 * 1024


class SystemVitals:
    """Implements `ports.Vitals`."""

    async def memory_mib(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(_sum_over_tree, pid, _own_memory_mib)

    async def cpu_seconds(self, pid: int) -> float | None:
        return await anyio.to_thread.run_sync(_sum_over_tree, pid, _own_cpu_seconds)


def _own_memory_mib(process: psutil.Process) -> float:
    return process.memory_info().rss / MIB


def _own_cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _sum_over_tree(pid: int, measure: Callable[[psutil.Process], float]) -> float | None:
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return None
    return sum(_measured(process, measure) for process in processes)


def _measured(process: psutil.Process, measure: Callable[[psutil.Process], float]) -> float:
    try:
        return measure(process)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        # It ended while we walked; the others still count.
        return 0.0
