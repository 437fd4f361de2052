"""The code paths of other systems, forced on this one: what `./check --portable` runs its tests with.

As on a system that is neither Linux nor Windows: no subreaper and no signal at the parent's death, no descriptors of
processes, no `/proc`, no inotify, no Landlock and no seccomp, no `O_PATH`. Of the programs that are started, every
supervisor runs so, and every daemon that a test starts itself; one that a hook program or a command line starts does
not. Sockets tell who is at their other end as Linux tells it: macOS' option does not exist here.
"""

import os
import sys
from types import ModuleType
from typing import Any

from pilotfish.ipc import starter
from pilotfish.policy import boundary, openat
from pilotfish.system import calls, confinement, process, vitals
from pilotfish.system.watching import watcher

PLATFORM = "darwin"
O_PATH: int = getattr(os, "O_PATH", 0)
"""On macOS, where the tests run so too, there is none to take away."""
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Elsewhere(ModuleType):
    """`sys` as a module of ours sees it there."""

    platform = PLATFORM

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def force() -> None:
    for name, value in {"open_process": no_descriptor, "O_PATH": os.O_RDONLY}.items():
        setattr(calls, name, value)
    there: list[tuple[ModuleType, str, object]]
    there = [(module, "sys", Elsewhere("sys")) for module in (confinement, process, watcher)]
    there += [(boundary, "LOOK_FLAGS", 0), (openat, "STEP_FLAGS", openat.STEP_FLAGS & ~O_PATH)]
    for module, name, value in (*there, (vitals, "_below", no_list)):
        setattr(module, name, value)
    process.BOOTSTRAP = process.BOOTSTRAP.replace("supervisor.run()", f"sys.platform = {PLATFORM!r}; supervisor.run()")
    first, _, rest = starter.BOOTSTRAP.partition("; from ")
    starter.BOOTSTRAP = f"{first}; sys.path.append({TESTS!r}); from support.portable import force; force(); from {rest}"


def no_list(_pid: int) -> None:
    """The kernel lists no descendants: psutil does."""


def no_descriptor(_pid: int) -> int:
    raise OSError
