"""The panel on a terminal: keys, refreshing, and that it ends with all that it started."""

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from textual.widgets import Static

from pilotfish.api.status import Activity, Counts, FileReport, InstanceDetails, Said, ServerRow, Snapshot
from pilotfish.errors import Code, Unavailable
from pilotfish.surfaces.cli.terminal.table import columns
from pilotfish_panel.app import FRAME, PanelApp
from pilotfish_panel.source import DaemonSource
from support.daemon.homes import DaemonHome, daemon_home
from support.process_tree import alive
from support.services.snapshots import ROOT, active, broken, idle, snapshot

pytestmark = [pytest.mark.anyio, pytest.mark.proves("TUI-1")]

NEVER = 3600.0
"""Seconds between refreshes: longer than any test."""


class FakeSource(DaemonSource):
    """Gives what the test says, and counts."""

    def __init__(self, *rows: ServerRow) -> None:
        super().__init__()
        self.rows = rows
        self.asked: list[str] = []
        self.failure: Unavailable | None = None

    def snapshot(self) -> tuple[Snapshot, bool]:
        self.asked.append("snapshot")
        if self.failure is not None:
            raise self.failure
        return snapshot(*self.rows), True

    def details(self, server: str) -> tuple[InstanceDetails, ...]:
        self.asked.append(f"details {server}")
        return (InstanceDetails(root=ROOT, stderr=("its last words",)),)

    def activity(self) -> Activity:
        self.asked.append("activity")
        said = Said(line=1, severity="error", message="bad word", server="gopls")
        return Activity(files=(FileReport(path="a.go", diagnostics=(said,), counts=Counts(1, 0, 0, 0, 1)),))

    def log(self, server: str) -> tuple[str, ...]:
        self.asked.append(f"log {server}")
        return ("its last words",)

    def restart(self, server: str) -> str:
        self.asked.append(f"restart {server}")
        return f"{server} restarted"

    def stop(self, server: str) -> str:
        self.asked.append(f"stop {server}")
        return f"{server} stopped"


def shown(app: PanelApp) -> str:
    widget = app.query_one("#panel", Static)
    return "\n".join(widget.render_line(number).text for number in range(widget.size.height + 2))


async def until(app: PanelApp, holds: Callable[[str], bool]) -> str:
    """The text of the panel as soon as it is as wanted; the time-out of the test bounds it."""
    while not holds(text := shown(app)):
        await anyio.sleep(0.01)
    return text


@pytest.mark.parametrize(("terminal", "panel"), [(40, 40), (82, 82), (200, 200)], ids=str)
async def test_it_is_as_large_as_the_terminal(terminal: int, panel: int) -> None:
    app = PanelApp(FakeSource(broken("gopls"), active("basedpyright"), idle("clangd")), NEVER)
    async with app.run_test(size=(terminal, 24)) as pilot:
        text = await until(app, lambda text: "gopls" in text)
        region = app.query_one("#panel").region
        await pilot.press("q")
    assert (region.width, region.x) == (panel, (terminal - panel) // 2)
    assert region.height == 24
    assert {columns(line) for line in text.splitlines()} == {panel - FRAME}


async def test_keys_reach_the_panel_and_enter_shows_the_last_words() -> None:
    source = FakeSource(broken("gopls"), active("basedpyright"))
    app = PanelApp(source, NEVER)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(app, lambda text: "gopls" in text)
        await pilot.press("j", "enter")
        await until(app, lambda text: "its last words" in text)
        await pilot.press("slash", "g", "o")
        text = await until(app, lambda text: "basedpyright" not in text)
        assert "/go" in text
        await pilot.press("escape")
        await until(app, lambda text: "basedpyright" in text)
        await pilot.press("question_mark")
        await until(app, lambda text: "restart it" in text)
    assert source.asked == ["snapshot", "details basedpyright"]


async def test_the_views_are_read_and_left_one_at_a_time() -> None:
    source = FakeSource(broken("gopls"), active("basedpyright"))
    app = PanelApp(source, NEVER)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(app, lambda text: "gopls" in text)
        await pilot.press("d")
        await until(app, lambda text: "a.go: 1 error" in text and "1: error: bad word" in text)
        await pilot.press("f")
        await until(app, lambda text: "no edits yet" in text)
        await pilot.press("escape", "j", "l")
        await until(app, lambda text: "Log of basedpyright" in text and "its last words" in text)
        await pilot.press("escape")
        await until(app, lambda text: "LSP servers" in text)
    assert source.asked == ["snapshot", "activity", "activity", "log basedpyright"]


async def test_a_server_is_restarted_after_a_yes_only() -> None:
    source = FakeSource(active("basedpyright"))
    app = PanelApp(source, NEVER)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(app, lambda text: "basedpyright" in text)
        await pilot.press("R")
        await until(app, lambda text: "Restart basedpyright? y/N" in text)
        await pilot.press("n")
        await pilot.press("R", "y")
        await until(app, lambda text: "basedpyright restarted" in text)
        await pilot.press("S", "y")
        await until(app, lambda text: "basedpyright stopped" in text)
    assert [what for what in source.asked if what != "snapshot"] == ["restart basedpyright", "stop basedpyright"]


async def test_it_refreshes_while_it_is_open_and_paints_only_what_has_changed() -> None:
    source = FakeSource(active("basedpyright"))
    app = PanelApp(source, 0.01)
    async with app.run_test(size=(100, 30)):
        await until(app, lambda text: "basedpyright" in text)
        painted, asked = app.paints, len(source.asked)
        while len(source.asked) < asked + 10:
            await anyio.sleep(0.005)
        assert app.paints == painted
        source.rows = (broken("gopls"),)
        await until(app, lambda text: "gopls" in text)
    asked = len(source.asked)
    await anyio.sleep(0.05)
    assert len(source.asked) == asked


async def test_a_service_that_cannot_be_reached_is_told_and_comes_back() -> None:
    source = FakeSource(active("basedpyright"))
    source.failure = Unavailable(Code.OVERLOADED, "the daemon takes no connection")
    app = PanelApp(source, NEVER)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(app, lambda text: "LSP unavailable: the daemon takes no connection" in text)
        source.failure = None
        await pilot.press("ctrl+r")
        text = await until(app, lambda text: "basedpyright" in text)
    assert "unavailable:" not in text


async def test_closing_does_not_wait_for_a_daemon_that_hangs() -> None:
    release = threading.Event()

    class Hanging(FakeSource):
        def snapshot(self) -> tuple[Snapshot, bool]:
            release.wait()
            return super().snapshot()

    app = PanelApp(Hanging(), NEVER)
    try:
        async with app.run_test(size=(100, 30)) as pilot:
            await until(app, lambda text: "loading" in text)
            await pilot.press("q")
        assert not app.is_running
    finally:
        release.set()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path) as made:
        for name in ("HOME", "PILOTFISH_HOME"):
            monkeypatch.setenv(name, made.environment[name])
        yield made


async def test_with_a_real_daemon_a_server_is_seen_and_restarted(home: DaemonHome) -> None:
    home.write("a.x", "bad\n")
    with await anyio.to_thread.run_sync(home.link) as link:
        await anyio.to_thread.run_sync(link.request, "touched", {"paths": ["a.x"], "kind": "edit"})
        app = PanelApp(DaemonSource(str(home.root), home.terms(start=False)), NEVER)
        async with app.run_test(size=(100, 40)) as pilot:
            await until(app, lambda text: "toy" in text and "active" in text)
            first = pid(app)
            await pilot.press("d")
            await until(app, lambda text: "a.x: 1 error" in text)
            await pilot.press("f")
            await until(app, lambda text: "a.x: fresh" in text and "bad word" in text)
            await pilot.press("escape", "R", "y")
            await until(app, lambda text: "toy restarted" in text)
            await until(app, lambda text: pid(app) not in {None, first})
            assert not alive(first or 0)
            await pilot.press("S", "y")
            await until(app, lambda text: pid(app) is None)


def test_on_a_real_terminal_it_opens_and_q_closes_it(home: DaemonHome) -> None:
    ours, theirs = pty.openpty()
    variables = {**home.environment, "TERM": "xterm-256color"}
    argv = [sys.executable, "-m", "pilotfish", "panel"]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=home.root, env=variables) as panel:
        os.close(theirs)
        said = b""
        while b"toy" not in said:
            said += os.read(ours, 65536)
        os.write(ours, b"q")
        while True:
            try:
                assert os.read(ours, 65536)
            except OSError:
                break
        assert panel.wait() == 0
    os.close(ours)
    assert home.processes() == {}


def pid(app: PanelApp) -> int | None:
    rows = app.panel.snapshot.rows if app.panel.snapshot else ()
    return next((one.pid for row in rows if row.server_id == "toy" for one in row.instances), None)
