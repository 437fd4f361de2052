"""Proves language servers, and writes down what was shown: `./check --servers [NAME…]`.

Each server of `tests/support/proving/rows` is installed below `.tools/servers`, and proven as `support.proving.play`
says. What holds goes into `src/pilotfish/servers/proven.json`, from which `pilotfish servers` and the table of
docs/guide/servers.md have it; a server whose proof fails is taken out of it, and one that was not run stays.
Ends with 1 when a server did not hold.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from pilotfish.config.merge import overlaid
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.servers.proven import FILE, Proof, proofs
from pilotfish.servers.versions import installed_version
from support.proving.play import FreshAndWrong, NotProven, prove
from support.proving.programs import Installed, installed
from support.proving.rows import ProofRow, rows
from support.servers.real import User

MAX_SECONDS = 240.0
"""For one server: one that needs longer on a project of a few lines is of no use."""

PATIENT: dict[str, Any] = {
    "feedback": {"includeSeverities": ["error", "warning", "info", "hint"]},
    "timing": {
        "initializeTimeoutMs": 120_000,
        "firstTouchTimeoutMs": 30_000,
        "diagnosticsWaitTimeoutMs": 30_000,
        "requestTimeoutMs": 30_000,
    },
}
"""What a server says counts whatever its severity, and on a busy machine as well."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", help="only these", metavar="NAME")
    options = parser.parse_args()
    unknown = set(options.servers) - rows().keys()
    if unknown:
        parser.error(f"there is no row for {', '.join(sorted(unknown))}")
    began, failed, wrong = time.monotonic(), list[str](), 0
    for server in options.servers or rows():
        started = time.monotonic()
        found = attempt(rows()[server])
        if isinstance(found, Proof):
            found = replace(found, seconds=round(time.monotonic() - started, 1))
            said = f"proven {found.version}; {found.freshness}; {found.reach}; {found.start_ms} ms; {_counted(found)}"
        else:
            failed.append(server)
            wrong += isinstance(found, FreshAndWrong)
            said = f"NOT PROVEN: {found or type(found).__name__}"
        write(server, found if isinstance(found, Proof) else None)
        print(f"{server:20} {time.monotonic() - started:5.1f} s  {said}", flush=True)
    print(f"{len(options.servers or rows()) - len(failed)} proven, {len(failed)} not ({', '.join(failed) or 'none'}), "
          f"{wrong} fresh and wrong, {time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if failed else 0


def attempt(row: ProofRow) -> Proof | BaseException:
    """The proof, or what was in its way."""
    try:
        there = installed(row)
        with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as folder:
            user = make_user(Path(os.path.realpath(folder)), row, there)
            return anyio.run(_in_time, row, user, _version(row, there))
    except (NotProven, SystemExit, TimeoutError) as problem:
        return problem
    except Exception as problem:  # noqa: BLE001 -- of one server: the others are proven all the same
        traceback.print_exception(problem)
        return problem


async def _in_time(row: ProofRow, user: User, version: str) -> Proof:
    with anyio.fail_after(MAX_SECONDS):
        return await prove(row, user, version)


def make_user(base: Path, row: ProofRow, there: Installed) -> User:
    """Somebody who has this server, what it needs, and the programs of the system."""
    workspace, home = base / "workspace", base / "home"
    for folder in (workspace, home):
        folder.mkdir()
    if row.modules:
        (workspace / "node_modules").symlink_to(there.modules or "")
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": ":".join(there.path),
        "PILOTFISH_HOME": str(home / "pilotfish"),
        "TMPDIR": str(base),
    }
    user = User(workspace, environment)
    own: dict[str, Any] = {
        "lsp": {other: {"disabled": True} for other in load() if other != row.server},
        "security": {"trustedProjectRoots": [str(workspace)]},
    }
    own["lsp"][row.server] = dict(row.config)
    file = Path(user.places.global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(overlaid(own, PATIENT)))
    return user


def _version(row: ProofRow, there: Installed) -> str:
    lookup = Lookup((), trusted=False, path=tuple(map(AbsPath, there.path)))
    located = locate(load()[row.server].command[0], AbsPath("/"), lookup)
    return there.version or (
        installed_version(load()[row.server], located) if isinstance(located, ProgramFound) else ""
    )


def _counted(proof: Proof) -> str:
    right = sum(outcome == "right" for outcome in proof.questions.values())
    return f"{len(proof.questions)} kinds of questions, {right} judged"


def write(server: str, proof: Proof | None) -> None:
    """Put it in place of the one before; None takes that out."""
    proofs.cache_clear()
    known = {**proofs(), server: proof}
    table = {name: one for name, one in sorted(known.items()) if one is not None}
    text = json.dumps(msgspec.to_builtins(table), indent=1, ensure_ascii=False)
    Path(FILE).write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
