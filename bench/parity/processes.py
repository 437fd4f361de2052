"""Whose processes are whose: every subject's environment has a word of its own, which its children inherit."""

import os
import time

import psutil

from parity.subjects import MARK

SERVERS = ("langserver", "language-server", "tsserver", "pyright", "gopls", "typingsInstaller")
"""Parts of command lines that are language servers, or what those start."""

GONE_SECONDS = 5.0
"""How long an end may take before what is left counts as left."""


def of(word: str) -> list[psutil.Process]:
    """All processes that inherited the word, also those that nobody is the parent of any more."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == word:
                found.append(process)
        except psutil.Error:
            continue
    return found


def is_server(process: psutil.Process) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return any(part in line for part in SERVERS) and "pilotfish" not in line


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
        psutil.wait_procs(found, timeout=0.1)
    return len(found)
