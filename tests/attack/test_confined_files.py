"""What a server of an untrusted repository writes and reads, with real servers and a watched home (T35, T46)."""

from pathlib import Path

import pytest

import pilotfish
from pilotfish.library.workspace import computer
from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Allowed, Withheld, admitted
from pilotfish.system.confinement import confinable
from support.servers.real import NPM, PYPI, make_user
from support.traps.probing import Leash, let_loose
from support.traps.repository import set_trap
from support.traps.watched_home import SECRET
from traps import KINDS

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T35", "T46", "TRUST-8")]

holds_files = pytest.mark.skipif("files" not in confinable(), reason="this kernel has no Landlock")

SERVERS = (
    "basedpyright", "bash", "clangd", "css", "gopls", "html", "json", "ruff", "tombi", "ty", "typescript", "yaml",
    "zuban",
)  # fmt: skip
"""Servers that may run untrusted, of those that the gate installs."""

WITHOUT_VERDICTS = {"bash"}
"""It has none without shellcheck, which the gate does not install."""


@pytest.mark.proves("A1.1", "A10.2", "A17.6", "A18.30")
@holds_files
@pytest.mark.slow
@pytest.mark.server(*SERVERS)
@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_writes_only_its_own_folder_and_reads_no_secret(server: str, tmp_path: Path) -> None:
    user = make_user(tmp_path, [server], {}, trusted=False)
    with set_trap(tmp_path, KINDS[server], user.workspace) as trap:
        loosed = await let_loose(user, server, trap, Leash.CONFINED)
        assert (trap.sprung(), trap.home.read(), trap.home.written()) == (set(), set(), set())
    assert loosed.why_not is None
    assert "files" in loosed.held
    assert loosed.files > 0
    assert loosed.judged == (0 if server in WITHOUT_VERDICTS else loosed.files)


def test_every_server_that_is_here_and_may_run_untrusted_is_let_loose() -> None:
    programs = {server: spec.command[0] for server, spec in load().items() if spec.shown is not None}
    here = {server for server, name in programs.items() if (PYPI / name).exists() or (NPM / name).exists()}
    assert here - {"typescript-native"} <= {*SERVERS}, "and its `tsc` is that of an older TypeScript"


@pytest.mark.slow
@pytest.mark.server("clangd")
async def test_the_watched_home_tells_what_clangd_writes_and_reads_where_nothing_holds_it(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["clangd"], {}, trusted=True)
    with set_trap(tmp_path, ["c"], user.workspace) as trap:
        await let_loose(user, "clangd", trap, Leash.TRUSTED)
        assert ".aws/credentials" in trap.home.read()
        assert "home/.ssh/authorized_keys" in trap.home.written()


@pytest.mark.proves("A10.1")
@holds_files
@pytest.mark.slow
@pytest.mark.server("clangd")
async def test_no_secret_is_in_a_diagnostic(tmp_path: Path) -> None:
    user = make_user(tmp_path, ["clangd"], {}, trusted=False)
    with set_trap(tmp_path, ["c"], user.workspace) as trap:
        async with pilotfish.open(trap.root, shell=computer(user.environment)) as workspace:
            answer = await workspace.check("reads/embed.cpp")
            told = await workspace.after_edit("reads/embed.cpp")
    assert answer.data  # it says that the file cannot be read
    assert SECRET not in f"{answer} {told}"


@pytest.mark.proves("A1.3")
def test_clangd_is_withheld_where_the_kernel_cannot_hold_it() -> None:
    spec = load()["clangd"]
    assert spec.shown is not None
    version = spec.shown.last
    assert isinstance(admitted(spec, trusted=False, version=version, held=("privileges", "network")), Withheld)
    assert isinstance(admitted(spec, trusted=False, version=version, held=("privileges", "files")), Allowed)
    assert isinstance(admitted(spec, trusted=True, version=version, held=()), Allowed)
