"""Memory and processor time of a process and all below it, by psutil. Blocking: for a thread."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil


def memory_of_tree(pid: int) -> float | None:
    """In bytes."""
    return _sum_over_tree(pid, _own_memory)


def cpu_seconds_of_tree(pid: int) -> float | None:
    return _sum_over_tree(pid, _own_cpu_seconds)


def _own_memory(process: psutil.Process) -> float:
    return process.memory_info().rss


def _own_cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _sum_over_tree(pid: int, measure: Callable[[psutil.Process], float]) -> float | None:
    try:
        root = psutil.Process(pid)
        below = _below(pid)
        processes = root.children(recursive=True) if below is None else _alive(below)
    except psutil.NoSuchProcess:
        return None
    return sum(_measured(process, measure) for process in (root, *processes))


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


def _alive(pids: Iterable[int]) -> list[psutil.Process]:
    alive: list[psutil.Process] = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):  # it ended while we walked
            alive.append(psutil.Process(pid))
    return alive


def _measured(process: psutil.Process, measure: Callable[[psutil.Process], float]) -> float:
    try:
        return measure(process)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        # It ended while we walked; the others still count.
        return 0.0
