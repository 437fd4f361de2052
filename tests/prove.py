"""Proves language servers, and writes down what was shown: `./check --servers [NAME…]`.

Each server of `tests/support/proving/rows` is installed below `.tools/servers`, and proven as `support.proving.play`
says; then it is shown what is told of other files (`support.proving.others`), and it is let loose in a trap repository
that is not trusted (`support.proving.untrusted`), and what it looks up is compared with what the catalogue names
(`support.proving.lookups`). What holds goes into `src/pilotfish/servers/proven.json`, from which `pilotfish servers`
and the table of docs/guide/servers.md have it; a server whose proof fails is taken out of it, and one that was not run,
or cannot be had on this machine, stays.
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
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
from msgspec.structs import replace

from pilotfish.config.merge import overlaid
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import PROVEN, Proof, load, proofs
from pilotfish.servers.install import bundles
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.servers.versions import installed_version
from support.proving import switches
from support.proving.lookups import look_ups, projects, record, traced
from support.proving.others import show_others
from support.proving.play import MAX_WORDS, FreshAndWrong, NotProven, prove
from support.proving.programs import Installed, installed
from support.proving.rows import Programs, ProofRow, rows, shown_cases
from support.proving.untrusted import untrusted
from support.servers.real import User

T = TypeVar("T")

Parts = Mapping[str, Any]
"""Fields of a proof."""

LOOKUPS = frozenset({"lookups"})
STEPS = LOOKUPS | {"trap", "proof", "others"}

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
    parser.add_argument("--lookups", action="store_true", help="only trace what they look up, and keep their proofs")
    options = parser.parse_args()
    known = sorted(rows().keys() | (bundles().keys() & load().keys()))
    unknown = set(options.servers) - set(known)
    if unknown:
        parser.error(f"there is no row for {', '.join(sorted(unknown))}, and it cannot be installed")
    servers = options.servers or known
    steps = frozenset(step for step in STEPS if vars(options).get(step)) or STEPS
    began, failed, missing, wrong = time.monotonic(), list[str](), list[str](), 0
    for server in servers:
        started = time.monotonic()
        found = attempt(server, steps)
        if isinstance(found, Proof):
            found = replace(found, seconds=round(time.monotonic() - started, 1))
            said = f"proven {found.version}; {_summary(found)}"
        elif isinstance(found, NotInstalled):
            missing.append(server)
            said = f"cannot be had here, what was shown of it stays: {found}"
        elif isinstance(found, BaseException):
            failed.append(server)
            wrong += isinstance(found, FreshAndWrong)
            said = f"NOT PROVEN: {found or type(found).__name__}"
        else:
            said = "; ".join(
                f"{part}: {shown if isinstance(shown, str) else ', '.join(shown) or 'none'}"
                for part, shown in found.items()
            )
        if server in rows() and server not in missing:
            write(server, {} if steps == LOOKUPS and isinstance(found, BaseException) else found)
        print(f"{server:20} {time.monotonic() - started:5.1f} s  {said}", flush=True)
    held = [server for server in servers if server in rows() and server not in {*failed, *missing}]
    proven = len(held) if "proof" in steps else 0
    print(f"{len(servers)} untrusted, {proven} proven, {len(failed)} failed ({', '.join(failed) or 'none'}), "
          f"{len(missing)} not to be had here ({', '.join(missing) or 'none'}), "
          f"{wrong} fresh and wrong, {time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if failed else 0


def attempt(server: str, steps: Collection[str] = STEPS) -> Proof | Parts | BaseException:
    """The proof, or parts of one, or what was in the way; of a server without a row what it does untrusted."""
    with _problems_caught() as problems:
        row, parts = rows().get(server), dict[str, Any]()
        there = _installed(server, row)
        if "trap" in steps:
            parts["untrusted"] = _shown(server, there, partial(untrusted, server), trusted=False)
            switches.record(server, _version(server, there), switches.switches(_program(server, there)))
        if row is None:
            return parts
        version = _version(server, there)
        proof = _shown(server, there, lambda user: prove(row, user, version)) if "proof" in steps else None
        if "others" in steps:
            shown = [_shown(server, there, partial(show_others, row, case)) for case in shown_cases(row)]
            parts["others"] = shown[0] if shown else ()
        if "lookups" in steps:
            found = (_shown(server, there, partial(traced, row, files)) for files in projects(row))
            record(server, version, look_ups(row, set[str]().union(*found)))
        return parts if proof is None else replace(proof, **parts)
    return problems[0]


class NotInstalled(Exception):
    """It cannot be had on this machine, as where nobody builds it for this kind of processor: that shows nothing."""


def _installed(server: str, row: ProofRow | None) -> Installed:
    try:
        there = installed(server, row.programs if row else Programs())
    except (Exception, SystemExit) as problem:
        raise NotInstalled(" ".join(str(problem).split())[:MAX_WORDS]) from problem
    if not isinstance(_located(server, there), ProgramFound):
        raise NotInstalled(f"there is no {load()[server].command[0]} in what was installed")
    return there


def _shown(server: str, there: Installed, show: Callable[[User], Awaitable[T]], *, trusted: bool = True) -> T:
    """What a step comes to for a user with a folder of their own."""
    with _folder() as base:
        user = make_user(base, server, there, row=rows().get(server), trusted=trusted)
        return anyio.run(_in_time, partial(show, user))


@contextmanager
def _problems_caught() -> Generator[list[BaseException]]:
    """What is in the way of one server: the others are proven all the same."""
    problems = list[BaseException]()
    try:
        yield problems
    except (NotProven, NotInstalled, SystemExit, TimeoutError) as problem:
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


def _located(server: str, there: Installed) -> ProgramFound | object:
    lookup = Lookup((), trusted=False, path=tuple(map(AbsPath, there.path)))
    return locate(load()[server].command[0], AbsPath("/"), lookup)


def _program(server: str, there: Installed) -> Path:
    located = _located(server, there)
    assert isinstance(located, ProgramFound)
    return Path(located.path)


def _version(server: str, there: Installed) -> str:
    located = _located(server, there)
    return there.version or (installed_version(load()[server], located) if isinstance(located, ProgramFound) else "")


def _summary(proof: Proof) -> str:
    right = sum(outcome == "right" for outcome in proof.questions.values())
    asked = f"{len(proof.questions)} kinds of questions, {right} judged"
    reach = f"{proof.reach}; other files: {', '.join(proof.others) or 'none'}"
    return f"{proof.freshness}; {reach}; {proof.start_ms} ms; {asked}; untrusted: {proof.untrusted}"


def write(server: str, found: Proof | Parts | BaseException) -> None:
    """Put a proof in place of the one before, or a part into it; a failure takes it out."""
    proofs.cache_clear()
    before = proofs().get(server)
    whole = found if isinstance(found, Proof) else None
    proof = before and replace(before, **found) if isinstance(found, Mapping) else whole
    known = {**proofs(), server: proof}
    table = {name: one for name, one in sorted(known.items()) if one is not None}
    text = json.dumps(msgspec.to_builtins(table), indent=1, ensure_ascii=False)
    Path(PROVEN).write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
