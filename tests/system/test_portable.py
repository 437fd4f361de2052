"""`pytest --portable` is believed: what it forces must be forced in every program of the run, and in no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.portable import FORCED, PLATFORM, reach_programs

pytestmark = [pytest.mark.proves("PLAT-1"), pytest.mark.linux("elsewhere nothing is forced")]

SHOWN = "import sys; from pilotfish.system import confinement as one; print(one.sys.platform)"
BELOW = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {SHOWN!r}])"


def platform(code: str = SHOWN) -> str:
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_what_a_run_starts_takes_the_paths_of_another_system_and_nobody_else_does() -> None:
    assert platform() == "linux"
    file = Path(reach_programs())
    try:
        assert (platform(), platform(BELOW)) == (PLATFORM, PLATFORM)
        somebody = file.read_text().replace(str(os.getpid()), str(2**22 + 1))  # more than any pid
        file.write_text(somebody)
        assert platform() == "linux"
    finally:
        file.unlink()


@pytest.mark.parametrize("name", FORCED)
def test_what_is_forced_is_there(name: str) -> None:
    module = __import__(name, fromlist=["*"])
    for changed, value in FORCED[name](module).items():
        assert getattr(module, changed) != value
