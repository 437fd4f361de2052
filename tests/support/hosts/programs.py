"""`pilotfish` where a host looks for programs."""

import sys
from pathlib import Path

from support.daemon.homes import DaemonHome


def put_on_the_path(home: DaemonHome) -> None:
    """`pilotfish` as a program that is no link, so that no server of the gate's environment is found beside it."""
    program = Path(home.environment["PATH"].partition(":")[0]) / "pilotfish"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pilotfish "$@"\n')
    program.chmod(0o755)
