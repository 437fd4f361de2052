"""Memory over 100,000 edits of one file, and over 200 worktrees that are opened through the daemon, left, and never
used again.

`python bench/soak.py [--edits N] [--worktrees N]` prints; it never judges. The server is scripted and in memory, so
what grows is ours. The daemon has its real socket and watcher, and less patience than usual: minutes become seconds.
"""

import asyncio
import gc
import os
import sys
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
from harness.pages import options
from msgspec.structs import replace

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.config.places import user_places
from pilotfish.daemon.claim import claim_daemon
from pilotfish.daemon.main import Daemon, Settings
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.model import AbsPath
from pilotfish.pool.entry import Entry
from pilotfish.pool.plan import Limits
from pilotfish.protocol.documents import Documents
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.vitals import SystemVitals
from pilotfish.system.watching.watcher import open_watcher
from support.servers.script import Script
from support.servers.scripted import ScriptedServer, spawning

CONFIG = '{"lsp": {"soak": {"command": ["/bin/true"], "extensions": [".soak"], "roots": ["root.marker"]}}}'

UNUSED_SECONDS = 0.05
"""Instead of a minute: how long a server outlives its last client, and is remembered after that."""

FILE_BYTES = 100_000
"""Of the one file of a worktree: 200 of them, kept once each, would be 20 MB."""


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


async def edits(system: System, root: Path, count: int) -> None:
    client = ClientSession("soak", AbsPath(str(root)), AbsPath(str(root)))
    file = root / "a.soak"
    file.write_text("0\n")
    step = max(1, count // 10)
    async with Service(system).running() as service:
        for number in range(count):
            feedback = await service.touched(Touch(("a.soak",), "edit", {"a.soak": f"{number}\n" * 50}), client)
            if feedback.state is not State.FRESH or "version" not in feedback.text:
                raise SystemExit(f"edit {number}: {feedback}")
            if number % step == 0 or number == count - 1:
                print(f"edit {number:7d}  {facts()}", flush=True)


async def worktrees(system: System, folder: Path, count: int, servers: list[ScriptedServer]) -> None:
    """Open worktrees one after the other in a daemon of this process, edit a file in each, and leave it for good."""
    claim = claim_daemon(DaemonPlace(system.environment))
    assert claim is not None
    daemon = Daemon(claim, system, Settings(Limits(unused_seconds=UNUSED_SECONDS), 600.0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daemon.live, lambda: None)
        for number in range(1, count + 1):
            await anyio.to_thread.run_sync(use_worktree, folder / f"worktree{number}", Terms(system.environment, False))
            servers.clear()
            await anyio.sleep(4 * UNUSED_SECONDS)
            if number in {1, 10, count} or number % 25 == 0:
                print(f"worktree {number:4d}  {facts()}  {kept()}", flush=True)
        daemon.life.stop("the benchmark is over")
    os.close(claim.lock)


def use_worktree(folder: Path, terms: Terms) -> None:
    folder.mkdir()
    (folder / "root.marker").touch()
    (folder / "a.soak").write_text(f"{folder.name}\n".ljust(100) * (FILE_BYTES // 100))
    with open_link(Introduction(cwd=str(folder)), terms) as link:
        feedback = link.request("touched", {"paths": ["a.soak"], "kind": "edit"})
    if feedback["state"] != State.FRESH or "version" not in feedback["text"]:
        raise SystemExit(f"{folder.name}: {feedback}")


def kept() -> str:
    """Blocks of memory in use, entries of the pool, and the open documents of servers that run or did.

    Blocks say more than resident memory, of which the allocator keeps what it once had.
    """
    gc.collect()
    objects = gc.get_objects()
    entries = sum(isinstance(thing, Entry) for thing in objects)
    documents = sum(isinstance(thing, Documents) for thing in objects)
    return f"{sys.getallocatedblocks():,} blocks  {entries} entries  {documents} sets of documents"


async def main() -> None:
    chosen = options(__doc__, edits=100_000, worktrees=200)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / ".config" / "pilotfish").mkdir(parents=True)
        (home / ".config" / "pilotfish" / "lsp.json").write_text(CONFIG)
        environment = {"HOME": str(home), "PILOTFISH_HOME": str(home / "state"), "PATH": os.environ["PATH"]}
        servers: list[ScriptedServer] = []
        system = System(
            spawning(scenario, servers=servers),
            DiskFiles(),
            WallClock(),
            SystemVitals(),
            user_places(environment),
            environment,
            watch=open_watcher,
        )
        work = Path(folder) / "work"
        work.mkdir()
        if chosen.edits:
            await edits(replace(system, watch=None), work, chosen.edits)
        if chosen.worktrees:
            await worktrees(system, work, chosen.worktrees, servers)


if __name__ == "__main__":
    anyio.run(main)
