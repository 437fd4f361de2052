"""Whose processes are whose: every subject's environment has a word of its own, which its children inherit."""

import os
import time
from contextlib import suppress

import psutil

from parity.subjects import MARK

SERVERS = ("langserver", "language-server", "tsserver", "pyright", "gopls", "typingsInstaller")
"""Parts of command lines that are language servers, or what those start."""

LOOK_SECONDS = 0.05
GONE_SECONDS = 5.0
"""How long an end may take before what is left counts as left."""


def of(word: str) -> list[psutil.Process]:
    """All processes that inherited the word, also those that nobody is the parent of any more."""
    return [process for process in psutil.process_iter() if _mark(process) == word]


def end(word: str) -> None:
    """Kill what is left of one subject."""
    _kill(of(word))


def end_below(folder: str) -> None:
    """Kill what is left of all subjects whose scratch folders are in this one."""
    _kill([process for process in psutil.process_iter() if _mark(process).startswith(f"{folder}/")])


def _kill(found: list[psutil.Process]) -> None:
    """Nobody is waited for: whoever started one of these must be the one to learn how it ended."""
    for process in found:
        with suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + GONE_SECONDS
    while any(map(_mark, found)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _mark(process: psutil.Process) -> str:
    try:
        return process.environ().get(MARK, "") if process.pid != os.getpid() else ""
    except psutil.Error:
        return ""


def is_server(process: psutil.Process) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(part in line for part in SERVERS) and "pilotfish" not in line


def servers(word: str) -> int:
    """How many of a subject's processes are language servers."""
    return sum(map(is_server, of(word)))


def memory(processes: list[psutil.Process]) -> float:
    """Resident megabytes of all of them."""
    total = 0
    for process in processes:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total / 1e6


def left(word: str) -> int:
    """How many are there after `GONE_SECONDS` at the most."""
    deadline = time.monotonic() + GONE_SECONDS
    while (found := of(word)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return len(found)
