"""The code paths of other systems, forced on this one: what `./check --portable` runs its tests with.

As on a system that is neither Linux nor Windows: no subreaper and no signal at the parent's death, no descriptors of
processes, no `/proc`, no inotify, no Landlock and no seccomp, no `O_PATH`. All programs of ours that a test starts run
so too, whoever starts them: a file of `.venv` has every Python that descends from the run force it. Sockets tell who is
at their other end as Linux tells it: macOS' option does not exist here.
"""

from __future__ import annotations

import os
import site
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# Every Python of a run imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

PLATFORM = "darwin"
O_PATH: int = getattr(os, "O_PATH", 0)
"""On macOS, where the tests run so too, there is none to take away."""
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

FORCE = f"import sys; sys.path.append({TESTS!r}); from support import portable; sys.path.pop(); portable.force()"


class Elsewhere(ModuleType):
    """`sys` as a module of ours sees it there."""

    platform = PLATFORM

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def no_list(_pid: int) -> None:
    """The kernel lists no descendants: psutil does."""


def no_descriptor(_pid: int) -> int:
    raise OSError


def elsewhere(_module: Any) -> dict[str, object]:
    return {"sys": Elsewhere("sys")}


def of_process(module: Any) -> dict[str, object]:
    """No file of `.venv` reaches the supervisor, and what it starts when its owner is gone descends from nobody."""
    alone = f"supervisor.END_STRAYS = {f'{FORCE}; '!r} + supervisor.END_STRAYS"
    here, there = "supervisor.run()", f"sys.platform = {PLATFORM!r}; {alone}; supervisor.run()"
    return {**elsewhere(module), "BOOTSTRAP": module.BOOTSTRAP.replace(here, there)}


FORCED: Mapping[str, Callable[[Any], dict[str, object]]] = {
    "pilotfish.policy.boundary": lambda _: {"LOOK_FLAGS": 0},
    "pilotfish.policy.openat": lambda module: {"STEP_FLAGS": module.STEP_FLAGS & ~O_PATH},
    "pilotfish.system.calls": lambda _: {"open_process": no_descriptor, "O_PATH": os.O_RDONLY},
    "pilotfish.system.confinement": elsewhere,
    "pilotfish.system.process": of_process,
    "pilotfish.system.vitals": lambda _: {"_below": no_list},
    "pilotfish.system.watching.watcher": elsewhere,
}
"""What is another in each module."""


class Forcing:
    """Changes each of them as it is imported."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in FORCED else None
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change
        return spec


def change(module: ModuleType) -> None:
    for name, value in FORCED[module.__name__](module).items():
        setattr(module, name, value)


def force() -> None:
    """In this process, once."""
    if Forcing not in sys.meta_path:
        sys.meta_path.insert(0, Forcing)
        for name in FORCED.keys() & sys.modules.keys():
            change(sys.modules[name])


def force_below(pid: int) -> None:
    """In this process, if it descends from that one: what another run of the same `.venv` starts stays as it is."""
    one = os.getpid()
    try:
        while one not in (0, pid):
            with open(f"/proc/{one}/stat", encoding="utf-8", errors="replace") as file:
                one = int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return  # a real system without /proc needs no force
    if one == pid:
        force()


def reach_programs() -> str:
    """Have the programs that this process starts do the same; returns the file that says so, for whoever deletes it."""
    path = os.path.join(site.getsitepackages()[0], f"portable-{os.getpid()}.pth")
    with open(path, "w", encoding="utf-8") as file:
        file.write(FORCE.replace("force()", f"force_below({os.getpid()})"))
    return path
