"""The real Pi in a terminal: the status line, the panel of `/lsp` with each of its keys, and the end of the session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.model_server import ModelServer, Say
from support.hosts.pi import VERSIONS, pi, started
from support.hosts.real import pilotfish
from support.hosts.terminal import Terminal, terminal

ROWS = [pytest.param(version, id=version, marks=pytest.mark.host(version, "node")) for version in VERSIONS]

pytestmark = [pytest.mark.server("ty"), pytest.mark.parametrize("version", ROWS)]

PROBE = Path(__file__).parents[1] / "support" / "hosts" / "pi_probe.ts"
BOTTOM = "? help · q close"


@pytest.fixture
def screen(version: str, home: DaemonHome) -> Iterator[Terminal]:
    """Pi in a terminal, after an edit that broke a file."""
    pilotfish(home, "setup", "pi", "--global")
    with ModelServer([pi(version).breaking(home.root / "a.py"), Say("I have done it.")]) as model:
        argv = [*started(version, home, model.url), "--extension", str(PROBE), "Write a.py."]
        with terminal(argv, home.root, home.environment) as made:
            made.until("I have done it.", "lsp: 1 error after the edit of a.py")
            yield made


def sessions(home: DaemonHome) -> list[str]:
    with home.control() as control:
        return [each["host"] for each in control.request("about")["sessions"]]


@pytest.mark.proves("TUI-1")
def test_the_panel_opens_over_the_conversation_obeys_each_key_and_leaves_nothing(screen: Terminal) -> None:
    screen.press("/lsp\r")
    (row,) = (line for line in screen.until("Language servers", "› ● ty", BOTTOM) if "› ● ty" in line)
    assert "1 error" in row
    left, right = row.index("│"), len(row) - 1 - row.rindex("│")
    assert abs(left - right) <= 1  # in the middle
    for key, texts in (
        ("\r", ["runs in: "]),
        ("G", ["› - "]),
        ("g", ["› ● ty"]),
        ("j", ["› - "]),
        ("\x1b[A", ["› ● ty"]),
        ("\x1b[B", ["› - "]),
        ("k", ["› ● ty"]),
        ("?", ["leave the filter"]),
        ("/", ["/▏"]),
        ("zz", ["no rows match filter"]),
    ):
        screen.press(key)
        screen.until(*texts)
    screen.press("\x1b")
    screen.until("› ● ty", without="/zz")
    screen.press("\x12")
    screen.until("› ● ty")
    for key in ("q", "\x1b"):
        screen.press(key)
        screen.until("I have done it.", without="Language servers")
        screen.press("/lsp\r")
        screen.until("Language servers", "connected", BOTTOM)
    screen.press("q")
    screen.until("I have done it.", without="Language servers")
    screen.press("/intervals\r")
    screen.until("intervals running: 0")


@pytest.mark.proves("HOOK-1")
def test_the_session_ends_with_pi_when_the_terminal_is_closed(screen: Terminal, home: DaemonHome) -> None:
    assert sessions(home) == ["pi"]
    # Not by a signal alone: Pi would wait for somebody to read its last words.
    screen.close()
    while sessions(home):
        pass
