"""Where whoever is measured works: a user's home, and the programs that are run in it: ours as a user or a host runs
them, and anything else; and what a process holds.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness import corpus
from harness.corpus import Project
from harness.servers import CLONE, SERVERS
from pilotfish.servers.catalogue import load

MARK = "BENCH_SUBJECT"
"""In the environment of every process that a subject starts; its scratch folder."""

HOOK = CLONE / "src" / "pilotfish" / "surfaces" / "hook.py"
HOST_SECONDS = 60.0
"""How long a host waits for its hook; Claude Code's default."""

VERB_SECONDS = 1800.0
"""For a verb that checks a whole project."""


@dataclass(frozen=True)
class Setting:
    root: Path
    scratch: Path
    server: str
    trusted: bool = False
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pause: float = 0.0
    """Seconds after each call of a tool, in which a model thinks."""
    deadline: int = 0
    """Milliseconds that the hook program may take; 0 for its own limit."""

    def environment(self) -> dict[str, str]:
        home = self.scratch / "home"
        return {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            MARK: str(self.scratch),
            "PATH": os.pathsep.join([str(self.scratch / "bin"), plain_path()]),
            "PILOTFISH_HOME": str(self.scratch / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": str(home / "cache"),
        }

    def prepare(self) -> Self:
        """A new user's home, in which this server is installed, and those that it needs beside it."""
        spec, server = SERVERS[self.server], self.server.partition("+")[0]
        (self.scratch / "bin").mkdir(parents=True)
        for program in spec.programs():
            (self.scratch / "bin" / program.name).symlink_to(program)
        for name, target in spec.filled(spec.installed).items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).symlink_to(target)
        others: dict[str, Any] = {one: {"disabled": True} for one in load() if one not in {server, *spec.beside}}
        if spec.options:
            others[server] = spec.filled(spec.options)
        security = {"trustedProjectRoots": [str(self.root)]} if self.trusted else {}
        config = {"lsp": others, **({"security": security} if security else {}), **self.config}
        path = self.scratch / "home" / "config" / "pilotfish" / "lsp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(config))
        return self


@contextmanager
def workplace(project: Project, server: str, **more: Any) -> Generator[Setting]:
    """A copy of a project and a new user, whose daemon ends with the block."""
    with tempfile.TemporaryDirectory(prefix="bench-") as given:
        folder = Path(os.path.realpath(given))
        setting = Setting(corpus.copy(project, folder / "work"), folder / "scratch", server, **more).prepare()
        try:
            yield setting
        finally:
            verb(setting, "daemon", "stop")


def end_on_signal() -> None:
    """So that whoever ends this run ends what it has started."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def plain_path() -> str:
    """`PATH` with a Python that has no packages: those of the environment this runs in do not count."""
    return os.pathsep.join([str(corpus.empty_environment() / "bin"), os.environ["PATH"]])


def pilotfish() -> list[str]:
    return [sys.executable, "-m", "pilotfish"]


def run(
    argv: list[str],
    setting: Setting,
    given: bytes | None,
    *,
    cwd: Path | None = None,
    seconds: float = HOST_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, float, str]:
    """What a program printed, how long it took, and what went wrong."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv,
            cwd=cwd or setting.root,
            env=environment or setting.environment(),
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


def hook(setting: Setting, dialect: str, event: Mapping[str, Any], deadline: int = 0) -> tuple[str, float, str]:
    """The hook program, in the project, which may take `deadline` milliseconds, or its own limit."""
    limit = ["--deadline-ms", str(deadline)] if deadline else []
    argv, given = [sys.executable, "-I", "-S", str(HOOK), dialect, *limit], {"cwd": str(setting.root), **event}
    return run(argv, setting, json.dumps(given).encode(), seconds=max(HOST_SECONDS, deadline / 1000 + 10))


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
