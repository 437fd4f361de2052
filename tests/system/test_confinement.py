"""What the kernel holds a server of an untrusted workspace to, whatever it does (T35, T46)."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from pilotfish.errors import ServerFailed
from pilotfish.model import AbsPath
from pilotfish.system import confinement
from pilotfish.system.confinement import confinable, confine, landlock_abi
from pilotfish.system.ports import Confinement, Launch
from pilotfish.system.process import spawn
from support.left_behind import no_task_left_behind, nothing_left_behind
from support.portable import Elsewhere

__all__ = ["no_task_left_behind", "nothing_left_behind"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.proves("T35", "T46"),
    pytest.mark.skipif("files" not in confinable(), reason="this kernel has no Landlock"),
]

DEEDS = """
import json, os, socket, subprocess, sys
inside, outside = sys.argv[1:]

def can(deed):
    try:
        deed()
    except OSError as error:
        return error.strerror
    return True

print(json.dumps({
    "execute inside": can(lambda: subprocess.run([f"{inside}/program"], check=True)),
    "execute outside": can(lambda: subprocess.run([f"{outside}/program"], check=True)),
    "create inside": can(lambda: open(f"{inside}/new", "w")),
    "change inside": can(lambda: open(f"{inside}/program", "a")),
    "remove inside": can(lambda: os.unlink(f"{inside}/program")),
    "link from inside": can(lambda: os.link(f"{inside}/program", f"{outside}/program2")),
    "move out": can(lambda: os.rename(f"{inside}/program", f"{outside}/program3")),
    "read inside": can(lambda: open(f"{inside}/program").read()),
    "create outside": can(lambda: open(f"{outside}/new", "w")),
    "move outside": can(lambda: os.rename(f"{outside}/program", f"{outside}/folder/program")),
    "read a secret": can(lambda: open(f"{outside}/folder/secret").read()),
    "write in the opened folder": can(lambda: open(f"{inside}/state/new", "w")),
    "connect": can(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)),
    "send": can(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)),
    "local socket": can(lambda: socket.socket(socket.AF_UNIX)),
    "see its parent": can(lambda: os.kill(os.getppid(), 0)),
    "no new privileges": "NoNewPrivs:\\t1" in open("/proc/self/status").read(),
}), flush=True)
"""

REFUSED = "Permission denied"


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    base = Path(os.path.realpath(tmp_path))
    inside, outside = base / "inside", base / "outside"
    for folder in (inside / "state", outside / "folder"):
        folder.mkdir(parents=True)
    for folder in (inside, outside):
        (folder / "program").write_text("#!/bin/sh\nexit 0\n")
        (folder / "program").chmod(0o755)
    (outside / "folder" / "secret").write_text("secret")
    return inside, outside


async def deeds(
    places: tuple[Path, Path], confinement: Confinement | None
) -> tuple[dict[str, object], tuple[str, ...]]:
    inside, outside = places
    argv = (sys.executable, "-I", "-c", DEEDS, str(inside), str(outside))
    launch = Launch(argv, AbsPath(str(inside)), {"PATH": "/usr/bin:/bin"}, "deeds", confinement)
    said = b""
    with anyio.fail_after(20):
        async with spawn(launch) as process:
            while data := await process.receive():
                said += data
            return json.loads(said), process.held


async def test_a_confined_server_reads_the_workspace_and_can_do_nothing_else_to_it(places: tuple[Path, Path]) -> None:
    inside, _ = places
    sealed = Confinement((AbsPath(str(inside)),), (AbsPath(str(inside / "state")),))
    done, held = await deeds(places, sealed)
    refused = {
        "execute inside", "create inside", "change inside", "remove inside", "link from inside", "move out", "connect",
        "send", "create outside", "move outside",
    }  # fmt: skip
    assert {deed for deed, result in done.items() if result is not True} == refused
    # Landlock says EXDEV where moving a file to another place would give it more rights.
    assert {str(done[deed]) for deed in refused} <= {REFUSED, "Invalid cross-device link"}
    assert held == ("privileges", "files", "network")


async def test_of_a_private_folder_only_what_is_listed_is_read_or_executed(places: tuple[Path, Path]) -> None:
    inside, outside = (AbsPath(str(place)) for place in places)
    base = AbsPath(os.path.dirname(inside))
    held = Confinement((inside,), private=(base,), readable=(inside, AbsPath(f"{outside}/program")))
    done, _ = await deeds(places, held)
    assert (done["read inside"], done["execute outside"], done["read a secret"]) == (True, True, REFUSED)
    assert done["execute inside"] == REFUSED


async def test_what_must_be_held_to_its_files_does_not_start_where_it_cannot_be(places: tuple[Path, Path]) -> None:
    everything = Confinement((AbsPath("/"),), required=True)  # a workspace that holds the programs, too
    with pytest.raises(ServerFailed, match="could not be started: operation not permitted"):
        await deeds(places, everything)


async def test_a_server_that_needs_the_network_has_it(places: tuple[Path, Path]) -> None:
    done, held = await deeds(places, Confinement((AbsPath(str(places[0])),), network=True))
    assert (done["connect"], done["send"], done["execute inside"]) == (True, True, REFUSED)
    assert held == ("privileges", "files")


async def test_without_a_confinement_nothing_is_held(places: tuple[Path, Path]) -> None:
    done, held = await deeds(places, None)
    assert held == ()
    assert (done["execute inside"], done["create inside"], done["connect"]) == (True, True, True)
    assert done["no new privileges"] is False


async def test_a_program_inside_the_sealed_folder_does_not_start_and_says_why(places: tuple[Path, Path]) -> None:
    inside, _ = places
    launch = Launch((str(inside / "program"),), AbsPath("/"), {}, "planted", Confinement((AbsPath(str(inside)),)))
    with pytest.raises(ServerFailed, match="planted cannot be run") as raised:
        async with spawn(launch):
            pytest.fail("it started")
    assert raised.value.hint is not None
    assert "not trusted" in raised.value.hint


def test_the_version_of_landlock_is_known() -> None:
    assert landlock_abi() >= 1


@pytest.mark.proves("PLAT-1")
async def test_another_system_is_asked_for_nothing_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "sys", Elsewhere("sys"))
    monkeypatch.setattr(confinement, "_library", None)
    assert confine({}, network=False) == []
