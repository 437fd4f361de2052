"""The panel as text: a golden file for each state, and what must hold at every width."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.api.answers import Feedback, State
from pilotfish.api.status import (
    Activity,
    ChangedLines,
    Counts,
    Exchange,
    FeedbackShown,
    FileReport,
    InstanceDetails,
    Said,
)
from pilotfish.surfaces.cli.terminal.table import columns
from pilotfish_panel.state import Panel, PanelEffect
from pilotfish_panel.verb import summary
from pilotfish_panel.view import lines_of
from support.services.snapshots import NOW, ROOT, active, broken, disabled, idle, snapshot, starting, unavailable

pytestmark = pytest.mark.proves("TUI-1")

GOLDEN = Path(__file__).parent / "golden"

MIDNIGHT = time.strftime("%H:%M:%S", time.localtime(0))
"""The beginning of the epoch, where this machine is."""

UPDATE = "PILOTFISH_UPDATE_GOLDEN"
"""Set it to write the texts anew; then read them."""

ALL = snapshot(
    broken("gopls"),
    starting("rust-analyzer"),
    active("basedpyright"),
    active("ruff"),
    idle("clangd"),
    unavailable("zls"),
    disabled("ty"),
)

DETAILS = InstanceDetails(
    root=ROOT,
    program="basedpyright 1.40.2",
    stderr=("first line", "last line"),
    documents=("src/main.py",),
    diagnostics={"src/main.py": 3},
    exchanges=(Exchange(method="textDocument/hover", asked_at=NOW, duration_ms=12, end="answered"),),
)

SAID = Said(line=3, severity="error", message="bad word", server="basedpyright")
WARNED = Said(line=9, severity="warning", message="unused", server="ruff")
ACTIVITY = Activity(
    files=(
        FileReport(path="src/main.py", diagnostics=(SAID, WARNED), counts=Counts(1, 1, 0, 2, 4), more=2),
        FileReport(path="src/other.py", diagnostics=(WARNED,), counts=Counts(0, 1, 0, 0, 1), outdated=True),
    ),
    feedback=(
        FeedbackShown(
            at=0,
            root=ROOT,
            host="claude-code",
            paths=("src/main.py",),
            feedback=Feedback("ERROR [3:1] bad word", State.FRESH, 120, introduced=1),
            changes=(ChangedLines(path="src/main.py", line=3, old=("    good",), new=("    bad",)),),
        ),
        FeedbackShown(at=0, root=ROOT, paths=("src/other.py",), feedback=Feedback("", State.FRESH, 20)),
        FeedbackShown(
            at=0, root=ROOT, paths=("/tmp/a.py",), feedback=Feedback("", State.UNAVAILABLE, 9, "a.py is outside")
        ),
    ),
)

PANELS = {
    "all": Panel(ALL),
    "details": Panel(ALL, selected="basedpyright", expanded="basedpyright", details={"basedpyright": (DETAILS,)}),
    "broken": Panel(ALL, selected="gopls", expanded="gopls"),
    "filter": Panel(ALL, query="py", typing=True),
    "no_match": Panel(ALL, query="nothing"),
    "empty": Panel(snapshot()),
    "loading": Panel(),
    "unavailable": Panel(error="the daemon's place is not safe"),
    "no_daemon": Panel(snapshot(idle("ruff")), daemon=False),
    "help": Panel(ALL, help=True),
    "question": Panel(ALL, selected="ruff", question=PanelEffect("restart", "ruff")),
    "diagnostics": Panel(ALL, view="diagnostics", activity=ACTIVITY),
    "feedback": Panel(ALL, view="feedback", activity=ACTIVITY),
    "log": Panel(ALL, view="log", selected="ruff", log=("first line", "last line")),
    "warned": Panel(snapshot(idle("ruff"), warnings=("lsp.json:1:2: lsp.x: unknown key", "another"))),
}


@pytest.mark.parametrize("name", PANELS)
def test_the_panel_looks_like_its_golden_file(name: str) -> None:
    text = "".join(f"{line.text}|\n" for line in lines_of(PANELS[name], 78, 30)).replace(MIDNIGHT, "00:00:00")
    file = GOLDEN / f"{name}.txt"
    if os.environ.get(UPDATE):
        file.write_text(text)
    assert text == file.read_text()


def test_a_long_view_is_scrolled_and_ends_at_its_end() -> None:
    many = tuple(f"line {number}" for number in range(100))
    shown = [
        [line.text.rstrip() for line in lines_of(Panel(ALL, view="log", log=many, scroll=by), 60, 20)]
        for by in (0, 3, 999)
    ]
    assert ["line 0" in shown[0], "line 3" in shown[1], "line 2" in shown[1], "line 99" in shown[2]] == [
        True,
        True,
        False,
        True,
    ]
    assert {len(lines) for lines in shown} == {20}


def test_a_narrow_panel_keeps_names_and_states() -> None:
    lines = [line.text.rstrip() for line in lines_of(PANELS["all"], 36, 30)]
    for name, state in (("gopls", "broken"), ("rust-analyzer", "starting"), ("basedpyright", "active")):
        assert any(name in line and line.endswith(state) for line in lines)


@pytest.mark.parametrize("width", [60, 78, 120])
def test_no_sentence_is_cut(width: int) -> None:
    sentence = " ".join(f"word{number}" for number in range(40))
    shown = snapshot(unavailable("zls", sentence), warnings=(sentence,))
    for panel in (Panel(shown), Panel(shown, notice=sentence), Panel(error=sentence)):
        words = " ".join(line.text for line in lines_of(panel, width, 60)).split()
        times = 1 if panel.snapshot is None else 3 if panel.notice else 2
        assert [words.count(word) for word in sentence.split()] == [times] * 40


HOSTILE = (
    "\x1b[2Jgone",
    "\r overwritten",
    "\u202egnp.exe",
    "a\tb",
    "日本語" * 40,
    "\x1b]52;c;AAAA\x07",
    "e\u0301" * 50,
)


@pytest.mark.proves("T32")
@given(st.text(max_size=80) | st.sampled_from(HOSTILE), st.integers(1, 210), st.integers(3, 60))
def test_every_line_is_as_wide_as_the_room_whatever_a_server_says(said: str, width: int, height: int) -> None:
    shown = snapshot(broken("gopls", said), unavailable("zls", said), active("ruff"), warnings=(said,))
    details = details_of(said)
    for panel in (
        Panel(shown, expanded="gopls", notice=said),
        Panel(shown, selected="ruff", expanded="ruff", details={"ruff": (details,)}, query=""),
        Panel(error=said),
    ):
        lines = lines_of(panel, width, height)
        assert {columns(line.text) for line in lines} <= {width}
        assert len(lines) <= height
        whole = "".join(line.text for line in lines)
        assert not [character for character in whole if character < " " or character in "\x7f\u202e\u2066\x9b"]


def details_of(said: str) -> InstanceDetails:
    exchange = Exchange(method=said, asked_at=NOW, duration_ms=1, end="failed")
    return InstanceDetails(
        root=ROOT, program=said, stderr=(said,), documents=(said,), diagnostics={said: 1}, exchanges=(exchange,)
    )


@given(st.integers(0, 300), st.integers(3, 40))
def test_the_selected_row_is_always_on_the_screen(place: int, height: int) -> None:
    rows = [idle(f"server-{number:03}") for number in range(301)]
    lines = lines_of(Panel(snapshot(*rows), selected=f"server-{place:03}"), 80, height)
    # Less room than head and foot take shows what fits of them.
    assert height < 7 or [line for line in lines if line.style == "selected" and f"server-{place:03}" in line.text]


def test_without_a_terminal_the_totals_and_the_troubles_are_told() -> None:
    assert list(summary(ALL)) == [
        "7 servers: 1 broken, 1 starting, 2 active, 1 idle, 1 unavailable, 1 disabled",
        "gopls: gopls exited with code 2; tried again in 20 s",
    ]
    off = snapshot(disabled="LSP disabled by configuration")
    assert list(summary(off)) == ["LSP disabled by configuration"]
