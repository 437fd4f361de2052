"""A server that the catalogue withholds starts where the workspace is trusted, and nowhere else: each of them.

Stand-ins on the `PATH`, one for each program, tell when they run: what would be let loose is the same for all of them.
"""

from contextlib import closing
from pathlib import Path

import pytest

import pilotfish
from pilotfish.library.workspace import computer
from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Withheld, admitted
from pilotfish.servers.spec import ServerSpec
from prove import make_user
from support.files.canaries import Canary
from support.proving.programs import Installed
from support.proving.untrusted import own_files

WITHHELD = {
    name: spec
    for name, spec in load().items()
    if all(isinstance(admitted(spec, trusted=False, version=one), Withheld) for one in (None, "", "1.0", "99999"))
    and spec.shown is None
}
STAND_IN = """#!/bin/sh
[ "$*" = "{}" ] || : < {}
"""
"""What asks it for its version alone has not started it."""

LIBRARIES = {
    f"node_modules/{name}/{file}": '{"version": "5.9.3"}' if file == "package.json" else ""
    for name in ("typescript", "@angular/language-service")
    for file in ("package.json", "lib/typescript.js", "lib/tsserverlibrary.js", "index.js")
}
"""Without these some do not start anywhere."""


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.proves("T7", "T46", "TRUST-8", "A14.9")
@pytest.mark.parametrize("name", WITHHELD)
async def test_a_withheld_server_starts_where_it_is_trusted_and_nowhere_else(name: str, tmp_path: Path) -> None:
    for trusted in (True, False):
        assert await started(load()[name], tmp_path / str(trusted), trusted=trusted) is trusted


async def started(spec: ServerSpec, base: Path, *, trusted: bool) -> bool:
    (base / "bin").mkdir(parents=True)
    told, program = Canary(base / "started"), base / "bin" / spec.command[0]
    with closing(told):
        program.write_text(STAND_IN.format(" ".join(spec.version_args) or "-", told))
        program.chmod(0o755)
        for module in spec.modules:
            (base / module.replace("*", "x")).mkdir(parents=True)
        user = make_user(
            base, spec.id, Installed((str(base / "bin"), "/usr/bin", "/bin"), version="1.0"), trusted=trusted
        )
        for file, text in {**LIBRARIES, **own_files(spec)}.items():
            (user.workspace / file).parent.mkdir(parents=True, exist_ok=True)
            (user.workspace / file).write_text(text)
        async with pilotfish.open(user.workspace, shell=computer(user.environment)) as workspace:
            for path in user.workspace.rglob("*"):
                if path.is_file() and "node_modules" not in path.parts and workspace.is_served(str(path)):
                    await workspace.check(str(path))
        return told.was_read()
