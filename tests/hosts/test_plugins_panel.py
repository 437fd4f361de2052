"""`/lsp` in Pi: what the panel shows, its keys, and that nothing of it is left when it is closed."""

import itertools
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.protocol.frames import frame
from support.daemon.homes import DaemonHome, daemon_home, fake_server
from support.hosts.daemon_trouble import a_hung_daemon, impostor
from support.hosts.plugins import Driven, driven

pytestmark = [pytest.mark.host("node"), pytest.mark.proves("TUI-1")]

UP, DOWN, ENTER, ESCAPE, CTRL_R, BACKSPACE = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x12", "\x7f"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonHome]:
    with daemon_home(tmp_path_factory.mktemp("user")) as made:
        broken = {"command": ["false"], "extensions": [".y"]}
        off = {"command": ["true"], "extensions": [".漢字"], "disabled": True}
        made.configure(lsp={"toy": fake_server("answering"), "wrecked": broken, "off": off})
        made.write("a.x", "bad\n")
        made.write("b.y", "bad\n")
        with made.link("pi") as link:
            link.request("touched", {"paths": ["a.x", "b.y"], "kind": "edit"})
        yield made


@pytest.fixture(scope="module")
def driver(home: DaemonHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    with driven("pi", home, tmp_path_factory.mktemp("pi")) as made:
        yield made


@pytest.fixture
def pi(driver: Driven) -> Iterator[Driven]:
    """Pi with the panel open, and the servers seen."""
    driver("fire", event="session_start", data={})
    driver("fire", event="tool_result", data=_touched("a.x"))
    assert driver("command", name="lsp") == "open"
    until(driver, "1 error")
    yield driver
    driver("fire", event="session_shutdown", data={})


def _touched(path: str) -> dict[str, object]:
    return {"toolName": "edit", "toolCallId": "1", "input": {"path": path}, "content": [], "isError": False}


def until(pi: Driven, text: str) -> str:
    """The panel, once it shows a text."""
    while text not in (shown := screen(pi)):
        pass
    return shown


def screen(pi: Driven, width: int = 82) -> str:
    return "\n".join(pi("render", width=width))


def press(pi: Driven, *keys: str) -> str:
    for key in keys:
        pi("key", data=key)
    return screen(pi)


def selected(pi: Driven) -> str:
    """The id in the row that is marked."""
    (line,) = (line for line in screen(pi).splitlines() if "› " in line)
    return line.split()[3]


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line)


def test_the_panel_shows_totals_and_what_is_in_trouble_first(pi: Driven) -> None:
    shown = screen(pi)
    rows = shown.splitlines()
    assert "Language servers" in rows[0]
    assert "1 connected" in rows[1]
    assert "1 broken" in rows[1]
    assert "wrecked" in rows[3]
    assert "toy" in rows[4]
    assert "1 error" in rows[4]


@pytest.mark.parametrize("keys", [(DOWN, UP), ("j", "k"), ("\x1bOB", "\x1bOA"), ("\x1b[1;1:1B", "\x1b[1;1:1A")])
def test_the_selection_moves_and_stays_inside(pi: Driven, keys: tuple[str, str]) -> None:
    down, up = keys
    assert selected(pi) == "wrecked"
    press(pi, down)
    assert selected(pi) == "toy"
    press(pi, up, up)
    assert selected(pi) == "wrecked"
    press(pi, "G")
    last = selected(pi)
    press(pi, down)
    assert selected(pi) == last != "toy"
    press(pi, "g")
    assert selected(pi) == "wrecked"


def test_enter_shows_details_and_hides_them_again(pi: Driven) -> None:
    shown = press(pi, ENTER)
    assert "broken:" in shown
    assert "next attempt" in shown
    assert "runs in:" in press(pi, "j", ENTER)
    assert "broken:" not in press(pi, "k", ENTER)


def test_a_filter_narrows_the_rows_and_esc_leaves_it_first(pi: Driven) -> None:
    shown = press(pi, "/", *"toq")
    assert "no rows match filter" in shown
    shown = press(pi, BACKSPACE, "y")
    assert "/toy" in shown
    assert "wrecked" not in shown
    assert "toy" in press(pi, ENTER)
    assert "wrecked" in press(pi, "/", ESCAPE)
    assert "wrecked" not in press(pi, "/", "\x1b[200~connected\x1b[201~", ENTER)
    assert pi("seen")["open"]


def test_keys_of_the_panel_are_letters_in_a_filter(pi: Driven) -> None:
    assert "/qjkgGr?" in press(pi, "/", *"qjkgGr?")
    assert pi("seen")["open"]


def test_help_is_shown_and_hidden(pi: Driven) -> None:
    assert "leave the filter" in press(pi, "?")
    assert "leave the filter" not in press(pi, "?")


@pytest.mark.parametrize("key", ["r", CTRL_R, "\x1b[114;5u", "\x1b[27;5;114~"])
def test_a_refresh_shows_what_has_changed(home: DaemonHome, pi: Driven, key: str) -> None:
    home.write("a.x", "good\n")
    pi("fire", event="tool_result", data=_touched("a.x"))
    press(pi, key)
    while "1 error" in screen(pi):
        pass
    home.write("a.x", "bad\n")


def test_an_open_panel_looks_again_by_itself(home: DaemonHome, pi: Driven) -> None:
    home.write("a.x", "good\n")
    pi("fire", event="tool_result", data=_touched("a.x"))
    while "1 error" in screen(pi):
        pass
    home.write("a.x", "bad\n")


@pytest.mark.parametrize("key", ["q", ESCAPE, "\x1b[27u", "\x1b[113u"])
def test_closing_leaves_no_timer_behind(pi: Driven, key: str) -> None:
    assert "Timeout" in pi("resources")
    pi("key", data=key)
    assert "Timeout" not in pi("resources")
    assert not pi("seen")["open"]


def test_closing_ends_a_look_that_is_under_way(home: DaemonHome, pi: Driven) -> None:
    with a_hung_daemon(home):
        press(pi, "r", "q")
        assert "Timeout" not in pi("resources")


def test_a_key_that_is_let_go_is_no_key(pi: Driven) -> None:
    for data in ("\x1b[113;1:3u", "\x1b[1;1:3B", "\x1b[15~", "\x1b[<35;20;5m"):
        pi("key", data=data)
    assert pi("seen")["open"]
    assert selected(pi) == "wrecked"


def test_the_end_of_the_session_closes_the_panel(pi: Driven) -> None:
    pi("fire", event="session_shutdown", data={"reason": "quit"})
    assert not pi("seen")["open"]
    assert "Timeout" not in pi("resources")


def test_every_line_has_exactly_the_width_and_none_is_too_many(pi: Driven) -> None:
    assert "漢字" in press(pi, "?", "/", *"off", ENTER, "G", ENTER)
    for width, rows in itertools.product((6, 20, 41, 82, 200), (5, 12, 24, 60)):
        lines: list[str] = pi("render", width=width, rows=rows)
        assert {columns(line) for line in lines} == {width}
        assert len(lines) <= max(rows * 8 // 10, 12)


def test_without_a_panel_there_is_a_summary(home: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", home, tmp_path) as pi:
        pi("fire", event="tool_result", data=_touched("a.x"))
        assert pi("command", name="lsp", rpc=True) == "ended"
        (told,) = pi("seen")["notices"]
        assert pi("command", name="lsp", hasUI=False) == "ended"
        printed = pi.leave()
    assert printed == told + "\n"
    first, *lines = told.splitlines()
    assert first.startswith("Language servers: ")
    assert lines[0].startswith("  wrecked: broken, ")
    assert lines[1] == "  toy: connected, 1 error"


def test_no_servers_at_all_are_shown_as_that(home: DaemonHome, tmp_path: Path) -> None:
    home = DaemonHome(home.root, {**home.environment, "PILOTFISH_HOME": str(tmp_path / "other")})
    answers = [frame(b'{"jsonrpc":"2.0","id":%d,"result":{"rows":[],"totals":{}}}' % number) for number in (1, 2, 3)]
    with impostor(home, answers), driven("pi", home, tmp_path) as pi:
        assert pi("command", name="lsp", rpc=True) == "ended"
        assert pi("seen")["notices"] == ["Language servers: no servers configured"]
        pi("command", name="lsp")
        until(pi, "no servers configured")


def test_without_a_daemon_the_panel_and_the_summary_say_so(home: DaemonHome, tmp_path: Path) -> None:
    home = DaemonHome(home.root, {**home.environment, "PILOTFISH_HOME": str(tmp_path / "nothing")})
    with driven("pi", home, tmp_path, command=["/nonexistent/pilotfish"]) as pi:
        assert pi("command", name="lsp", rpc=True) == "ended"
        assert pi("seen")["notices"][0].startswith("No daemon: pilotfish cannot be run")
        pi("command", name="lsp")
        until(pi, "The daemon cannot be asked: pilotfish cannot be run")
