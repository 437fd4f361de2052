"""`pilotfish status` as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.api.status import ProcessRow
from pilotfish.surfaces.cli.project import only_project
from pilotfish.surfaces.cli.terminal.status_text import alive_facts, status_lines
from pilotfish.surfaces.cli.terminal.table import columns, duration, latency, memory
from support.services.snapshots import active, broken, disabled, idle, snapshot, starting, unavailable

pytestmark = pytest.mark.proves("TUI-2")

ALL = snapshot(
    broken("gopls"),
    starting("rust-analyzer"),
    active("basedpyright"),
    idle("clangd"),
    unavailable("zls"),
    unavailable("ada"),
    disabled("ty"),
    warnings=("lsp.json:3:5: lsp.pyrihgt: unknown key",),
)

TEXT = """\
Workspace /home/you/project (trusted)
7 servers: 1 broken, 1 starting, 1 active, 1 idle, 2 unavailable, 1 disabled

SERVER         STATE     PID   MEMORY   UP     LATENCY  ROOTS
basedpyright   active    4242  164 MiB  3 min  12 ms    .
clangd         idle
gopls          broken
  gopls exited with code 2; tried again in 20 s
rust-analyzer  starting
ty             disabled

ada: LSP server "zls" is not available. Install it with: brew install zls
zls: LSP server "zls" is not available. Install it with: brew install zls
warning: lsp.json:3:5: lsp.pyrihgt: unknown key
"""


def test_every_server_is_there_by_id_with_its_state() -> None:
    assert "\n".join(status_lines(ALL, daemon=True)) + "\n" == TEXT


def test_the_memory_of_other_projects_of_worktrees_that_take_turns_and_what_is_at_rest_are_listed() -> None:
    rows = (
        ProcessRow(server_id="ty", roots=("/home/you/one", "/home/you/two"), memory_mib=300.0),
        ProcessRow(server_id="gopls", roots=("/home/you/other",), rested="memory budget"),
    )
    lines = list(status_lines(replace(ALL, processes=rows, memory_limit_mib=2048.0), daemon=True))
    assert lines[-5:-1] == [
        "",
        "Memory of all projects: 300 MiB of at most 2.0 GiB",
        "  300 MiB  ty     /home/you/one, /home/you/two (2 worktrees take turns)",
        "  –        gopls  /home/you/other (at rest: memory budget)",
    ]


def test_a_root_of_several_instances_is_named_once() -> None:
    row = active("basedpyright")
    (one,) = row.instances
    inner = replace(one, root=f"{one.root}/packages/a")
    shown = alive_facts(replace(row, instances=(one, one, inner)), one.root)
    assert shown is not None
    assert shown[4] == ". (2 instances), packages/a"


def test_of_many_unavailable_servers_only_the_names_are_listed() -> None:
    lines = list(status_lines(snapshot(*(unavailable(f"s{number:02}") for number in range(11))), daemon=True))
    assert lines[-3:] == [
        "unavailable: not installed, or not allowed to run (11):",
        "  s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10",
        "To install one: pilotfish servers NAME",
    ]


def test_a_project_sees_its_own_servers_and_what_runs_or_is_configured() -> None:
    shown = only_project(ALL, {"clangd", "zls"})
    assert [row.server_id for row in shown.rows] == [row.server_id for row in ALL.rows if row.server_id != "ada"]
    assert (shown.totals.configured, shown.totals.unavailable) == (6, 1)


@pytest.mark.proves("CFG-3")
def test_lsp_false_is_one_line() -> None:
    assert list(status_lines(snapshot(disabled="LSP disabled by configuration"), daemon=True)) == [
        "LSP disabled by configuration"
    ]


@pytest.mark.proves("T32")
@given(st.text(max_size=60), st.integers(20, 200))
def test_no_line_is_wider_than_the_terminal_whatever_a_server_says(said: str, width: int) -> None:
    shown = snapshot(broken("gopls", said), unavailable("zls", said), active("ruff"), warnings=(said,))
    lines = list(status_lines(shown, daemon=False, width=width))
    assert max(map(columns, lines)) <= width
    assert not [character for line in lines for character in line if character < " " or character in "\x7f\x9b\u202e"]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        pytest.param(memory(None), "–", id="memory unknown"),
        pytest.param(memory(1023.4), "1023 MiB", id="MiB"),
        pytest.param(memory(1536), "1.5 GiB", id="GiB"),
        pytest.param(duration(59_000), "59 s", id="seconds"),
        pytest.param(duration(61_000), "1 min", id="minutes"),
        pytest.param(duration(47 * 3_600_000), "47 h", id="hours"),
        pytest.param(duration(49 * 3_600_000), "2 d", id="days"),
        pytest.param(latency(999), "999 ms", id="milliseconds"),
        pytest.param(latency(1_250), "1.2 s", id="tenths"),
    ],
)
def test_quantities_are_said_in_their_unit(shown: str, text: str) -> None:
    assert shown == text
