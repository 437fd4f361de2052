"""Programs that end by themselves."""

import subprocess
import sys
import time

from told.subjects.setting import HOST_SECONDS, Setting


def pilotfish() -> list[str]:
    return [sys.executable, "-m", "pilotfish"]


def run(argv: list[str], setting: Setting, given: bytes | None) -> tuple[str, float, str]:
    """What a program printed, how long it took, and what went wrong."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv,
            cwd=setting.root,
            env=setting.environment(),
            input=given or b"",
            capture_output=True,
            timeout=HOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", (time.perf_counter() - began) * 1000, f"no answer within {HOST_SECONDS:.0f} s"
    took = (time.perf_counter() - began) * 1000
    error = done.stderr.decode(errors="replace").strip()
    if done.returncode not in {0, 1, 2}:
        error = f"ended with {done.returncode}: {error}"
    return done.stdout.decode(errors="replace"), took, error
