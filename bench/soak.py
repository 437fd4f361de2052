"""Memory over 100,000 edits of one file, and over 1,000 roots opened and closed, through the whole service.

`python bench/soak.py [--edits N] [--roots N]` prints; it never judges. The server is scripted and in memory, so what
grows is ours.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import anyio

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.config.places import user_places
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Why
from pilotfish.service.service import Host, Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.vitals import SystemVitals
from support.servers.script import Script
from support.servers.scripted import ScriptedServer, spawning

CONFIG = '{"lsp": {"soak": {"command": ["/bin/true"], "extensions": [".soak"], "roots": ["root.marker"]}}}'


def scenario(script: Script) -> None:
    """Pulls are answered with one error that names the version."""
    assert isinstance(script, ScriptedServer)
    script.capabilities = {"textDocumentSync": 2, "diagnosticProvider": {"interFileDependencies": False}}
    version = 0

    def changed(params: dict[str, dict[str, int]]) -> None:
        nonlocal version
        version = params["textDocument"]["version"]
        script.received.clear()
        script.bytes_taken.clear()

    def pulled(_params: object) -> object:
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        return {"kind": "full", "items": [{"range": place, "message": f"version {version}"}]}

    script.on("textDocument/didOpen", changed)
    script.on("textDocument/didChange", changed)
    script.on("textDocument/diagnostic", pulled)
    script.ignore("textDocument/didSave", "textDocument/didClose")


def facts() -> str:
    process = psutil.Process()
    rss = process.memory_info().rss / 1024 / 1024
    return f"{rss:7.1f} MiB  {process.num_fds()} descriptors  {len(asyncio.all_tasks())} tasks"


async def edits(service: Service, root: Path, count: int) -> None:
    client = ClientSession("soak", AbsPath(str(root)), AbsPath(str(root)))
    file = root / "a.soak"
    file.write_text("0\n")
    step = max(1, count // 10)
    for number in range(count):
        feedback = await service.touched(Touch(("a.soak",), "edit", {"a.soak": f"{number}\n" * 50}), client)
        if feedback.state is not State.FRESH or "version" not in feedback.text:
            raise SystemExit(f"edit {number}: {feedback}")
        if number % step == 0 or number == count - 1:
            print(f"edit {number:7d}  {facts()}", flush=True)


async def roots(service: Service, folder: Path, count: int, servers: list[ScriptedServer]) -> None:
    step = max(1, count // 5)
    for number in range(count):
        root = folder / f"r{number % 50}"
        root.mkdir(exist_ok=True)
        (root / "a.soak").write_text(f"{number}\n")
        client = ClientSession(f"client {number}", AbsPath(str(root)), AbsPath(str(root)))
        await service.touched(Touch(("a.soak",), "edit"), client)
        service.end(client)
        for key in list(service.pool.entries()):
            await service.pool.stop(key, Why.ASKED)
            service.pool.forget(key)
        servers.clear()
        if number % step == 0 or number == count - 1:
            print(f"root {number:7d}  {facts()}", flush=True)


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--edits", type=int, default=100_000)
    arguments.add_argument("--roots", type=int, default=1_000)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / ".config" / "pilotfish").mkdir(parents=True)
        (home / ".config" / "pilotfish" / "lsp.json").write_text(CONFIG)
        environment = {"HOME": str(home), "PILOTFISH_HOME": str(home / "state"), "PATH": os.environ["PATH"]}
        servers: list[ScriptedServer] = []
        host = Host(
            spawning(scenario, servers=servers),
            DiskFiles(),
            WallClock(),
            SystemVitals(),
            user_places(environment),
            environment,
        )
        work = Path(folder) / "work"
        work.mkdir()
        async with Service(host).running() as service:
            await edits(service, work, chosen.edits)
            await roots(service, work, chosen.roots, servers)


if __name__ == "__main__":
    anyio.run(main)
