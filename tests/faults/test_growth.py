"""What comes in without end is kept within bounds: edits, publishes, words on standard error."""

import gc
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from faults.matrix import Fault, configure
from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import ClientSession
from support.daemon.homes import DaemonHome, daemon_home
from support.servers.script import Script
from support.servers.scripted import ScriptedServer
from support.services.scripted import ScriptedService, scripted_service

WARM_EDITS, EDITS = 30, 150
LINES = 2_000
"""Of the file: some ten kilobytes, which every copy that stayed would add."""
MAX_GROWTH = 160 * 1024
"""Bytes over all edits after the first ones: it would be twice as many if one text in ten stayed. What there is are
samples of how long things took and shapes, which are kept up to a number, and the last texts, which are longer."""

PEAK_MIB = 300
"""What the promise allows a daemon that is flooded."""


def counting(script: Script) -> None:
    """Pulls are answered with one error that names the version; what the server remembers is dropped."""
    assert isinstance(script, ScriptedServer)
    script.capabilities = {"textDocumentSync": 2, "diagnosticProvider": {"interFileDependencies": False}}
    version = 0

    def changed(params: Any) -> None:
        nonlocal version
        version = params["textDocument"]["version"]
        script.received.clear()
        script.bytes_taken.clear()

    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    script.on("textDocument/didOpen", changed)
    script.on("textDocument/didChange", changed)
    script.on(
        "textDocument/diagnostic",
        lambda params: {"kind": "full", "items": [{"range": place, "message": f"version {version}"}]},
    )
    script.ignore("textDocument/didSave", "textDocument/didClose")


@pytest.mark.anyio
@pytest.mark.timeout(480)  # tracing every allocation makes it slow: 30 s of processor time
@pytest.mark.proves("F87", "P14", "POOL-7")
async def test_edit_after_edit_of_one_file_leaves_nothing_behind(tmp_path: Path) -> None:
    async with scripted_service(tmp_path, counting) as ground:
        client = ground.session()
        await _edited(ground, client, range(WARM_EDITS))
        tracemalloc.start()
        try:
            await _edited(ground, client, range(50))
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            await _edited(ground, client, range(EDITS))
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < MAX_GROWTH
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        assert entry.session.documents.version(AbsPath(str(ground.root / "a.fake"))) < 2**31


async def _edited(ground: ScriptedService, client: ClientSession, numbers: range) -> None:
    for number in numbers:
        touch = Touch(("a.fake",), "edit", {"a.fake": "first\n" + f"{number}\n" * LINES})
        feedback = await ground.service.touched(touch, client)
        assert feedback.state is State.FRESH
        assert "version" in feedback.text


@pytest.mark.slow
@pytest.mark.proves("P15", "F21", "F23", "T36", "A16.5")
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
def test_a_flooded_daemon_stays_small_and_answers(tmp_path: Path) -> None:
    torrent = Fault("floods_everything")
    with daemon_home(tmp_path) as home:
        configure(home, (torrent,))
        with home.link() as link:
            asked = {"operation": "hover", "filePath": torrent.file, "line": 1, "character": 1}
            assert link.request("ask", asked, 100.0)["meta"]["state"] == "fresh"
            assert "bad word" in link.request("touched", {"paths": ["good.x"], "kind": "edit"})["text"]
        assert _peak_mib(home) < PEAK_MIB


def _peak_mib(home: DaemonHome) -> float:
    (daemon,) = home.daemons()
    lines = Path(f"/proc/{daemon}/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peak) / 1024
