"""`pilotfish panel` on a terminal: `state` and `view` in a Textual application, which adds a timer and threads.

It reads every `REFRESH_SECONDS` and paints only what has changed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar, assert_never

import anyio.to_thread
from msgspec.structs import replace
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from pilotfish.api.status import Snapshot
from pilotfish.errors import Failure
from pilotfish_panel.source import DaemonSource
from pilotfish_panel.state import Panel, PanelEffect, pressed
from pilotfish_panel.view import PanelLine, Style, lines_of

T = TypeVar("T")

REFRESH_SECONDS = 2.0

FRAME = 4
"""Columns of the frame and the blanks beside it."""

STYLES: dict[Style, str] = {
    "plain": "",
    "title": "bold",
    "dim": "dim",
    "selected": "reverse",
    "broken": "bold red",
    "starting": "yellow",
    "active": "green",
    "idle": "",
    "warning": "yellow",
    "question": "bold",
}


class PanelApp(App[None]):
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    #panel { border: round $primary; padding: 0 1; width: 1fr; height: 1fr; }
    """

    def __init__(self, source: DaemonSource, refresh_seconds: float = REFRESH_SECONDS) -> None:
        super().__init__()
        self.panel = Panel()
        self.paints = 0
        """How often the screen was painted."""
        self._source = source
        self._refresh_seconds = refresh_seconds
        self._reading = False
        self._shown: tuple[PanelLine, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="panel")

    def on_mount(self) -> None:
        self._paint()
        self._read()
        self.set_interval(self._refresh_seconds, self._read)

    def on_resize(self, _event: events.Resize) -> None:
        self._paint()

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.panel, effect = pressed(self.panel, event.key, event.character)
        self._paint()
        if effect is not None:
            self._do(effect)

    def _do(self, effect: PanelEffect) -> None:
        source, server = self._source, effect.server
        match effect.kind:
            case "close":
                self.exit()
            case "refresh":
                self._read()
            case "read-details":
                self._in_thread(partial(source.details, server), lambda found: self._show(details={server: found}))
            case "read-activity":
                self._in_thread(source.activity, lambda found: self._show(activity=found))
            case "read-log":
                self._in_thread(partial(source.log, server), lambda found: self._show(log=found))
            case "restart":
                self._in_thread(partial(source.restart, server), self._done)
            case "stop":
                self._in_thread(partial(source.stop, server), self._done)
            case _:
                assert_never(effect.kind)

    def _read(self) -> None:
        if self._reading:
            # A slow daemon is not asked again before it has answered.
            return
        self._reading = True
        self._in_thread(self._source.snapshot, self._have_read)
        if self.panel.view == "log" and self.panel.selected is not None:
            self._do(PanelEffect("read-log", self.panel.selected))
        elif self.panel.view != "servers":
            self._do(PanelEffect("read-activity"))
        elif self.panel.expanded is not None:
            self._do(PanelEffect("read-details", self.panel.expanded))

    def _have_read(self, found: tuple[Snapshot, bool]) -> None:
        """The selection stays with its server."""
        self._reading = False
        self._show(snapshot=found[0], daemon=found[1], error=None)

    def _done(self, notice: str) -> None:
        self._show(notice=notice)
        self._read()

    def _in_thread(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do blocking work in a thread and call `then` with its result; closing the panel does not wait for it."""

        async def run() -> None:
            try:
                result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            except Failure as failure:
                self._reading = False
                self._show(error=failure.message)
            else:
                then(result)

        self.run_worker(run())

    def _show(self, **changes: Any) -> None:
        self.panel = replace(self.panel, **changes)
        self._paint()

    def _paint(self) -> None:
        # The frame is as large as the terminal.
        lines = lines_of(self.panel, max(1, self.size.width - FRAME), max(1, self.size.height - 2))
        if lines == self._shown:
            return
        self._shown = lines
        self.paints += 1
        text = Text("\n").join(Text(line.text, STYLES[line.style], no_wrap=True) for line in lines)
        self.query_one("#panel", Static).update(text)
