"""The memory of a process tree, as the kernel lists the tree, and as psutil does where it does not."""

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from pilotfish.system import vitals
from pilotfish.system.vitals import MIB, SystemVitals

pytestmark = pytest.mark.anyio

CHILD = "x = b'1' * 40_000_000; print('up', flush=True); input()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {CHILD!r}])"


@pytest.fixture
def tree() -> Iterator[int]:
    """A process with a child that holds 40 MB."""
    argv = [sys.executable, "-I", "-S", "-c", PARENT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid


def unlisted(_pid: int) -> None:
    """A kernel that keeps no list of children."""


@pytest.mark.parametrize("listed", [True, False], ids=["listed by the kernel", "searched for"])
async def test_children_count(tree: int, listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not listed:
        monkeypatch.setattr(vitals, "_below", unlisted)
    found = await SystemVitals().memory_mib(tree)
    assert found is not None
    assert found > 40_000_000 / MIB
    assert await SystemVitals().cpu_seconds(tree) is not None


async def test_a_process_that_is_gone_has_no_memory() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ""]) as process:
        process.wait()
    assert not psutil.pid_exists(process.pid)
    assert await SystemVitals().memory_mib(process.pid) is None
