"""What each key does to the panel, as a table."""

from typing import Any

import pytest
from msgspec.structs import replace

from pilotfish_panel.state import (
    KEYS,
    Panel,
    PanelEffect,
    pressed,
    selected,
    visible,
)
from support.services.snapshots import active, broken, disabled, idle, snapshot

pytestmark = pytest.mark.proves("TUI-1")

SNAPSHOT = snapshot(broken("gopls"), active("basedpyright"), active("ruff"), idle("clangd"), disabled("ty"))
OPEN = Panel(SNAPSHOT)


def after(*keys: str, panel: Panel = OPEN) -> tuple[Panel, PanelEffect | None]:
    effect: PanelEffect | None = None
    for key in keys:
        panel, effect = pressed(panel, key, key if len(key) == 1 else None)
    return panel, effect


def at(panel: Panel) -> str | None:
    row = selected(panel)
    return row.server_id if row else None


@pytest.mark.parametrize(
    ("keys", "server"),
    [
        pytest.param((), "gopls", id="the first row is selected"),
        pytest.param(("j",), "basedpyright", id="j goes down"),
        pytest.param(("down", "down"), "ruff", id="down goes down"),
        pytest.param(("j", "j", "k"), "basedpyright", id="k goes up"),
        pytest.param(("down", "up"), "gopls", id="up goes up"),
        pytest.param(("k",), "gopls", id="not above the first"),
        pytest.param(("G",), "ty", id="G is the last"),
        pytest.param(("G", "j"), "ty", id="not below the last"),
        pytest.param(("G", "g"), "gopls", id="g is the first"),
    ],
)
def test_the_selection_moves(keys: tuple[str, ...], server: str) -> None:
    assert at(after(*keys)[0]) == server


@pytest.mark.parametrize(
    ("keys", "effect"),
    [
        pytest.param(("q",), PanelEffect("close"), id="q closes"),
        pytest.param(("escape",), PanelEffect("close"), id="Esc closes"),
        pytest.param(("r",), PanelEffect("refresh"), id="r refreshes"),
        pytest.param(("ctrl+r",), PanelEffect("refresh"), id="Ctrl+R refreshes"),
        pytest.param(("enter",), PanelEffect("read-details", "gopls"), id="Enter looks closer"),
        pytest.param(("enter", "enter"), None, id="Enter again closes the details"),
        pytest.param(("/", "q"), None, id="q in a filter is a letter"),
        pytest.param(("/", "x", "escape"), None, id="Esc closes the filter first"),
        pytest.param(("/", "x", "enter", "escape"), None, id="and one that was entered"),
        pytest.param(("/", "x", "escape", "escape"), PanelEffect("close"), id="and then the panel"),
        pytest.param(("enter", "escape"), None, id="Esc closes the details first"),
        pytest.param(("enter", "escape", "escape"), PanelEffect("close"), id="and then the panel, from details"),
        pytest.param(("?", "escape"), None, id="Esc closes the help first"),
        pytest.param(("R",), None, id="R only asks"),
        pytest.param(("R", "y"), PanelEffect("restart", "gopls"), id="R and yes restarts"),
        pytest.param(("S", "y"), PanelEffect("stop", "gopls"), id="S and yes stops"),
        pytest.param(("R", "n"), None, id="R and no"),
        pytest.param(("R", "enter"), None, id="Enter is no yes"),
        pytest.param(("R", "escape"), None, id="Esc is no"),
        pytest.param(("R", "q"), None, id="q is no, and closes nothing"),
        pytest.param(("d",), PanelEffect("read-activity"), id="d reads the diagnostics"),
        pytest.param(("f",), PanelEffect("read-activity"), id="f reads what was told"),
        pytest.param(("l",), PanelEffect("read-log", "gopls"), id="l reads the log"),
        pytest.param(("d", "escape"), None, id="Esc goes back to the servers"),
        pytest.param(
            ("l", "f", "escape", "escape"), PanelEffect("close"), id="and then closes, however many views were seen"
        ),
        pytest.param(("d", "?", "escape"), None, id="Esc closes the help of a view first"),
        pytest.param(("d", "R"), None, id="R does nothing there"),
        pytest.param(("z",), None, id="other keys do nothing"),
    ],
)
def test_a_key_has_its_effect(keys: tuple[str, ...], effect: PanelEffect | None) -> None:
    assert after(*keys)[1] == effect


@pytest.mark.parametrize(
    ("query", "servers"),
    [
        pytest.param("py", ["basedpyright"], id="part of an id"),
        pytest.param("BROKEN", ["gopls"], id="a state, in any case"),
        pytest.param("active", ["basedpyright", "ruff"], id="a state in the words of status"),
        pytest.param(".gopls", ["gopls"], id="an extension"),
        pytest.param("nothing like it", [], id="no row"),
    ],
)
def test_a_filter_keeps_the_rows_that_it_fits(query: str, servers: list[str]) -> None:
    panel, _ = after("/", *query)
    assert [row.server_id for row in visible(panel)] == servers


def test_backspace_takes_the_last_letter_of_the_filter() -> None:
    assert after("/", "p", "y", "backspace")[0].query == "p"


def test_the_selection_stays_with_its_server_when_the_order_changes() -> None:
    panel = after("j")[0]
    moved = replace(panel, snapshot=snapshot(active("ruff"), active("basedpyright")))
    assert at(moved) == "basedpyright"
    gone = replace(panel, snapshot=snapshot(active("ruff")))
    assert at(gone) == "ruff"


def test_a_server_that_does_not_run_is_neither_stopped_nor_restarted() -> None:
    panel, effect = after("G", "S")
    assert (panel.question, effect) == (None, None)
    assert "Not running" in panel.notice


@pytest.mark.parametrize(
    "panel", [Panel(), Panel(snapshot()), replace(OPEN, query="zzz")], ids=["loading", "none", "no match"]
)
@pytest.mark.parametrize("key", [*KEYS, "y", "x", "backspace"])
def test_every_key_is_harmless_without_rows(panel: Panel, key: str) -> None:
    _, effect = pressed(panel, key, key if len(key) == 1 else None)
    assert effect in {None, PanelEffect("close"), PanelEffect("refresh"), PanelEffect("read-activity")}


def test_nothing_but_time_changes_without_a_key() -> None:
    facts: dict[str, Any] = {"selected": "ruff", "expanded": "ruff", "query": "r", "help": True, "notice": "n"}
    panel = replace(OPEN, **facts)
    again = replace(panel, snapshot=SNAPSHOT)
    assert {name: getattr(again, name) for name in facts} == facts
