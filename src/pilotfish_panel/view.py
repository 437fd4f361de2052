"""The panel as lines, each exactly as wide as the space for it. Pure.

Everything that comes from a server or a file is sanitised here (T32).
"""

import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from pilotfish.api.status import (
    Activity,
    FeedbackShown,
    Instance,
    InstanceDetails,
    ServerRow,
    Snapshot,
)
from pilotfish.counting import counted
from pilotfish.sanitise import sanitised
from pilotfish.service.status.snapshot import state_of
from pilotfish.surfaces.cli.terminal.status_text import WORDS, alive_facts, relative, totals_line, trouble
from pilotfish.surfaces.cli.terminal.table import columns, cut, duration, latency, memory
from pilotfish_panel.state import Panel, selected, visible

Style = Literal["plain", "title", "dim", "selected", "broken", "starting", "active", "idle", "warning", "question"]

MARKS = {"broken": "✗", "spawning": "◌", "connected": "●", "idle": "○", "unavailable": "·", "disabled": "–"}
"""The mark says the same as the colour: a terminal may have no colours."""

STATE_STYLES: dict[str, Style] = {"broken": "broken", "spawning": "starting", "connected": "active", "idle": "idle"}

NARROW = 60
"""Columns; below that, a row has only its name and state."""

SHOWN_STDERR = 5
SHOWN_EXCHANGES = 5
SHOWN_DOCUMENTS = 5
SHOWN_FILES = 5

MAX_TEXT = 500

HELP = (
    "↑/↓ j/k    move",
    "g/G        first, last",
    "Enter      details",
    "d f        diagnostics, feedback",
    "l          its log",
    "/          filter",
    "r Ctrl+R   refresh",
    "R          restart it",
    "S          stop it",
    "Esc        back one level",
    "q          close",
    "● active   ◌ starting",
    "○ idle     ✗ broken",
    "· unavailable   – disabled",
)

HELP_COLUMN = 36
"""Columns of the first of two columns of help."""

KEYS_LINE = "Enter details  d diagnostics  f feedback  l log  / filter  ? help  q close"
PAGE_KEYS_LINE = "↑↓ scroll  Esc back  ? help  q close"
SHORT_KEYS_LINE = "Enter details  ? help  q close"


class PanelLine(Struct, frozen=True):
    text: str
    style: Style = "plain"


def lines_of(panel: Panel, width: int, height: int) -> tuple[PanelLine, ...]:
    """The whole panel: `height` lines, each exactly `width` columns, the selected row among them."""
    head, foot = (
        [PanelLine(part, line.style) for line in lines for part in _page_lines(line.text, width)]
        for lines in (_head(panel), _foot(panel, width))
    )
    room = max(1, height - len(head) - len(foot))
    if panel.view == "servers":
        # As many lines as fit, around the selected one.
        lines = list(_body(panel, width))
        place = next((number for number, (_, chosen) in enumerate(lines) if chosen), 0)
        start = min(max(0, place - room // 2), max(0, len(lines) - room))
        body = [line for line, _ in lines[start : start + room]]
    else:
        page = [PanelLine(part, _page_style(text)) for text in _page(panel) for part in _page_lines(text, width)]
        start = min(panel.scroll, max(0, len(page) - room))
        body = page[start : start + room]
    body += [PanelLine("")] * (room - len(body))
    fitted = [PanelLine(cut(line.text, width), line.style) for line in (*head, *body, *foot)[: max(height, 1)]]
    return tuple(PanelLine(line.text + " " * (width - columns(line.text)), line.style) for line in fitted)


def _page(panel: Panel) -> Iterator[str]:
    if panel.view == "log":
        yield from ("loading …",) if panel.log is None else log_lines(panel.log)
    elif panel.activity is None:
        yield "loading …" if panel.error is None else ""
    else:
        yield from (diagnostics_lines if panel.view == "diagnostics" else feedback_lines)(panel.activity)


def _page_lines(text: str, width: int) -> Sequence[str]:
    stripped = text.lstrip(" ")
    return _wrapped(stripped, width, " " * (len(text) - len(stripped))) or [""]


def _page_style(text: str) -> Style:
    words = text.strip()
    if words.startswith(("ERROR", "- ")) or ": error: " in words:
        return "broken"
    if words.startswith("+ "):
        return "active"
    return "warning" if ": warning: " in words else "plain"


def _head(panel: Panel) -> Iterator[PanelLine]:
    whose = f" of {panel.selected}" if panel.view == "log" else ""
    yield PanelLine(TITLES[panel.view] + whose, "title")
    if panel.snapshot is not None:
        yield PanelLine(sanitised(panel.snapshot.root, MAX_TEXT), "dim")
        yield PanelLine(panel.snapshot.disabled or totals_line(panel.snapshot.totals), "plain")
        for warning in panel.snapshot.warnings[:1]:
            more = len(panel.snapshot.warnings) - 1
            tail = f" (and {more} more: pilotfish doctor)" if more else ""
            yield PanelLine(f"! {sanitised(warning, MAX_TEXT)}{tail}", "warning")
        if not panel.daemon:
            yield PanelLine("No daemon is running: servers start on first use.", "dim")
    if panel.error is not None:
        yield PanelLine(f"LSP unavailable: {sanitised(panel.error, MAX_TEXT)}", "broken")
    if panel.typing or panel.query:
        yield PanelLine(f"/{panel.query}{'▏' if panel.typing else ''}", "question" if panel.typing else "plain")
    yield PanelLine("")


def _body(panel: Panel, width: int) -> Iterator[tuple[PanelLine, bool]]:
    """Lines, and whether each belongs to the selected row."""
    rows, chosen = visible(panel), selected(panel)
    if panel.snapshot is None:
        yield PanelLine("loading …" if panel.error is None else "", "dim"), False
    elif not panel.snapshot.rows:
        yield PanelLine("no servers configured", "dim"), False
    elif not rows:
        yield PanelLine("no rows match filter", "dim"), False
    names = max((columns(row.server_id) for row in rows), default=0)
    for row in rows:
        is_chosen = chosen is not None and row.server_id == chosen.server_id
        style = "selected" if is_chosen else STATE_STYLES.get(state_of(row), "dim")
        first, *more = _row_lines(row, panel, names, width, chosen=is_chosen)
        yield PanelLine(first, style), is_chosen
        yield from ((PanelLine(part, style), False) for part in more)
        if panel.expanded == row.server_id and panel.snapshot is not None:
            for text in _details(row, panel.details.get(row.server_id), panel.snapshot):
                indent = " " * (4 + len(text) - len(text.lstrip(" ")))
                yield from ((PanelLine(part, "dim"), False) for part in _wrapped(text.strip(), width, indent))


def _row_lines(row: ServerRow, panel: Panel, names: int, width: int, *, chosen: bool) -> Sequence[str]:
    """One line, and more where what is wrong does not fit into it."""
    state = state_of(row)
    name = row.server_id + " " * (min(names, 24) - columns(row.server_id))
    sign = "▾" if panel.expanded == row.server_id else "▸" if chosen else " "
    start = f"{sign} {MARKS[state]} {name}  {WORDS[state]:<11}"
    if width < NARROW:
        return [start]
    now = panel.snapshot.generated_at if panel.snapshot else 0
    facts, indent = trouble(row, now) or _facts(row, panel), " " * (columns(start) + 2)
    first, *more = textwrap.wrap(facts, max(20, width - len(indent)), break_on_hyphens=False) or [""]
    return [f"{start}  {first}", *(f"{indent}{part}" for part in more)]


def _facts(row: ServerRow, panel: Panel) -> str:
    alive = alive_facts(row, panel.snapshot.root if panel.snapshot else "")
    if alive is None:
        return sanitised(row.unavailable or "", MAX_TEXT) if state_of(row) == "unavailable" else ""
    counts = row.diagnostics
    found = [f"{counts.error}E {counts.warning}W"] if counts else []
    _, used, _, took, roots = alive
    return "  ".join((used, took, *found, roots))


def _details(row: ServerRow, details: Sequence[InstanceDetails] | None, snapshot: Snapshot) -> Iterator[str]:
    """What is known of one server: from the snapshot, and its details once they have been read."""
    yield f"source {row.source} · {' '.join(row.extensions[:8])}"
    if row.unavailable:
        yield from (sanitised(line, MAX_TEXT) for line in row.unavailable.splitlines())
    if row.broken:
        yield f"{counted(row.broken.attempts, 'failed attempt')}: {trouble(row, snapshot.generated_at)}"
    known = {one.root: one for one in details or ()}
    for instance in row.instances:
        yield from _instance(instance, known.get(instance.root), snapshot)
    for side in row.sidecars:
        runs = f"runs as process {side.pid}" if side.pid is not None else f"does not run: {side.reason}"
        yield sanitised(f"beside it: {runs}", MAX_TEXT)
    if not row.instances and not row.unavailable:
        yield "it starts on first use"


def _instance(instance: Instance, details: InstanceDetails | None, snapshot: Snapshot) -> Iterator[str]:
    yield f"root {relative(instance.root, snapshot.root)} · {instance.state}"
    if instance.pid is not None:
        facts = (f"pid {instance.pid}", memory(instance.memory_mib), f"up {duration(instance.uptime_ms)}")
        yield "  " + " · ".join((*facts, f"last answer {latency(instance.last_latency_ms)}"))
    used = (counted(instance.sessions, "session"), counted(instance.restarts, "restart"))
    yield "  " + " · ".join((*used, counted(instance.documents, "open document")))
    if instance.shared_with:
        yield f"  takes turns with {sanitised(', '.join(instance.shared_with), MAX_TEXT)}"
    if instance.rested is not None:
        yield f"  at rest: {instance.rested}"
    if instance.busy:
        yield f"  working on: {sanitised(', '.join(instance.busy), MAX_TEXT)}"
    if instance.watching is not None:
        why = f": {sanitised(instance.watching.reason, MAX_TEXT)}" if instance.watching.reason else ""
        yield f"  watching {instance.watching.state}{why}"
    if instance.last_error is not None:
        yield f"  last error: {sanitised(instance.last_error, MAX_TEXT)}"
    if details is not None:
        yield from _closer(details)


def _closer(details: InstanceDetails) -> Iterator[str]:
    if details.program:
        yield f"  {sanitised(details.program, MAX_TEXT)}"
    for file in details.documents[:SHOWN_DOCUMENTS]:
        yield f"  open: {sanitised(file, MAX_TEXT)}"
    for file, count in list(details.diagnostics.items())[:SHOWN_FILES]:
        yield f"  {counted(count, 'diagnostic')}: {sanitised(file, MAX_TEXT)}"
    for exchange in details.exchanges[-SHOWN_EXCHANGES:]:
        yield f"  {sanitised(f'{exchange.method}: {exchange.end} after {latency(exchange.duration_ms)}', MAX_TEXT)}"
    for line in details.stderr[-SHOWN_STDERR:]:
        yield f"  stderr: {sanitised(line, MAX_TEXT)}"


def _foot(panel: Panel, width: int) -> Iterator[PanelLine]:
    yield PanelLine("")
    if panel.help:
        half = len(HELP) // 2
        pairs = zip(HELP[:half], HELP[half:], strict=True)
        wide = [f"{left:<{HELP_COLUMN}}{right}" for left, right in pairs]
        yield from (PanelLine(text, "dim") for text in (HELP if width < NARROW else wide))
    if panel.question is not None:
        yield PanelLine(f"{panel.question.kind.capitalize()} {panel.question.server}? y/N", "question")
    elif panel.notice:
        yield PanelLine(sanitised(panel.notice, MAX_TEXT), "plain")
    else:
        keys = PAGE_KEYS_LINE if panel.view != "servers" else KEYS_LINE if width >= NARROW else SHORT_KEYS_LINE
        yield PanelLine(keys, "dim")


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, max(20, width), initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


# --- The views besides the list of servers ---------------------------------------------------------------------------


TITLES = {"servers": "LSP servers", "diagnostics": "Diagnostics", "feedback": "What agents were told", "log": "Log"}


def diagnostics_lines(activity: Activity) -> Iterator[str]:
    """By file, the worst first."""
    if not activity.files:
        yield "no diagnostics in the files that servers have seen"
    for file in activity.files:
        counts = file.counts
        found = (("error", counts.error), ("warning", counts.warning), ("note", counts.info + counts.hint))
        numbers = ", ".join(counted(number, name) for name, number in found if number)
        yield f"{sanitised(file.path, MAX_TEXT)}: {numbers}{', before the last change' if file.outdated else ''}"
        for said in file.diagnostics:
            message = sanitised(said.message.replace("\n", " "), MAX_TEXT)
            yield f"  {said.line}: {said.severity}: {message} ({said.server})"
        if file.more:
            yield f"  … and {file.more} more"
    if activity.more_files:
        yield f"… and {counted(activity.more_files, 'more file')}"


def feedback_lines(activity: Activity) -> Iterator[str]:
    """The newest first: the edit, then what its agent read."""
    if not activity.feedback:
        yield "no edits yet"
    for shown in activity.feedback:
        yield from _feedback(shown)
        yield ""


def log_lines(lines: tuple[str, ...]) -> Iterator[str]:
    if not lines:
        yield "it has written nothing"
    yield from (sanitised(line, MAX_TEXT) for line in lines)


def _feedback(shown: FeedbackShown) -> Iterator[str]:
    at = time.strftime("%H:%M:%S", time.localtime(shown.at / 1000))
    files = ", ".join(sanitised(relative(path, shown.root), MAX_TEXT) for path in shown.paths)
    feedback = shown.feedback
    # What is told without an edit, such as before a stop, is not new.
    facts = f"{feedback.state}, {feedback.introduced} new, {feedback.fixed} fixed" if files else "told"
    about = " ".join(filter(None, (at, shown.host or "a client", files)))
    yield f"{about}: {facts}, {latency(feedback.duration_ms)}"
    for change in shown.changes:
        yield f"  {sanitised(change.path, MAX_TEXT)}:{change.line}"
        yield from (f"  - {line}" for line in change.old)
        yield from (f"  + {line}" for line in change.new)
        if change.more:
            yield f"  … and {counted(change.more, 'more line')}"
    why = "this edit caused no error" if feedback.state == "fresh" else feedback.reason or "there was no verdict"
    for line in (feedback.text or f"nothing was told: {why}").splitlines():
        yield f"  {sanitised(line, MAX_TEXT)}"
