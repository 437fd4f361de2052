"""Somebody whose environment is not the one that the daemon was started with."""

import os
import shlex
from pathlib import Path

from support.daemon.homes import DaemonHome, fake_server


def another_user(home: DaemonHome, folder: Path) -> DaemonHome:
    """One whose `PATH` has the program of the only server, and whose other variables differ, too.

    A daemon runs that was started without it, out of the environment of another project.
    """
    home.write("a.x", "bad\n")
    home.configure(lsp={"toy": {"command": ["toy-server"], "extensions": [".x"]}})
    programs = folder / "programs"
    programs.mkdir()
    server = programs / "toy-server"
    server.write_text(f"#!/bin/sh\nenv > $TMPDIR/given\nexec {shlex.join(fake_server('answering')['command'])}\n")
    server.chmod(0o755)
    starter = DaemonHome(home.root, {**home.environment, "VIRTUAL_ENV": "/another/project/.venv"})
    starter.control(start=True).close()
    path = os.pathsep.join([str(programs), home.environment["PATH"]])
    own = {"PATH": path, "VIRTUAL_ENV": "/project/.venv", "GITHUB_TOKEN": "secret", "GOFLAGS": "-tags=caf\udce9"}
    return DaemonHome(home.root, {**home.environment, **own})


def given(home: DaemonHome) -> list[bytes]:
    """The variables that the server was started with, as it wrote them down: untrusted, in a folder of its own."""
    (note,) = Path(home.environment["PILOTFISH_HOME"]).rglob("given")
    return note.read_bytes().splitlines()
