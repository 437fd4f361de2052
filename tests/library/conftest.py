"""Every test of the library leaves nothing behind."""

from pathlib import Path

import pytest

from support import left_behind
from support.services.computer import ScriptedShell, scripted_shell

no_task_left_behind = left_behind.no_task_left_behind
nothing_left_behind = left_behind.nothing_left_behind


@pytest.fixture
def shell(tmp_path: Path) -> ScriptedShell:
    return scripted_shell(tmp_path)
