"""What runs below a process, read from `/proc`, and how to wait until it is gone."""

import os
import select
from dataclasses import dataclass

GONE_SECONDS = 5.0
"""How long a test waits for a death: a thousand times what one takes."""


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a tree. A zombie has a `state` of `Z` and nothing else to tell."""

    pid: int
    parent: int
    group: int
    state: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.state}, child of {self.parent}): {command(self.pid)}"


def below(ancestor: int) -> list[Member]:
    """Every living or dead-but-unreaped descendant."""
    everyone = [found for found in map(member, pids()) if found is not None]
    found = {ancestor}
    while more := {each.pid for each in everyone if each.parent in found} - found:
        found |= more
    return [each for each in everyone if each.pid in found - {ancestor}]


def pids() -> set[int]:
    """Every process there is."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def member(pid: int) -> Member | None:
    """The process with this pid, zombies included; None when there is none."""
    fields = _content(pid, "stat").rpartition(b")")[2].split()
    return Member(pid, int(fields[1]), int(fields[2]), fields[0].decode()) if fields else None


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    found = member(pid)
    return found is not None and found.state not in "ZX"


def environment(pid: int) -> dict[str, str]:
    """Its environment as it was started with; empty when it is gone or a zombie."""
    pairs = (os.fsdecode(variable).partition("=") for variable in _content(pid, "environ").split(b"\0") if variable)
    return {name: value for name, _, value in pairs}


def command(pid: int) -> str:
    return _content(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def ends(pid: int, seconds: float = GONE_SECONDS) -> bool:
    """Wait until the process has ended; False when it still runs after the time for that."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _content(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
