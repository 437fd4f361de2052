"""Real daemons, each with a home of its own, and what is left of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.surfaces import hook
from pilotfish.system.process import TAG
from support.process_tree import alive, ends, environment, member, pids
from support.values.settings import listing_every_error

TESTS = Path(__file__).parents[2]
HOOK = hook.__file__

WAIT_SECONDS = 50.0
"""For a daemon to start on a machine that is busy with something else."""

FAKELS = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.argv[0] = 'fakels'; "
    "from support.servers.fakels import main; main()"
)


def fake_server(scenario: str, **entry: Any) -> dict[str, Any]:
    """A real process that plays a scenario of `support.daemon.scenarios`, for `.x` files."""
    command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), f"support.daemon.scenarios:{scenario}"]
    return {"command": command, "extensions": [".x"], **entry}


@dataclass(frozen=True)
class DaemonHome:
    """One user: a home, a workspace, and perhaps a daemon."""

    root: Path
    environment: dict[str, str]

    @property
    def place(self) -> DaemonPlace:
        return DaemonPlace(self.environment)

    @property
    def log(self) -> str:
        return Path(self.place.log).read_text()

    def configure(self, scenario: str = "answering", **more: Any) -> None:
        file = Path(self.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(listing_every_error({"lsp": {"toy": fake_server(scenario)}, **more})))

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def terms(self, *, start: bool = True) -> Terms:
        return Terms(self.environment, start, WAIT_SECONDS)

    def link(self, host: str | None = None) -> Link:
        """A session of the workspace."""
        return open_link(Introduction(cwd=str(self.root), host=host), self.terms())

    def control(self, *, start: bool = False) -> Link:
        """A connection without a session."""
        return open_link(None, self.terms(start=start))

    def run_hook(self, event: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """The hook program as a host runs it."""
        return subprocess.run(
            [sys.executable, "-I", "-S", HOOK, *(arguments or ("plain", "--deadline-ms", "50000"))],
            input=event,
            capture_output=True,
            cwd=self.root,
            env=self.environment,
            timeout=WAIT_SECONDS + 10,
            check=False,
        )

    def processes(self) -> dict[int, str]:
        return processes_of(self.environment["PILOTFISH_HOME"])

    def daemons(self) -> list[int]:
        """The processes that are or want to be the daemon; not a child of one that has not run its own program yet."""
        found = [pid for pid, command in self.processes().items() if "pilotfish.daemon.start" in command]
        members = {pid: one for pid in found if (one := member(pid)) is not None}  # one may have ended meanwhile
        return [pid for pid, one in members.items() if one.parent not in members]

    def kill_all(self) -> None:
        kill_all(self.environment["PILOTFISH_HOME"])


def processes_of(state: str) -> dict[int, str]:
    """Every living process of a home: daemons, their supervisors and servers, and who wants to be a daemon."""
    known = {pid: environment(pid) for pid in pids() - {os.getpid()} if alive(pid)}
    daemons = {pid for pid, variables in known.items() if variables.get("PILOTFISH_HOME") == state}
    trees = {
        pid for pid, variables in known.items() if TAG in variables and int(variables[TAG].partition("-")[0]) in daemons
    }
    return {pid: " ".join(_command(pid)) for pid in daemons | trees}


def kill_all(state: str) -> None:
    """End every process of a home."""
    while found := processes_of(state):
        for pid in found:
            os.kill(pid, signal.SIGKILL) if alive(pid) else None
        assert all(map(ended, found))


@contextmanager
def no_daemon_left(state: str) -> Generator[None]:
    """Whatever daemon is started in a home is ended after the block."""
    try:
        yield
    finally:
        kill_all(state)


@contextmanager
def daemon_home(folder: Path) -> Generator[DaemonHome]:
    """A home whose processes are all gone afterwards."""
    real = Path(os.path.realpath(folder))
    root = real / "workspace"
    root.mkdir()
    variables = {"HOME": str(real / "home"), "PILOTFISH_HOME": str(real / "state"), "PATH": os.environ["PATH"]}
    home = DaemonHome(root, variables)
    home.configure()
    try:
        yield home
    finally:
        home.kill_all()


def ended(pid: int) -> bool:
    """Wait until a process has ended; False when it has not after a time that is enough for any daemon."""
    return ends(pid, WAIT_SECONDS)


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
