"""All that is published, built once for a run of the gate, and the folder that an installation takes it from."""

import fcntl
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.servers.real import REPOSITORY

ADDRESS = "https://example.org/you/pilotfish"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}-{sys.platform}-{platform.machine().replace('arm64', 'aarch64')}"


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tools/package.py` makes, with an archive for this system alone."""

    def build(folder: Path) -> None:
        tool = [sys.executable, str(REPOSITORY / "tools/package.py"), "--repository", ADDRESS]
        done = subprocess.run([*tool, "--out", folder, "--for", HERE], capture_output=True, text=True, check=False)
        assert not done.returncode, done.stdout + done.stderr

    return _once(tmp_path_factory, "dist", build)


@pytest.fixture(scope="session")
def wheelhouse(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel and those that it needs: all that an installation without a network gets."""

    def fill(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        argv = [*pip, "--only-binary=:all:", "--dest", folder, next(dist.glob("*.whl"))]
        subprocess.run(argv, check=True, capture_output=True)

    return _once(tmp_path_factory, "wheelhouse", fill)


def _once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that the first of the workers has made. Alone, a run has no folder that it shares with others."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if own.name.startswith("popen-") else own) / name
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            make(folder)
    return folder
