"""Workspaces in the process of the command line, without a language server on the machine."""

import os
from pathlib import Path

import pytest

from pilotfish.errors import Code
from pilotfish.surfaces.cli.in_process import open_in_process

pytestmark = [pytest.mark.anyio, pytest.mark.proves("REG-5")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_missing_server_is_told_for_code_and_not_for_documents(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder / "nowhere"))
    paths = [str(folder / name) for name in ("a.go", "README.md", "notes.unknown")]
    for path in paths:
        Path(path).write_text("")
    async with open_in_process(str(folder), os.getcwd()) as workspace:
        unserved = await workspace.unserved(paths)
    assert {Path(path).name: why and why.code for path, why in unserved.items()} == {
        "a.go": Code.SERVER_MISSING,
        "README.md": None,
        "notes.unknown": None,
    }
