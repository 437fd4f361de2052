"""The state of the panel, and what a key does to it. Pure: effects are returned, not carried out.

Keys: `↑` `↓` `j` `k` move, `g` `G` first and last, `Enter` details, `d` diagnostics, `f` what agents were told, `l` the
log of the selected server, `/` filter, `Esc` goes back one level, `r` and `Ctrl+R` refresh, `?` help, `R` restart and
`S` stop after a question, `q` closes.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.status import Activity, InstanceDetails, ServerRow, Snapshot
from pilotfish.service.status.snapshot import state_of
from pilotfish.surfaces.cli.terminal.status_text import WORDS

MAX_QUERY = 100
"""Characters of a filter."""

PAGE = 10
"""Rows that `PageUp` and `PageDown` move."""


class PanelEffect(Struct, frozen=True):
    """What is to be done besides drawing; some of it is about one server."""

    kind: Literal["close", "refresh", "read-details", "read-activity", "read-log", "restart", "stop"]
    server: str = ""


ViewName = Literal["servers", "diagnostics", "feedback", "log"]


class Panel(Struct, frozen=True):
    snapshot: Snapshot | None = None
    """None until the first has been read."""
    error: str | None = None
    """Why the last read failed; an older snapshot may still be shown."""
    daemon: bool = True
    selected: str | None = None
    expanded: str | None = None
    details: Mapping[str, tuple[InstanceDetails, ...]] = field(default_factory=dict[str, tuple[InstanceDetails, ...]])
    view: ViewName = "servers"
    scroll: int = 0
    """Lines that are above the screen, in the views besides the servers."""
    activity: Activity | None = None
    """None until it has been read."""
    log: tuple[str, ...] | None = None
    query: str = ""
    typing: bool = False
    """Keys go to the filter."""
    help: bool = False
    question: PanelEffect | None = None
    """Waits for confirmation."""
    notice: str = ""
    """The outcome of the last command."""


def visible(panel: Panel) -> tuple[ServerRow, ...]:
    rows = panel.snapshot.rows if panel.snapshot else ()

    def is_found(row: ServerRow) -> bool:
        words = (row.server_id, WORDS[state_of(row)], *row.extensions, *row.configured_roots)
        return panel.query.casefold() in "\n".join(words).casefold()

    return tuple(filter(is_found, rows)) if panel.query else rows


def selected(panel: Panel) -> ServerRow | None:
    rows = visible(panel)
    return next((row for row in rows if row.server_id == panel.selected), rows[0] if rows else None)


def pressed(panel: Panel, key: str, character: str | None = None) -> tuple[Panel, PanelEffect | None]:
    """The panel after a key, and what to do. `key` is its name, `character` what it types."""
    if (asked := panel.question) is not None:
        # Anything but `y` means no.
        if key not in {"y", "Y"}:
            return replace(panel, question=None), None
        doing = "restarting" if asked.kind == "restart" else "stopping"
        return replace(panel, question=None, notice=f"{doing} {asked.server} …"), asked
    if panel.typing:
        return _typed(panel, key, character)
    keys = KEYS if panel.view == "servers" else {**KEYS, **PAGE_KEYS}
    act = keys.get(key) or keys.get(character or "")
    return act(panel) if act else (panel, None)


def _typed(panel: Panel, key: str, character: str | None) -> tuple[Panel, PanelEffect | None]:
    match key:
        case "escape":
            return replace(panel, typing=False, query=""), None
        case "enter":
            return replace(panel, typing=False), None
        case "backspace":
            return replace(panel, query=panel.query[:-1]), None
        case "up" | "down" | "ctrl+r":
            return KEYS[key](panel)
        case _:
            added = character if character and character.isprintable() else ""
            return replace(panel, query=(panel.query + added)[:MAX_QUERY]), None


def _moved(distance: int) -> "Act":
    def act(panel: Panel) -> tuple[Panel, PanelEffect | None]:
        rows, now = visible(panel), selected(panel)
        if now is None:
            return panel, None
        place = min(max(rows.index(now) + distance, 0), len(rows) - 1)
        return replace(panel, selected=rows[place].server_id), None

    return act


def _toggled(panel: Panel) -> tuple[Panel, PanelEffect | None]:
    row = selected(panel)
    if row is None:
        return panel, None
    if panel.expanded == row.server_id:
        return replace(panel, expanded=None), None
    return replace(panel, selected=row.server_id, expanded=row.server_id), PanelEffect("read-details", row.server_id)


def _escaped(panel: Panel) -> tuple[Panel, PanelEffect | None]:
    if panel.help:
        return replace(panel, help=False), None
    if panel.view != "servers":
        return replace(panel, view="servers", scroll=0), None
    if panel.query:
        return replace(panel, query=""), None
    return (replace(panel, expanded=None), None) if panel.expanded else (panel, PanelEffect("close"))


def _shown(view: Literal["diagnostics", "feedback"]) -> "Act":
    return lambda panel: (replace(panel, view=view, scroll=0, notice=""), PanelEffect("read-activity"))


def _log(panel: Panel) -> tuple[Panel, PanelEffect | None]:
    row = selected(panel)
    if row is None:
        return panel, None
    shown = replace(panel, view="log", scroll=0, log=None, selected=row.server_id, notice="")
    return shown, PanelEffect("read-log", row.server_id)


def _scrolled(distance: int) -> "Act":
    # The screen is drawn with as much of it as there are lines.
    return lambda panel: (replace(panel, scroll=max(0, panel.scroll + distance)), None)


def _asked(kind: Literal["restart", "stop"]) -> "Act":
    def act(panel: Panel) -> tuple[Panel, PanelEffect | None]:
        row = selected(panel)
        if row is None or not row.instances:
            return replace(panel, notice="Not running here; it starts on first use." if row else ""), None
        return replace(panel, selected=row.server_id, question=PanelEffect(kind, row.server_id), notice=""), None

    return act


Act = Callable[[Panel], tuple[Panel, PanelEffect | None]]

FAR = 1_000_000
"""Rows: more than any list has."""

STEPS = {
    "up": -1, "k": -1, "down": 1, "j": 1, "pageup": -PAGE, "pagedown": PAGE,
    "g": -FAR, "home": -FAR, "G": FAR, "end": FAR,
}  # fmt: skip
"""Rows or lines that a key moves by."""

KEYS: Mapping[str, Act] = {
    **{key: _moved(distance) for key, distance in STEPS.items()},
    "enter": _toggled,
    "d": _shown("diagnostics"),
    "f": _shown("feedback"),
    "l": _log,
    "/": lambda panel: (replace(panel, typing=True, notice=""), None),
    "escape": _escaped,
    "q": lambda panel: (panel, PanelEffect("close")),
    "r": lambda panel: (replace(panel, notice=""), PanelEffect("refresh")),
    "ctrl+r": lambda panel: (replace(panel, notice=""), PanelEffect("refresh")),
    "?": lambda panel: (replace(panel, help=not panel.help), None),
    "R": _asked("restart"),
    "S": _asked("stop"),
}

PAGE_KEYS: Mapping[str, Act] = {
    **{key: _scrolled(distance) for key, distance in STEPS.items() if distance < FAR},
    # Where a page ends is known to the view alone; the rest is about a row, and none is shown.
    **dict.fromkeys(("G", "end", "enter", "/", "R", "S"), lambda panel: (panel, None)),
}
"""What keys do instead in the other views."""
