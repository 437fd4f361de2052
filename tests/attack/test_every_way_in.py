"""A trap repository by every way in that a user has: nothing of it runs, and what was not checked is said.

The servers that ran code of a repository are stand-ins that tell when they are started, unless the real ones are on
`PATH`: then it is the canaries of the trap that tell.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.servers.catalogue import load
from support.daemon.homes import DaemonHome, no_daemon_left
from support.servers.real import make_user, require
from support.traps.repository import Trap, misled, set_trap
from support.via.processes import WAYS

WITHHELD = {
    "fortls": "main.F90",
    "herb": "view.html.erb",
    "rumdl": "document.md",
    "sqruff": "main.sql",
    "prisma": "schema.prisma",
    "perlnavigator": "main.pl",
    "rust-analyzer": "src/main.rs",
}
"""What ran code of an untrusted repository, and a file that made it."""

ADMITTED = {"basedpyright": "main.py", "typescript": "main.ts", "json": "document.json"}
"""What may run there, as it is or restricted, and a file with an error."""

ERRORS = ("is not assignable to declared type", "is not assignable to type 'string'", "Trailing comma")


@contextmanager
def trapped(base: Path) -> Generator[tuple[DaemonHome, Trap]]:
    """A user of these servers in a repository that nobody trusts, with variables that lead into it."""
    require(ADMITTED)
    user = make_user(base, [*ADMITTED, *WITHHELD], {}, trusted=False)
    tools = Path(user.environment["PATH"])
    with set_trap(base, ["data", "scripts", "rust", "node", "python"], user.workspace) as trap:
        (trap.root / "deno.json").unlink()  # the TypeScript server is not for a project of Deno
        for server in WITHHELD:
            stand_in = tools / load()[server].command[0]
            if not stand_in.exists():
                (trap.canaries / f"started-{server}").touch()
                stand_in.write_text(f"#!/bin/sh\n: < {trap.canaries}/started-{server}\n")
                stand_in.chmod(0o755)
        trap.opened.reset()
        variables = misled({**user.environment, "PATH": f"{tools}:/usr/bin:/bin"}, trap.root)
        with no_daemon_left(variables["PILOTFISH_HOME"]):
            yield DaemonHome(trap.root, dict(variables)), trap


@pytest.mark.slow
@pytest.mark.server(*ADMITTED)
@pytest.mark.proves("T46", "T47", "T7", "TRUST-8", "TRUST-4", "A14.9")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_a_trap_runs(tmp_path: Path, way: str) -> None:
    with trapped(tmp_path) as (home, trap):
        withheld = [*WITHHELD.values()]
        # By twos: `check` cuts a reason that is too long for a line.
        said = WAYS[way](home, *withheld[:4]) + WAYS[way](home, *withheld[4:], *ADMITTED.values())
        assert trap.sprung() == set()
    assert [server for server in WITHHELD if not re.search(_withheld(server), said)] == []
    assert way == "doctor" or [error for error in ERRORS if error not in said] == []


def _withheld(server: str) -> str:
    """What every way says of a server that does not run, in one line and before the next one."""
    return rf"(unavailable|partial|not checked|todo)[^\n]*\b{server}\b[^\n]*not trusted"
