"""A generator beside a server, both as real processes: what it writes is known to the next answer."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.system.ports import OpenWatcher
from pilotfish.system.process import spawn
from pilotfish.system.watching.watcher import open_watcher
from support.process_tree import alive
from support.services.watched import MAIN, SERVER, WatchedService, serving, watched_service
from support.watching.watched import BOUND_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.proves("WATCH-3")]

TESTS = Path(__file__).resolve().parents[1]

IMPORTER = [sys.executable, "-m", "support.servers.fakels", "support.servers.importer:importer"]

GENERATOR = """
import os, signal, sys

if os.path.exists("fail"):
    sys.exit("there is a file called fail")
with open("sourcemap.json~", "w") as file:
    file.write("{}")
os.replace("sourcemap.json~", "sourcemap.json")
print("generated", file=sys.stderr, flush=True)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(f"pid.{os.getpid()}", "w"):
    pass
while True:
    signal.pause()
"""
"""Makes the file that the server reads, and has a child that does not end when asked to."""

GENERATING = [sys.executable, "-I", "-S", "-c", GENERATOR]


def importer(**more: Any) -> dict[str, Any]:
    return {SERVER: serving(".fake", **{"command": IMPORTER, "env": {"PYTHONPATH": str(TESTS)}, **more})}


@asynccontextmanager
async def ground(folder: Path, watch: OpenWatcher | None = open_watcher, **more: Any) -> AsyncGenerator[WatchedService]:
    with anyio.fail_after(BOUND_SECONDS * 1.5):
        async with watched_service(folder, watch=watch, spawn=spawn, **more) as work:
            work.write(MAIN, "import sourcemap.json\n")
            yield work


def family(work: WatchedService) -> set[int]:
    """The processes of the generator, by the files that they leave."""
    return {int(name.removeprefix("pid.")) for name in os.listdir(work.root) if name.startswith("pid.")}


async def until_generated(work: WatchedService) -> None:
    while not (work.root / "sourcemap.json").exists() or len(family(work)) < 2:
        await anyio.lowlevel.checkpoint()


@pytest.mark.proves("WATCH-2")
async def test_what_it_generates_is_known_to_the_next_answer(tmp_path: Path) -> None:
    async with ground(tmp_path, servers=importer(watch=GENERATING)) as work:
        await work.errors()
        await until_generated(work)
        assert await work.errors() == []
        (sidecar,) = work.row().sidecars
        assert (sidecar.starts, sidecar.reason, sidecar.stderr) == (1, None, ("generated",))
        assert sidecar.pid in family(work)


async def test_with_nobody_watching_the_server_never_hears_of_it(tmp_path: Path) -> None:
    """What other clients do: the file is there, and the server has not been told."""
    async with ground(tmp_path, watch=None, servers=importer(watch=["/bin/true"])) as work:
        assert await work.errors() == ["there is no sourcemap.json"]
        work.write("sourcemap.json")
        assert await work.errors() == ["there is no sourcemap.json"]


async def test_it_ends_with_its_server_and_comes_back_with_it(tmp_path: Path) -> None:
    async with ground(tmp_path, servers=importer(watch=GENERATING)) as work:
        await work.errors()
        await until_generated(work)
        before = family(work)
        await work.service.pool.stop_all()
        assert not [pid for pid in before if alive(pid)]
        assert work.row().sidecars == ()
        (work.root / "sourcemap.json").unlink()
        await work.errors()
        await until_generated(work)
        while len(family(work)) < 4:
            await anyio.lowlevel.checkpoint()
    assert not [pid for pid in family(work) if alive(pid)]


async def test_its_failure_is_told_in_status_and_the_server_goes_on(tmp_path: Path) -> None:
    async with ground(tmp_path, servers=importer(watch=GENERATING)) as work:
        work.write("fail")
        assert await work.errors() == ["there is no sourcemap.json"]
        while not work.row().sidecars or work.row().sidecars[0].reason is None:
            await anyio.lowlevel.checkpoint()
        (sidecar,) = work.row().sidecars
        assert sidecar.pid is None
        assert sidecar.reason == "it exited with code 1"
        assert sidecar.stderr == ("there is a file called fail",)
        (work.root / "fail").unlink()
        await until_generated(work)
        assert await work.errors() == []


async def test_a_program_that_is_not_there_is_told_in_status(tmp_path: Path) -> None:
    async with ground(tmp_path, servers=importer(watch=["no-such-generator"])) as work:
        assert await work.errors() == ["there is no sourcemap.json"]
        (sidecar,) = work.row().sidecars
        assert sidecar.reason == "no-such-generator is not installed, or may not run here"


# --- Luau ---------------------------------------------------------------------------------------------------------


def programs(folder: Path) -> Path:
    """`luau-lsp` and `rojo`, as far as a test needs them."""
    folder.mkdir()
    server = f"import sys; sys.path.insert(0, {str(TESTS)!r}); sys.argv[1:] = ['support.servers.importer:importer']\n"
    server += "from support.servers.fakels import main; main()\n"
    rojo = "import sys\nwith open('arguments', 'w') as file: print(*sys.argv[1:], file=file)\n" + GENERATOR
    for name, code in (("luau-lsp", server), ("rojo", rojo)):
        (folder / name).write_text(f"#!{sys.executable}\n{code}")
        (folder / name).chmod(0o755)
    return folder


def luau(project: str | None = "game.project.json", *, autogenerate: bool = True) -> dict[str, Any]:
    sourcemap: dict[str, Any] = {"autogenerate": autogenerate}
    if project is not None:
        sourcemap["rojoProjectFile"] = project
    return {"luau": {"initialization": {"luau-lsp": {"sourcemap": sourcemap}}}}


async def test_for_luau_it_follows_from_the_options(tmp_path: Path) -> None:
    async with ground(tmp_path, servers=luau(), programs=programs(tmp_path / "bin")) as work:
        work.write("main.luau", "import sourcemap.json\n")
        await work.errors("main.luau")
        await until_generated(work)
        assert await work.errors("main.luau") == []
        arguments = (work.root / "arguments").read_text()
        assert arguments == "sourcemap game.project.json --watch -o sourcemap.json\n"


@pytest.mark.parametrize(
    "servers", [luau(None), luau(autogenerate=False)], ids=["no project file", "not to be generated"]
)
async def test_for_luau_there_is_none_where_the_options_do_not_ask_for_it(
    tmp_path: Path, servers: dict[str, Any]
) -> None:
    async with ground(tmp_path, servers=servers, programs=programs(tmp_path / "bin")) as work:
        work.write("main.luau", "import sourcemap.json\n")
        assert await work.errors("main.luau") == ["there is no sourcemap.json"]
        assert work.row("luau").sidecars == ()


@pytest.mark.proves("T7")
async def test_in_a_workspace_that_nobody_trusts_what_follows_from_options_does_not_run(tmp_path: Path) -> None:
    servers = luau()
    servers["luau"]["command"] = ["luau-lsp", "lsp"]  # the user's own: that of the catalogue needs trust
    async with ground(tmp_path, servers=servers, programs=programs(tmp_path / "bin"), trusted=False) as work:
        work.write("main.luau", "import sourcemap.json\n")
        assert await work.errors("main.luau") == ["there is no sourcemap.json"]
        (sidecar,) = work.row("luau").sidecars
        assert (sidecar.pid, sidecar.starts) == (None, 0)
        assert sidecar.reason == "rojo does not run: the workspace is not trusted"
