"""From several servers' readings to one answer: order, duplicates, cap, texts, and units."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.api.answers import Action, Edge, Hover, Location, Symbol
from pilotfish.api.questions import Operation, Question
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.results import FoundLocation, Reading, RequestContext, ServerResult, Spot, excerpt
from pilotfish.operations.rows import ROWS
from pilotfish.operations.selection import Backdrop, ResultSelection, resolved, selected
from pilotfish.paths import shown_path
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from support.oracles.naive_text import lines, place_from_units, units
from support.values.questions import WORKSPACE, path, raw, uri, wire, wire_range

OUTSIDE = AbsPath("/usr/lib/python3/site.py")


def reading(operation: Operation, answer: Any) -> Reading[ServerResult]:
    request = ROWS[operation].request
    assert request is not None
    assert request.read is not None
    return request.read(raw(answer), RequestContext(Question(operation=operation), uri=uri("a.py"), item=raw(None)))


def selection(
    operation: Operation, answers: dict[str, Any], query: str | None = None, cap: int = 100
) -> ResultSelection:
    readings = {server: reading(operation, answer) for server, answer in answers.items()}
    row = replace(ROWS[operation], cap=cap)
    return selected(row, Question(operation=operation, query=query), readings, WORKSPACE)


def data(operation: Operation, answers: dict[str, Any], texts: dict[str, str] | None = None, query: str = "") -> Any:
    """What surfaces see of these servers' answers; all count UTF-16 units."""
    files = {path(name): Text(text) for name, text in (texts or {}).items()}
    backdrop = Backdrop(WORKSPACE, files, dict.fromkeys(answers, Encoding.UTF16))
    return resolved(ROWS[operation], selection(operation, answers, query), backdrop)


def location(name: str, line: int = 0, start: int = 0) -> dict[str, Any]:
    return {"uri": uri(name), "range": wire_range(line, start, start + 1)}


# --- Order, duplicates, cap ---------------------------------------------------------------------------------------


@pytest.mark.proves("OPS-7")
def test_places_are_sorted_by_file_and_place_with_the_workspace_first() -> None:
    outside = {"uri": uri_of(OUTSIDE), "range": wire_range(0, 0, 1)}
    answer = [outside, location("b.py"), location("a.py", 2), location("a.py", 1, 5), location("a.py", 1, 2)]
    found = cast("tuple[Location, ...]", data(Operation.REFERENCES, {"s": answer}))
    assert [(one.path, one.line, one.character) for one in found] == [
        ("a.py", 2, 3),
        ("a.py", 2, 6),
        ("a.py", 3, 1),
        ("b.py", 1, 1),
        (OUTSIDE, 1, 1),
    ]


@pytest.mark.proves("OPS-7")
def test_what_two_servers_find_alike_is_shown_once() -> None:
    answers = {"one": [location("a.py"), location("a.py")], "two": [location("a.py"), location("b.py")]}
    assert [one.path for one in data(Operation.DEFINITION, answers)] == ["a.py", "b.py"]


@pytest.mark.proves("OPS-7", "RPC-5")
def test_servers_that_count_differently_still_find_one_place() -> None:
    text = "🐟 x = 1\n"
    row = ROWS[Operation.DEFINITION]
    readings: dict[str, Reading[ServerResult]] = {
        "bytes": Reading((FoundLocation(spots=(Spot(uri("a.py"), wire(0, 5, 6)),)),)),
        "units": Reading((FoundLocation(spots=(Spot(uri("a.py"), wire(0, 3, 4)),)),)),
    }
    chosen = selected(row, Question(operation=Operation.DEFINITION), readings, WORKSPACE)
    encodings = {"bytes": Encoding.UTF8, "units": Encoding.UTF16}
    found = resolved(row, chosen, Backdrop(WORKSPACE, {path("a.py"): Text(text)}, encodings))
    assert found == (Location(path="a.py", line=1, character=3, end_line=1, end_character=4, text="🐟 x = 1"),)


@pytest.mark.proves("OPS-7")
def test_a_cut_is_said_with_the_total_and_only_what_is_shown_is_read() -> None:
    answer = [location(f"{name}.py") for name in "dbca"]
    chosen = selection(Operation.REFERENCES, {"s": answer}, cap=2)
    assert (chosen.truncated, chosen.total) == (True, 4)
    assert chosen.paths == (path("a.py"), path("b.py"))


@pytest.mark.proves("F40")
def test_items_that_could_not_be_read_make_the_answer_partial() -> None:
    chosen = selection(Operation.REFERENCES, {"s": [location("a.py"), None]})
    assert chosen.caveats == ("1 items of the answer could not be read",)
    whole = selection(Operation.REFERENCES, {"s": [location("a.py")]})
    assert (whole.caveats, whole.truncated) == ((), False)


@pytest.mark.proves("OPS-7")
def test_symbols_of_the_workspace_come_by_how_well_they_match() -> None:
    names = ["regret", "greeting", "Greet", "greet()", "(method) greet"]
    answer = [{"name": name, "kind": 12, "location": location("a.py", line)} for line, name in enumerate(names)]
    found = cast("tuple[Symbol, ...]", data(Operation.WORKSPACE_SYMBOL, {"s": answer}, query="greet"))
    assert [one.name for one in found] == ["greet()", "(method) greet", "Greet", "greeting", "regret"]


def test_an_outline_keeps_its_order_even_where_a_name_follows_its_members() -> None:
    member = {"name": "x", "kind": 8, "range": wire_range(1, 2, 7), "selectionRange": wire_range(1, 6, 7)}
    outer = {
        "name": "Point",
        "kind": 23,
        "range": wire_range(0, 0, 8, end_line=2),
        "selectionRange": wire_range(2, 2, 7),
        "children": [member],
    }
    assert [one.name for one in data(Operation.DOCUMENT_SYMBOL, {"s": [outer]})] == ["Point", "x"]


# --- Shapes of the data -------------------------------------------------------------------------------------------


@pytest.mark.proves("OPS-7")
def test_hovers_of_all_servers_are_one_and_say_nothing_twice() -> None:
    answers = {
        "one": {"contents": ["a", "b"]},
        "two": {"contents": ["b", "c"], "range": wire_range(0, 0, 1)},
        "three": None,
    }
    hover = cast("Hover", data(Operation.HOVER, answers))
    assert hover.contents == ("a", "b", "c")
    assert hover.range is not None
    assert data(Operation.HOVER, {"one": None}) is None


def test_signatures_keep_the_order_of_the_server() -> None:
    answer = {"signatures": [{"label": "f(b)"}, {"label": "f(a)"}]}
    assert [one.label for one in data(Operation.SIGNATURE, {"s": answer})] == ["f(b)", "f(a)"]


@pytest.mark.proves("C109")
def test_actions_are_numbered_with_the_preferred_first_and_those_that_are_off_last() -> None:
    answers = {
        "one": [{"title": "Fix"}, {"title": "Best", "isPreferred": True}],
        "two": [{"title": "Fix", "disabled": {"reason": "no"}}],
    }
    found = cast("tuple[Action, ...]", data(Operation.CODE_ACTIONS, answers))
    assert [(one.number, one.title, one.server, one.disabled) for one in found] == [
        (1, "Best", "one", None),
        (2, "Fix", "one", None),
        (0, "Fix", "two", "no"),
    ]
    chosen = selection(Operation.CODE_ACTIONS, answers).chosen
    assert [found.name for _, found in chosen] == ["Best", "Fix", "Fix"]


def test_edges_are_kept_apart_by_their_calls() -> None:
    item = {"name": "main", "kind": 12, **location("b.py"), "selectionRange": wire_range(0, 0, 1)}
    one = {"from": item, "fromRanges": [wire_range(3, 0, 1)]}
    two = {"from": item, "fromRanges": [wire_range(4, 0, 1)]}
    edges = cast("tuple[Edge, ...]", data(Operation.INCOMING_CALLS, {"s": [one, two, one]}))
    assert [edge.calls[0].line for edge in edges] == [4, 5]


def test_items_at_one_place_are_one() -> None:
    item = {"name": "main", "kind": 12, **location("b.py"), "selectionRange": wire_range(0, 0, 1)}
    assert len(data(Operation.PREPARE_CALLS, {"one": [item], "two": [item]})) == 1


# --- Outside the workspace ----------------------------------------------------------------------------------------


@pytest.mark.proves("PATH-5", "T33")
def test_what_lies_outside_is_marked_and_never_read() -> None:
    answer = {"uri": uri_of(OUTSIDE), "range": wire_range(0, 2, 4)}
    assert selection(Operation.DEFINITION, {"s": answer}).paths == ()
    backdrop = Backdrop(WORKSPACE, {OUTSIDE: Text("🐟🐟 secret\n")}, {"s": Encoding.UTF16})
    found = resolved(ROWS[Operation.DEFINITION], selection(Operation.DEFINITION, {"s": answer}), backdrop)
    assert found == (Location(path=OUTSIDE, line=1, character=3, end_line=1, end_character=5, external=True),)


@pytest.mark.proves("PATH-5", "T30")
def test_a_folder_with_the_same_beginning_is_outside() -> None:
    answer = {"uri": "file:///w-evil/a.py", "range": wire_range(0, 0, 1)}
    assert [one.external for one in data(Operation.DEFINITION, {"s": answer})] == [True]


@pytest.mark.proves("PATH-5", "T33")
def test_a_link_that_leads_out_is_outside_though_it_looks_inside() -> None:
    texts = {path("link.py"): Text("secret\n")}
    backdrop = Backdrop(WORKSPACE, texts, {"s": Encoding.UTF16}, outside=frozenset({path("link.py")}))
    chosen = selection(Operation.DEFINITION, {"s": location("link.py")})
    found = cast("tuple[Location, ...]", resolved(ROWS[Operation.DEFINITION], chosen, backdrop))
    assert [(one.external, one.text) for one in found] == [(True, None)]


@pytest.mark.proves("F45")
def test_a_path_that_is_no_text_is_shown_escaped() -> None:
    assert shown_path(AbsPath("/w/\udcff.py"), WORKSPACE) == "\\xff.py"
    assert shown_path(AbsPath("/w/dé/x.py"), WORKSPACE) == "dé/x.py"
    assert shown_path(WORKSPACE, WORKSPACE) == "/w"


# --- Units --------------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(["a", "\t", "é", "🐟", "\n", "\r\n", "\u0301"]), max_size=20).map("".join)


@pytest.mark.proves("RPC-5", "OPS-2")
@given(TEXTS, st.sampled_from(Encoding), st.integers(0, 4), st.integers(0, 12), st.integers(0, 12))
def test_places_are_counted_in_code_points_whatever_the_server_counts(
    text: str, encoding: Encoding, line: int, start: int, end: int
) -> None:
    row = ROWS[Operation.DEFINITION]
    readings: dict[str, Reading[ServerResult]] = {
        "s": Reading((FoundLocation(spots=(Spot(uri("a.py"), wire(line, start, end)),)),))
    }
    chosen = selected(row, Question(operation=Operation.DEFINITION), readings, WORKSPACE)
    found = resolved(row, chosen, Backdrop(WORKSPACE, {path("a.py"): Text(text)}, {"s": encoding}))
    first, last = sorted(place_from_units(text, line, one, encoding) for one in (start, end))
    assert found == (
        Location(
            path="a.py",
            line=first[0] + 1,
            character=first[1] + 1,
            end_line=last[0] + 1,
            end_character=last[1] + 1,
            text=lines(text)[first[0]][0].rstrip(),
        ),
    )


@pytest.mark.proves("RPC-5")
@given(st.sampled_from(Encoding), st.text(st.sampled_from("a\té🐟"), max_size=5))
def test_a_symbol_behind_anything_is_found_at_its_own_character(encoding: Encoding, before: str) -> None:
    name = {"start": {"line": 0, "character": units(before, encoding)}}
    name["end"] = {"line": 0, "character": units(before, encoding) + 1}
    answer = [{"name": "x", "kind": 13, "range": name, "selectionRange": name}]
    readings = {"s": reading(Operation.DOCUMENT_SYMBOL, answer)}
    row = ROWS[Operation.DOCUMENT_SYMBOL]
    chosen = selected(row, Question(operation=Operation.DOCUMENT_SYMBOL), readings, WORKSPACE)
    backdrop = Backdrop(WORKSPACE, {path("a.py"): Text(f"{before}x")}, {"s": encoding})
    found = cast("tuple[Symbol, ...]", resolved(row, chosen, backdrop))
    assert [one.character for one in found] == [len(before) + 1]


@pytest.mark.parametrize(
    ("line", "character", "shown"),
    [
        pytest.param("  x = 1  ", 2, "  x = 1", id="short"),
        pytest.param("x" * 300, 0, "x" * 200 + "…", id="start of a long line"),
        pytest.param("x" * 300, 150, "…" + "x" * 200, id="end of a long line"),
        pytest.param("x" * 900, 450, "…" + "x" * 200 + "…", id="middle of a long line"),
    ],
)
def test_a_very_long_line_is_shown_around_the_place(line: str, character: int, shown: str) -> None:
    assert excerpt(line, character) == shown
