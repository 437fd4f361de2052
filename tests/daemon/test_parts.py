"""Small parts of the daemon: settings, and the end of processes."""

import json
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from pilotfish.config.places import user_places
from pilotfish.daemon import lifetime
from pilotfish.daemon import main as settings_module
from pilotfish.daemon.lifetime import wait_for_process
from pilotfish.daemon.main import IDLE_VARIABLE, Settings, settings_of
from pilotfish.pool.plan import Limits
from pilotfish.system import calls
from pilotfish.system.vitals import machine_memory_mib


def limits(idle: float = 600.0, memory_mib: float | None = 512.0, per_server: float | None = None) -> Limits:
    return Limits(idle, idle, per_server, memory_mib)


@pytest.fixture(autouse=True)
def memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "machine_memory_mib", lambda: 1024.0)


@pytest.mark.parametrize(
    ("config", "variables", "settings"),
    [
        pytest.param({}, {}, Settings(limits(), 600.0), id="defaults"),
        pytest.param({"pool": {"memoryMiB": None}}, {}, Settings(limits(memory_mib=None), 600.0), id="no limit"),
        pytest.param(
            {"pool": {"idleMinutes": 2, "memoryMiB": 900, "memoryMiBPerServer": 300}},
            {},
            Settings(limits(120.0, 900, 300), 120.0),
            id="the user's",
        ),
        pytest.param({}, {IDLE_VARIABLE: "7"}, Settings(limits(), 7.0), id="by the environment"),
        pytest.param({}, {IDLE_VARIABLE: "0"}, Settings(limits(), 1.0), id="never at once"),
        pytest.param({}, {IDLE_VARIABLE: "soon"}, Settings(limits(), 600.0), id="no number"),
        pytest.param({"pool": {"idleMinutes": -1}}, {}, Settings(limits(), 600.0), id="broken"),
    ],
)
def test_settings(tmp_path: Path, config: dict[str, Any], variables: dict[str, str], settings: Settings) -> None:
    environment = {"HOME": str(tmp_path), **variables}
    file = Path(user_places(environment).global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(config))
    assert settings_of(user_places(environment), environment) == settings


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("1073741824\n", 1024.0), ("max\n", None), (None, None)],
    ids=["of a container", "of none", "not there"],
)
def test_the_memory_of_the_machine(tmp_path: Path, limit: str | None, expected: float | None) -> None:
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)
    whole = psutil.virtual_memory().total / 1024 / 1024
    assert machine_memory_mib(str(file)) == (expected or whole)


def test_a_user_without_a_home_has_defaults(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "gone")}
    assert settings_of(user_places(environment), environment) == Settings(limits(), 600.0)


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        pytest.param(256, 8192, (4096, 8192), id="raised"),
        pytest.param(256, 1024, (1024, 1024), id="as far as it goes"),
        pytest.param(256, resource.RLIM_INFINITY, (4096, resource.RLIM_INFINITY), id="no hard limit"),
        pytest.param(8192, 8192, None, id="high enough"),
        pytest.param(resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, id="no limit"),
    ],
)
def test_descriptors(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: tuple[int, int] | None) -> None:
    said: list[tuple[int, int]] = []

    def limits(_: int) -> tuple[int, int]:
        return soft, hard

    def remember(_: int, limits: tuple[int, int]) -> None:
        said.append(limits)

    monkeypatch.setattr(resource, "getrlimit", limits)
    monkeypatch.setattr(resource, "setrlimit", remember)
    calls.allow_descriptors(4096)
    assert said == ([] if wanted is None else [wanted])


HEAPS = """
import ctypes, tempfile, threading
from pilotfish.system import calls

{}
together = threading.Barrier(4)

def work():
    together.wait()
    kept.append(bytes(50_000))

kept = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(file.fileno(), b"w"))
    libc.malloc_info(0, stream)
    libc.fflush(stream)
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="nothing to say to other allocators")
def test_threads_leave_no_heaps_of_their_own() -> None:
    def heaps(first: str) -> int:
        return int(subprocess.check_output([sys.executable, "-c", HEAPS.format(first)], timeout=60))

    assert heaps("") > 1
    assert heaps("calls.give_back_memory()") == 1


@pytest.mark.parametrize("has_descriptors", [True, False], ids=["told", "looking"])
def test_the_end_of_a_process_is_noticed(monkeypatch: pytest.MonkeyPatch, has_descriptors: bool) -> None:
    if not has_descriptors:
        monkeypatch.delattr("os.pidfd_open")
        monkeypatch.setattr(lifetime, "POLL_SECONDS", 0.001)
    with subprocess.Popen(["sleep", "60"]) as process:

        async def watch() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_process, process.pid)
                await anyio.wait_all_tasks_blocked()
                process.kill()
                process.wait()

        anyio.run(watch)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1])
def test_a_process_that_is_none_cannot_be_watched(pid: int) -> None:
    with pytest.raises(ProcessLookupError):
        anyio.run(wait_for_process, pid)
