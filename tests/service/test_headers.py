"""A real clangd: what a header breaks is told by a server that has just started, in a preview and before a stop."""

import json
from pathlib import Path

import pytest

from pilotfish.api.questions import Moment, Touch
from support.services.real import RealService, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.server("clangd"), pytest.mark.proves("DIAG-12")]

CONFIG = {
    "feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"]},
    "timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000},
}


@pytest.fixture
def anyio_backend() -> str:
    """Real processes have no virtual time."""
    return "asyncio"


async def edited(ground: RealService, name: str, old: str, new: str) -> str:
    before = (ground.root / name).read_text()
    ground.write(name, before.replace(old, new))
    return (await ground.service.touched(Touch((name,), "edit", before={name: before}), ground.client)).text


def write_project(ground: RealService) -> None:
    ground.write("store.h", "int add(int key);\n")
    ground.write("store.c", '#include "store.h"\nint add(int key) { return key; }\n')
    ground.write("main.c", '#include "store.h"\nint main(void) { return add(1); }\n')
    entries = [{"directory": str(ground.root), "command": f"cc -c {one}", "file": one} for one in ("store.c", "main.c")]
    ground.write("compile_commands.json", json.dumps(entries))


async def test_the_first_edit_of_all_tells_what_a_header_broke(tmp_path: Path) -> None:
    async with real_service(tmp_path, CONFIG) as ground:
        write_project(ground)
        ground.write("main.c", '#include "store.h"\nint main(void) { return add(1) + old; }\n')
        told = await edited(ground, "store.h", "int key", "int key, int value")
        assert "main.c" in told
        assert "store.c" in told
        assert "'old'" not in told


async def test_a_preview_of_a_header_leaves_open_files_as_they_were(tmp_path: Path) -> None:
    async with real_service(tmp_path, CONFIG) as ground:
        write_project(ground)
        for name in ("main.c", "store.h"):
            await ground.service.touched(Touch((name,), "read"), ground.client)
        preview = await ground.service.preview(ground.client, [], {"store.h": "int add(int key, int value);\n"})
        assert "Too few arguments" in str((preview.data or {})["main.c"])
        told = await edited(ground, "main.c", "add(1)", "add(1) + missing")
        assert "'missing'" in told
        assert "Too few" not in told
        assert "modified since" not in told


async def test_a_stop_lists_what_a_header_broke_after_another_edit(tmp_path: Path) -> None:
    async with real_service(tmp_path, CONFIG) as ground:
        write_project(ground)
        for name in ("main.c", "store.c", "store.h"):
            await ground.service.touched(Touch((name,), "edit"), ground.client)
        told = await edited(ground, "store.h", "int key", "int key, int value")
        assert "main.c" in told
        assert await edited(ground, "store.c", "int key", "int key, int value") == ""
        assert "missing" in await edited(ground, "store.c", "return key", "return missing")
        left = (await ground.service.reached(Moment("stop"), ground.client)).text
        assert "could not be checked" not in left
        assert "Too few arguments" in left
        assert "missing" in left
