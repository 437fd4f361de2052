"""Whose processes are whose: every subject has a word of its own in its environment, and a workspace of its own."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from harness.setting import MARK, Setting

SERVERS = ("langserver", "language-server", "tsserver", "pyright", "gopls", "typingsInstaller")
"""Parts of the names of programs that are language servers, or what those start."""

INTERPRETERS = ("python", "node")
LOOK_SECONDS = 0.05

GONE_SECONDS = 5.0
"""How long an end may take before what is left counts as left."""


def of(setting: Setting) -> list[psutil.Process]:
    """All processes of a subject, also those that nobody is the parent of any more.

    They inherited its word, or they run in the workspace that nobody else has (we give servers no environment that they
    do not need), or they are below one of those.
    """
    found = [process for process in psutil.process_iter() if process.pid != os.getpid()]
    known = {one for one in found if _mark(one) == str(setting.scratch) or _is_below(one, setting.root)}
    known |= {child for one in known for child in _children(one)}
    # The library is no process of its own, and a supervisor has no folder: it is known by its server.
    return [one for one in found if one in known or (is_supervisor(one) and known.intersection(_children(one)))]


def is_supervisor(process: psutil.Process) -> bool:
    """Ours, between the daemon and a server; it has neither an environment nor a folder."""
    return any("supervisor" in word for word in words(process))


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def end(setting: Setting) -> None:
    """Kill what is left of one subject."""
    _kill(of(setting))


def end_below(folder: Path) -> None:
    """Kill what is left of all subjects whose folders are in this one."""
    found = [process for process in psutil.process_iter() if process.pid != os.getpid()]
    _kill([one for one in found if _mark(one).startswith(f"{folder}/") or _is_below(one, folder)])


def _kill(found: list[psutil.Process]) -> None:
    """Nobody is waited for: whoever started one of these must be the one to learn how it ended."""
    for process in found:
        with suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + GONE_SECONDS
    while any(map(words, found)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _mark(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return process.environ().get(MARK, "")
    return ""


def _is_below(process: psutil.Process, folder: Path) -> bool:
    with suppress(psutil.Error):
        return f"{process.cwd()}/".startswith(f"{folder}/")
    return False


def words(process: psutil.Process) -> list[str]:
    """Its command line; nothing for one that has ended."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def is_server(process: psutil.Process) -> bool:
    """By its program, or by the script that its interpreter runs: what a program is told to start is no server."""
    line = words(process)
    program = os.path.basename(line[0]) if line else ""
    if program.startswith(INTERPRETERS):
        program = os.path.basename(next((word for word in line[1:] if not word.startswith("-")), ""))
    return any(part in program for part in SERVERS)


def servers(setting: Setting) -> int:
    """How many of a subject's processes are language servers."""
    return sum(map(is_server, of(setting)))


def memory(processes: Sequence[psutil.Process]) -> float:
    """Resident megabytes of all of them."""
    return sum(_told(lambda process: process.memory_info().rss, processes)) / 1e6


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    return sum(_told(lambda process: sum(process.cpu_times()[:2]), processes))


def _told(ask: Callable[[psutil.Process], float], processes: Sequence[psutil.Process]) -> Iterator[float]:
    for process in processes:
        with suppress(psutil.Error):
            yield ask(process)


def left(setting: Setting, known: Sequence[psutil.Process] = ()) -> int:
    """How many are there after `GONE_SECONDS` at the most, those that were known before among them."""
    deadline = time.monotonic() + GONE_SECONDS
    while (found := {*of(setting), *filter(words, known)}) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return len(found)
