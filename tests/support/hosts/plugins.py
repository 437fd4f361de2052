"""The plugins of Pi and OpenCode in a plain node, with the host's side played by `pi_driver.mjs` and its like.

with driven("pi", home, folder) as pi:
    pi("fire", event="session_start", data={})
"""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.hosts.shared.hook_settings import read_plugin
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.hosts.real import program

SUPPORT = Path(__file__).parent
COMMAND = [sys.executable, "-I", "-m", "pilotfish"]
NOWHERE = ["/nonexistent/pilotfish"]
"""For a plugin that can start no daemon."""


@dataclass
class Driven:
    """A plugin at work. A call is an action of its driver, and gives what that brings."""

    process: subprocess.Popen[bytes]
    folder: Path
    number: int = 0
    _kept: dict[int, Any] = field(default_factory=dict[int, Any])

    def __call__(self, action: str, **what: Any) -> Any:
        return self.result(self.begin(action, **what))

    def begin(self, action: str, **what: Any) -> int:
        """The same without waiting; `result` takes the number."""
        self.number += 1
        assert self.process.stdin
        message = {"number": self.number, "do": action, "with": what}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.number

    def result(self, number: int) -> Any:
        while number not in self._kept:
            assert self.process.stdout
            line = self.process.stdout.readline()
            assert line, "the driver has ended"
            answer = json.loads(line)
            assert "error" not in answer, answer["error"]
            self._kept[answer["number"]] = answer["value"]
        return self._kept.pop(number)

    def configure(self, **settings: Any) -> None:
        """Write what `pilotfish setup` writes beside the plugin."""
        (self.folder / "pilotfish.json").write_text(json.dumps({"command": COMMAND, **settings}))

    def leave(self) -> str:
        """End the driver's input and wait until it ends by itself; what was printed for a person."""
        assert self.process.stdin
        assert self.process.stderr
        self.process.stdin.close()
        assert self.process.wait(WAIT_SECONDS) == 0
        return self.process.stderr.read().decode()


def installed(host: str, folder: Path, /, **settings: Any) -> Path:
    """The plugin of a host in a folder, as `pilotfish setup` puts it there."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "pilotfish.ts"
    place.write_text(read_plugin(host))
    (folder / "pilotfish.json").write_text(json.dumps({"command": COMMAND, **settings}))
    return place


@contextmanager
def driven(
    host: str, home: DaemonHome, folder: Path, /, words: Sequence[str] = (), system: str = "", **settings: Any
) -> Generator[Driven]:
    """The plugin in a node of its own, installed in a folder, working in the workspace of `home`.

    `words` are those with which a person started the host; `system` is the one that the plugin takes this for.
    """
    taken = f"data:text/javascript,Object.defineProperty(process,'platform',{{value:'{system}'}})"
    place = installed(host, folder / "plugin", **settings)
    (place.parent / "package.json").write_text('{"type": "module"}')
    process = subprocess.Popen(
        [
            program("node"),
            *(["--import", taken] if system else []),
            str(SUPPORT / f"{host}_driver.mjs"),
            str(place),
            str(home.root),
            *words,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=home.environment,
    )
    with process:
        try:
            yield Driven(process, place.parent)
        finally:
            process.kill()
