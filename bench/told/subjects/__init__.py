"""Whoever is measured: told of each edit in the way of a host, and asked for what the model would read.

A subject has a folder of its own for its home and its state, and a project that nobody else has. To add one, write a
class with the methods of `setting.Subject` in the module of its family, and name it in `SUBJECTS`.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from parity import processes

from told.subjects.bare import BareServer
from told.subjects.hooks import ClaudeCodeHook, PlainHook, TouchedVerb
from told.subjects.hosts import WIRINGS, Host
from told.subjects.library import Library
from told.subjects.nothing import Nothing
from told.subjects.setting import Setting, Subject
from told.subjects.tools import HABITS, ToolUser

SUBJECTS: Mapping[str, Callable[[Setting], Subject]] = {
    **{kind.name: kind for kind in (PlainHook, ClaudeCodeHook, TouchedVerb, Library, Nothing, BareServer)},
    **{habit.name: partial(ToolUser, habit=habit) for habit in HABITS},
    **{wiring.name: partial(Host, wiring=wiring) for wiring in WIRINGS},
}

ABSENT: Mapping[str, str] = {
    "crush": "its npm package has no program: it fetches one from GitHub when it is installed, and no registry has it",
}
"""Hosts that should be measured and cannot be here, each with the reason."""


@dataclass(frozen=True)
class Cost:
    """What all processes of a subject took together."""

    cpu_seconds: float = 0.0
    megabytes: float = 0.0


@contextmanager
def opened(name: str, setting: Setting) -> Generator[Subject]:
    """The subject, from begin to end; whatever of it is left after that is said, and ended by its number."""
    setting.prepare()
    subject = SUBJECTS[name](setting)
    try:
        subject.begin()
        yield subject
    finally:
        subject.end()
        if left := processes.left(setting.scratch, setting.root, ()):
            print(f"{left} processes were left behind", flush=True)
            processes.end(setting.scratch, setting.root)


def cost(setting: Setting) -> Cost:
    """Of the processes that are there now."""
    import psutil

    found, seconds = processes.of(setting.scratch, setting.root), 0.0
    for process in found:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        seconds += times.user + times.system
    return Cost(round(seconds, 1), round(processes.memory(found)))
