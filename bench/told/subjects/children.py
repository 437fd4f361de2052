"""Programs that end by themselves: ours as a user or a host runs them, and anything else; and what a process holds."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from told.subjects.setting import HOST_SECONDS, Setting
from told.truth import CLONE

HOOK = CLONE / "src" / "pilotfish" / "surfaces" / "hook.py"
VERB_SECONDS = 1800.0
"""For a verb that checks a whole project."""


def pilotfish() -> list[str]:
    return [sys.executable, "-m", "pilotfish"]


def run(
    argv: list[str], setting: Setting, given: bytes | None, *, cwd: Path | None = None, seconds: float = HOST_SECONDS
) -> tuple[str, float, str]:
    """What a program printed, how long it took, and what went wrong."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv,
            cwd=cwd or setting.root,
            env=setting.environment(),
            input=given or b"",
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", (time.perf_counter() - began) * 1000, f"no answer within {seconds:.0f} s"
    took = (time.perf_counter() - began) * 1000
    error = done.stderr.decode(errors="replace").strip()
    if done.returncode not in {0, 1, 2}:
        error = f"ended with {done.returncode}: {error}"
    return done.stdout.decode(errors="replace"), took, error


def verb(setting: Setting, *words: str, cwd: Path | None = None) -> str:
    """What `pilotfish WORDS` prints."""
    return run([*pilotfish(), *words], setting, None, cwd=cwd, seconds=VERB_SECONDS)[0]


def plain_hook(setting: Setting, event: Mapping[str, Any], deadline: int = 0) -> tuple[str, float, str]:
    """The hook program in the dialect of no host, which may take `deadline` milliseconds, or its own limit."""
    limit = ["--deadline-ms", str(deadline)] if deadline else []
    argv = [sys.executable, "-I", "-S", str(HOOK), "plain", *limit]
    return run(argv, setting, json.dumps(event).encode(), seconds=max(HOST_SECONDS, deadline / 1000 + 10))


def resident(pid: int) -> float:
    """Megabytes, from the kernel."""
    said = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", said)[0]) * 1024 / 1e6


@contextmanager
def watching(look: Callable[[], None], seconds: float) -> Generator[None]:
    """Look again and again while the block runs."""
    ended = threading.Event()

    def looking() -> None:
        while not ended.wait(seconds):
            look()

    thread = threading.Thread(target=looking)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
