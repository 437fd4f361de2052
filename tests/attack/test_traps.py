"""Real servers in repositories that are traps: what may run untrusted runs nothing of them, the rest does not start.

This is a sample for the gate; `tests/traps.py` does it for every server that is installed, and makes the table of
docs/SECURITY.md.
"""

import json
import sys
from pathlib import Path

import pytest

from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Withheld, admitted
from pilotfish.system.confinement import confinable
from pilotfish.system.ports import confinement_text
from support.daemon.homes import DaemonHome
from support.daemon.users import ShellUser, named_server
from support.files.canaries import canary
from support.servers.real import make_user
from support.traps.probing import Leash, let_loose, version_of
from support.traps.repository import set_trap
from traps import KINDS

pytestmark = pytest.mark.proves("T46", "TRUST-8")

PAGE = Path(__file__).parents[2] / "docs" / "SECURITY.md"

SAMPLE = {"basedpyright": "python", "json": "data"}


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.server("basedpyright", "json")
@pytest.mark.parametrize("server", SAMPLE)
@pytest.mark.parametrize("leash", [Leash.OPEN, Leash.CONFINED])
async def test_a_server_that_may_run_anywhere_runs_nothing_of_a_trap(server: str, leash: Leash, tmp_path: Path) -> None:
    user = make_user(tmp_path, [server], {}, trusted=False)
    with set_trap(tmp_path, [SAMPLE[server]], user.workspace) as trap:
        loosed = await let_loose(user, server, trap, leash)
        assert len(trap.ways) > 50
        assert trap.sprung() == set()
    assert loosed.why_not is None
    assert loosed.judged == loosed.files > 2
    assert loosed.held == (tuple(confinable()) if leash is Leash.CONFINED else ())
    shown = load()[server].shown
    assert shown is not None
    assert version_of(user, server) == shown.last


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.server("typescript")
async def test_the_trap_works_where_it_is_trusted(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["typescript"], {}, trusted=True)
    with set_trap(tmp_path, ["node"], user.workspace) as trap:
        await let_loose(user, "typescript", trap, Leash.TRUSTED)
        assert "own-tsserver" in trap.sprung()


FOUND = {
    "fortls": "main.F90",
    "herb": "view.html.erb",
    "rumdl": "document.md",
    "sqruff": "main.sql",
    "prisma": "schema.prisma",
    "perlnavigator": "main.pl",
    "rust-analyzer": "src/main.rs",
}
"""What ran code of an untrusted repository, and a file that made it."""


@pytest.mark.proves("A14.10")
@pytest.mark.parametrize("server", FOUND)
def test_what_ran_code_is_withheld_in_every_version(server: str) -> None:
    for version in (None, "", "0", "1", "99999"):
        assert isinstance(admitted(load()[server], trusted=False, version=version), Withheld)


@pytest.mark.proves("A14.9")
@pytest.mark.slow
def test_what_ran_code_is_not_even_started(home: DaemonHome, tmp_path: Path) -> None:
    user = ShellUser(home)
    started = canary(tmp_path)
    for server in FOUND:
        user.plant(load()[server].command[0], f"#!/bin/sh\n: < {started}\n")
    (tmp_path / "base").mkdir()
    with set_trap(tmp_path / "base", ["data", "scripts", "rust"], user.root) as trap:
        said = user.run("check", *FOUND.values(), "--json").stdout
        user.run("doctor")
        assert trap.sprung() == set()
    assert not started.was_read()
    errors = json.loads(said)["errors"]
    assert {error["serverId"] for error in errors if error["code"] == "untrusted"} >= set(FOUND)


@pytest.mark.linux("no other system holds a server")
@pytest.mark.slow
@pytest.mark.proves("T35")
def test_what_holds_a_server_is_said_by_status_and_when_it_fails(home: DaemonHome) -> None:
    user = ShellUser(home)
    failing = {"command": [sys.executable, "-c", "raise SystemExit(3)"], "extensions": [".y"]}
    user.configure({"lsp": {"good": named_server("good", ".x"), "failing": failing}})
    user.write("a.x", "bad\n")
    user.write("a.y", "bad\n")
    user.run("check", "a.x")
    held = [word for word in confinable() if word != "network"]  # what a server of the user's own needs is not known
    assert f"Servers run confined: {confinement_text(held)}" in user.run("status").stdout
    assert f"It ran confined ({confinement_text(held)})." in user.run("check", "a.y", "--json").stdout


def test_the_table_of_the_traps_says_what_the_catalogue_says() -> None:
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in _cells(PAGE.read_text())}
    for server, (version, form, _ways, _trusted, untrusted, confined, touched) in rows.items():
        spec = load()[server]
        verdict = admitted(spec, trusted=False, version=version)
        forms = {"withheld": isinstance(verdict, Withheld), "restricted": spec.restricted is not None}
        held = spec.shown is not None and spec.shown.confined
        assert form == next((name for name, is_so in forms.items() if is_so), "confined" if held else "as it is")
        assert form == "withheld" or (untrusted, confined, touched) == ("0", "0", "0"), server
    assert {spec.id for spec in load().values() if spec.shown is not None} <= rows.keys() & KINDS.keys()


def _cells(page: str) -> list[list[str]]:
    table = page.partition("<!-- traps -->")[2].partition("<!-- end of traps -->")[0]
    return [line.split("|") for line in table.splitlines() if line.startswith("| ")][2:]
