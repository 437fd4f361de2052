"""`pilotfish` of npm in a hostile folder: of it nothing runs while a Python is looked for (T8, T9)."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.files.canaries import canary

LAUNCHER = Path(__file__).parents[2] / "npm" / "pilotfish" / "pilotfish.js"

RUNS = "open({!r}).close()\n"
PROGRAM = '#!/bin/sh\n: < {}\nexec {} "$@"\n'

HOSTILE: Mapping[str, str] = {
    "a module": "venv.py",
    "a package": "venv/__init__.py",
    "a program, and a search path that begins here": "python3",
    "an environment, and nothing but uv": ".venv/bin/python",
}
"""What in the folder would run, by when."""

UV = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
if [ -x .venv/bin/python ]; then exec .venv/bin/python "$@"; fi
exec {} "$@"
"""
"""What uv does with a `.venv` in the current folder; it cannot be installed for this test."""


@pytest.mark.proves("T8", "T9", "A19.1")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("case", HOSTILE)
def test_nothing_of_the_current_folder_runs_while_a_python_is_looked_for(case: str, tmp_path: Path) -> None:
    package, here, programs = (tmp_path / name for name in ("package", "here", "programs"))
    for folder in (package, here, programs):
        folder.mkdir()
    shutil.copy(LAUNCHER, package)
    (package / "pilotfish.pyz").write_text("import sys\nprint('ran', *sys.argv[1:])\n")
    told, planted = canary(tmp_path), here / HOSTILE[case]
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(RUNS.format(str(told)) if planted.suffix == ".py" else PROGRAM.format(told, sys.executable))
    planted.chmod(0o755)
    program = programs / ("uv" if "uv" in case else "python3")
    program.write_text((UV if "uv" in case else '#!/bin/sh\nexec {} "$@"\n').format(sys.executable))
    program.chmod(0o755)
    path = f".:{programs}" if "search path" in case else str(programs)
    argv = [str(shutil.which("node")), str(package / "pilotfish.js"), "--version"]
    done = subprocess.run(
        argv, cwd=here, env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ran --version\n"), done
    assert not told.was_read()
