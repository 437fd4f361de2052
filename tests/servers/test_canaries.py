"""Starting a real server in a hostile project: what the catalogue says about its risk is what happens (T7).

The project's own interpreter leaves a file behind when it is run. Without our settings a server runs it, which shows
that the trap works; with them it must not, and it finds the packages of the environment all the same.
"""

import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.session import Session, open_session
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.environment import child_environment, search_path
from pilotfish.servers.launch import Allowed, Withheld, admitted, filled
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.service.launches import PythonEnvironments
from pilotfish.system.ports import Launch
from pilotfish.system.process import spawn

pytestmark = [pytest.mark.anyio, pytest.mark.proves("T7", "T9")]

PULL = "textDocument/diagnostic"


@pytest.fixture
def project(tmp_path: Path) -> AbsPath:
    """A folder whose virtual environment, and whose modules that shadow the library's, are traps."""
    root = Path(os.path.realpath(tmp_path)) / "project"
    binaries = root / ".venv/bin"
    binaries.mkdir(parents=True)
    for name in ("python", "python3"):
        (binaries / name).write_text(f'#!/bin/sh\ntouch {root}/sprung\nexec {sys.executable} "$@"\n')
        (binaries / name).chmod(0o755)
    (root / ".venv/pyvenv.cfg").write_text(f"home = {os.path.dirname(sys.executable)}\n")
    for name in ("json.py", "sitecustomize.py"):
        (root / name).write_text(f"open({str(root / 'sprung')!r}, 'w')\n")
    site = root / ".venv/lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (site / "installed.py").write_text("value: int = 1\n")
    (site / "evil.pth").write_text(f"import os; os.system('touch {root}/sprung')\n")
    (root / "a.py").write_text("import installed\n\nx: str = installed.value\n")
    return AbsPath(str(root))


def options(server: str, root: AbsPath, *, trusted: bool) -> SessionOptions:
    """The way from the catalogue to a process, as a composition root goes it."""
    verdict = admitted(load()[server], trusted=trusted)
    assert isinstance(verdict, Allowed)
    pythons = PythonEnvironments(root, {}, os.path.join(os.path.dirname(root), "state"))
    values = {"root": root, "python": sys.executable, "pythonEnvironment": pythons.interpreter(root)}
    spec = filled(verdict.spec, values.get)
    path = search_path(os.pathsep.join((os.path.dirname(sys.executable), "/usr/bin", "/bin")), (root,), trusted=trusted)
    located = locate(spec.command[0], root, Lookup((root,), trusted, path))
    assert isinstance(located, ProgramFound)
    environment = child_environment(os.environ, spec.env, path, untrusted=() if trusted else (root,))
    launch = Launch((located.path, *spec.command[1:]), root, environment, server)
    return SessionOptions(server, root, launch, dict(spec.initialization), spec.settings, initialize_seconds=60)


async def checked(session: Session, path: AbsPath) -> set[str]:
    """Until the server has answered for the file: by then it has asked whatever it asks an interpreter."""
    session.sync(path, "python", Path(path).read_text())
    with anyio.fail_after(60):
        while not session.supports(PULL, path):
            await session.changed.wait()
        await session.pull(path, timeout=60)
    return {
        str(found.code) for report in session.reports.of(path).values() for found in report.items if found.severity == 1
    }


@pytest.mark.server("basedpyright")
async def test_the_trap_works_on_basedpyright_without_our_settings(project: AbsPath) -> None:
    bare = replace(options("basedpyright", project, trusted=True), settings={})
    async with open_session(bare, spawn) as session:
        await checked(session, AbsPath(f"{project}/a.py"))
    assert os.path.exists(f"{project}/sprung")


@pytest.mark.server("basedpyright")
@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
async def test_basedpyright_reads_the_environment_and_runs_nothing_of_it(project: AbsPath, trusted: bool) -> None:
    async with open_session(options("basedpyright", project, trusted=trusted), spawn) as session:
        codes = await checked(session, AbsPath(f"{project}/a.py"))
    assert codes == {"reportAssignmentType"}
    assert not os.path.exists(f"{project}/sprung")


@pytest.mark.server("ty")
@pytest.mark.skipif(shutil.which("ty", path=os.path.dirname(sys.executable)) is None, reason="ty is not installed")
async def test_ty_runs_nothing_of_the_project(project: AbsPath) -> None:
    async with open_session(options("ty", project, trusted=False), spawn) as session:
        await checked(session, AbsPath(f"{project}/a.py"))
    assert not os.path.exists(f"{project}/sprung")


async def test_pyrefly_is_not_started_in_an_untrusted_project() -> None:
    assert isinstance(admitted(load()["pyrefly"], trusted=False), Withheld)
