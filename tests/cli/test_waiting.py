"""What is on standard error while somebody waits for servers."""

import sys
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pilotfish.surfaces.cli.terminal import progress

pytestmark = pytest.mark.proves("CLI-1")


def test_the_servers_that_start_are_named_until_the_first_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = threading.Event()

    def status() -> Any:
        asked.set()
        return SimpleNamespace(rows=[SimpleNamespace(server_id="ty", spawning_roots=("/w",), connected_roots=())])

    monkeypatch.setattr(progress, "SPINNER_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.spinner(cast("Any", SimpleNamespace(status=status))) as stop:
        assert asked.wait(5)
        stop()
        assert capsys.readouterr().err == "waiting for ty …\r                \r"
    assert capsys.readouterr().err == ""
