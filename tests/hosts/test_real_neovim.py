"""Neovim's LSP client and `pilotfish lsp`: it is served what is on disk, and refused once it holds other text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.real import RUN_SECONDS, left_by_host, program

SCRIPT = Path(__file__).parent.parent / "support" / "hosts" / "neovim_run.lua"
BROKEN = 'def f() -> int:\n    return "x"\n'
TYPED = 'def g() -> int:\n    return "x"\n\n\ndef h() -> str:\n    return 1\n'


@pytest.mark.host("neovim", "node", gate=False)
@pytest.mark.server("ty")
def test_neovim_is_refused_while_it_has_unsaved_text_and_served_once_it_is_saved(
    home: DaemonHome, tmp_path: Path
) -> None:
    home.write("a.py", BROKEN)
    given = {
        "file": str(home.root / "a.py"),
        "root": str(home.root),
        "command": [sys.executable, "-I", "-m", "pilotfish", "lsp"],
        "typed": TYPED.removesuffix("\n"),
    }
    report = tmp_path / "report.json"
    done = subprocess.run(
        [program("neovim"), "--headless", "--clean", "-n", "-c", f"luafile {SCRIPT}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=home.root,
        env={**home.environment, "GIVEN": json.dumps(given), "REPORT": str(report)},
        timeout=RUN_SECONDS,
        text=True,
        check=False,
    )
    assert report.exists(), done.stderr
    seen = json.loads(report.read_text())
    assert "failure" not in seen, (seen, done.stderr)
    assert [line[:11] for line in seen["saved"]["diagnostics"]] == ["Return type"]
    assert "def f() -> int" in seen["saved"]["hover"]["text"]

    # Of text that nobody has saved nothing is said, neither right nor wrong; the person reads why, once.
    for step in ("typing", "unsaved"):
        assert seen[step]["hover"]["refused"].startswith("a.py has text that is not on disk. ")
    (message,) = seen["shown"]
    assert message == seen["unsaved"]["hover"]["refused"]
    assert message in seen["unsaved"]["messages"].replace("\n", " ")

    assert (home.root / "a.py").read_text() == TYPED
    assert [line[:11] for line in seen["again"]["diagnostics"]] == ["Return type"] * 2
    assert "def g() -> int" in seen["again"]["hover"]["text"]
    assert left_by_host(home) == []
