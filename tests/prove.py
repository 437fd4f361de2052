"""Proves language servers, and writes down what was shown: `./check --servers [NAME…]`.

Each server of `tests/support/proving/rows` is installed below `.tools/servers`, and proven as `support.proving.play`
says; then it is shown what is told of other files (`support.proving.others`), and it is let loose in a trap repository
that is not trusted (`support.proving.untrusted`). What holds goes into
`src/pilotfish/servers/proven.json`, from which `pilotfish servers` and the table of docs/guide/servers.md have it; a
server whose proof fails is taken out of it, and one that was not run stays.
Of a server without a row that `pilotfish install` can install, only the trap is shown.
Ends with 1 when a server did not hold.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
from msgspec.structs import replace

from pilotfish.config.merge import overlaid
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.install import bundles
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.servers.proven import FILE, Proof, proofs
from pilotfish.servers.versions import installed_version
from support.proving.others import show_others
from support.proving.play import FreshAndWrong, NotProven, prove
from support.proving.programs import Installed, installed
from support.proving.rows import Programs, ProofRow, others_of, rows
from support.proving.untrusted import untrusted
from support.servers.real import User

T = TypeVar("T")

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
    parser.add_argument(
        "--others", action="store_true", help="only show other files, and keep the rest of their proofs"
    )
    parser.add_argument("--trap", action="store_true", help="only let them loose in the trap, and keep their proofs")
    options = parser.parse_args()
    known = sorted(rows().keys() | (bundles().keys() & load().keys()))
    unknown = set(options.servers) - set(known)
    if unknown:
        parser.error(f"there is no row for {', '.join(sorted(unknown))}, and it cannot be installed")
    servers = options.servers or known
    began, failed, wrong = time.monotonic(), list[str](), 0
    for server in servers:
        started = time.monotonic()
        found = others(server) if options.others else attempt(server, trap_only=options.trap)
        if isinstance(found, str):
            said = f"untrusted: {found}"
        elif isinstance(found, tuple):
            said = f"other files: {', '.join(found) or 'no case'}"
        elif isinstance(found, Proof):
            found = replace(found, seconds=round(time.monotonic() - started, 1))
            said = f"proven {found.version}; {_summary(found)}"
        else:
            failed.append(server)
            wrong += isinstance(found, FreshAndWrong)
            said = f"NOT PROVEN: {found or type(found).__name__}"
        if server in rows():
            write(server, () if options.others and isinstance(found, BaseException) else found)
        print(f"{server:20} {time.monotonic() - started:5.1f} s  {said}", flush=True)
    proven = (
        0
        if options.trap or options.others
        else len([server for server in servers if server in rows() and server not in failed])
    )
    print(f"{len(servers)} untrusted, {proven} proven, {len(failed)} failed ({', '.join(failed) or 'none'}), "
          f"{wrong} fresh and wrong, {time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if failed else 0


def others(server: str) -> tuple[str, ...] | BaseException:
    """What is told of other files, or what was in the way."""
    row = rows().get(server)
    case = None if row is None else others_of(row)
    if row is None or case is None:
        return ()
    with _problems_caught() as problems, _folder() as base:
        user = make_user(base, server, installed(server, row.programs), row=row)
        return anyio.run(_in_time, partial(show_others, row, case, user))
    return problems[0]


def attempt(server: str, *, trap_only: bool = False) -> Proof | str | BaseException:
    """The proof, or of a server without a row only what it does untrusted, or what was in the way."""
    with _problems_caught() as problems:
        row = rows().get(server)
        there = installed(server, row.programs if row else Programs())
        with _folder() as base:
            out = anyio.run(
                _in_time, partial(untrusted, server, make_user(base, server, there, row=row, trusted=False))
            )
        if row is None or trap_only:
            return out
        with _folder() as base:
            proof = anyio.run(
                _in_time, partial(prove, row, make_user(base, server, there, row=row), _version(server, there))
            )
        told = others(server)
        return told if isinstance(told, BaseException) else replace(proof, untrusted=out, others=told)
    return problems[0]


@contextmanager
def _problems_caught() -> Generator[list[BaseException]]:
    """What is in the way of one server: the others are proven all the same."""
    problems = list[BaseException]()
    try:
        yield problems
    except (NotProven, SystemExit, TimeoutError) as problem:
        problems.append(problem)
    except Exception as problem:  # noqa: BLE001
        traceback.print_exception(problem)
        problems.append(problem)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as folder:
        yield Path(os.path.realpath(folder))


async def _in_time(shows: Callable[[], Awaitable[T]]) -> T:
    with anyio.fail_after(MAX_SECONDS):
        return await shows()


def make_user(base: Path, server: str, there: Installed, *, row: ProofRow | None = None, trusted: bool = True) -> User:
    """Somebody who has this server, what it needs, and the programs of the system."""
    workspace, home = base / "workspace", base / "home"
    for folder in (workspace, home):
        folder.mkdir()
    if row is not None and row.modules and trusted:
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
        "lsp": {other: {"disabled": True} for other in load() if other not in {server, *(row.beside if row else ())}},
        "security": {"trustedProjectRoots": [str(workspace)] if trusted else []},
    }
    own["lsp"][server] = dict(row.config) if row is not None else {}
    file = Path(user.places.global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(overlaid(own, PATIENT)))
    return user


def _version(server: str, there: Installed) -> str:
    lookup = Lookup((), trusted=False, path=tuple(map(AbsPath, there.path)))
    located = locate(load()[server].command[0], AbsPath("/"), lookup)
    return there.version or (installed_version(load()[server], located) if isinstance(located, ProgramFound) else "")


def _summary(proof: Proof) -> str:
    right = sum(outcome == "right" for outcome in proof.questions.values())
    asked = f"{len(proof.questions)} kinds of questions, {right} judged"
    reach = f"{proof.reach}; other files: {', '.join(proof.others) or 'none'}"
    return f"{proof.freshness}; {reach}; {proof.start_ms} ms; {asked}; untrusted: {proof.untrusted}"


def write(server: str, found: Proof | str | tuple[str, ...] | BaseException) -> None:
    """Put a proof in place of the one before, or a part into it; a failure takes it out."""
    proofs.cache_clear()
    before = proofs().get(server)
    if isinstance(found, str):
        proof = before and replace(before, untrusted=found)
    elif isinstance(found, tuple):
        proof = before and replace(before, others=found)
    else:
        proof = found if isinstance(found, Proof) else None
    known = {**proofs(), server: proof}
    table = {name: one for name, one in sorted(known.items()) if one is not None}
    text = json.dumps(msgspec.to_builtins(table), indent=1, ensure_ascii=False)
    Path(FILE).write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
