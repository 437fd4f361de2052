"""A file layer that fails at the n-th call: every function of `os` that opens or changes something counts.

Some faults pass, some stay: a disk stays full. A killed process does nothing more at all: every later call raises, and
`Killed` is no `Exception` that anybody could handle.
"""

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

OPENING = ("open", "mkdir", "link", "write", "fsync", "fchmod")
"""Calls that may need space."""
MOVING = ("replace", "rename", "unlink", "rmdir")
CALLS = OPENING + MOVING


class Killed(BaseException):
    """What a killed process would have gone on to do."""


@dataclass
class Faults:
    """Fails call number `at`; with `at` None it only counts."""

    at: int | None
    fail: Callable[[], BaseException]
    hits: Callable[[str], bool]
    """Which calls fail after the first failure."""
    calls: list[str] = field(default_factory=list[str])
    failing: bool = False

    def before(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) - 1 == self.at or (self.failing and self.hits(name)):
            self.failing = True
            raise self.fail()


def kill(at: int | None) -> Faults:
    return Faults(at, Killed, lambda name: True)


def error(number: int, at: int) -> Faults:
    return Faults(at, lambda: OSError(number, os.strerror(number)), lambda name: False)


def full_disk(at: int) -> Faults:
    """From then on nothing that needs space succeeds; names can still be moved and removed."""
    return Faults(at, lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), lambda name: name in OPENING[1:])


def gone_bad(at: int) -> Faults:
    """From then on nothing can be changed at all."""
    return Faults(at, lambda: OSError(errno.EIO, os.strerror(errno.EIO)), lambda name: name != "open")


@contextmanager
def injected(faults: Faults) -> Generator[Faults]:
    def wrapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            faults.before(name)
            return original(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        yield faults
