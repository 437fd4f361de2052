"""From a name to a place: decorations, overloads, ambiguity, and words on a line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pilotfish.api.answers import Symbol
from pilotfish.errors import Code, Refused
from pilotfish.model import Position, Range
from pilotfish.operations.locate import (
    Ambiguous,
    LocatedSymbol,
    Name,
    SymbolLookup,
    UnknownSymbol,
    assigned_members,
    line_in,
    located,
    located_on_line,
    main_name_in,
    member_at,
    name_of,
    place_in,
    refusal,
)
from pilotfish.operations.names import bare_name, first_occurrence, names_of, occurrences, word_at
from pilotfish.protocol.positions import Text

LABELS = [
    ("greet", ["greet"]),
    ("(method) greet", ["greet"]),
    ("(local function) greet", ["greet"]),
    ("greet(int)", ["greet"]),
    ("greet(a: Map<x.y, z>) -> int", ["greet"]),
    ("greet: string", ["greet"]),
    ("Box<T>", ["Box"]),
    ("Map<string, List<int>>::get", ["Map", "get"]),
    ("std::vector<int>::push_back(int&&)", ["std", "vector", "push_back"]),
    ("Widget::draw", ["Widget", "draw"]),
    ("Widget::~Widget", ["Widget", "~Widget"]),
    ("operator<<", ["operator<<"]),
    ("Point::operator==(const Point&)", ["Point", "operator=="]),
    ("Point::operator()", ["Point", "operator()"]),
    ("Point::operator bool", ["Point", "operator bool"]),
    ("(*Server).Start", ["Server", "Start"]),
    ("(Server).Start", ["Server", "Start"]),
    ("(*Repo[K, V]).Get", ["Repo", "Get"]),
    ("func (s *Server) Start", ["Server", "Start"]),
    ("impl Point", ["Point"]),
    ("impl<T> Display for shapes::Point<T>", ["shapes", "Point"]),
    ("def greet(name)", ["greet"]),
    ("defmodule My.Greeter", ["My", "Greeter"]),
    ("greet/2", ["greet"]),
    ("async fn run()", ["run"]),
    ("get value", ["value"]),
    ("get", ["get"]),
    ("App\\Models\\User", ["App", "Models", "User"]),
    ("User#name", ["User", "name"]),
    ("$count", ["count"]),
    ("empty?", ["empty?"]),
    ("-doThing:with:", ["doThing"]),
    ("`quoted`", ["quoted"]),
    ("a < b", ["a"]),
    ("(*Job)", ["Job"]),
    ("(anonymous)", ["(anonymous)"]),
    ("[id]", ["[id]"]),
    ("...", ["..."]),
    ("Größe.straße", ["Größe", "straße"]),
]


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(("label", "names"), LABELS, ids=[label for label, _ in LABELS])
def test_decorations_are_taken_off_by_rule(label: str, names: list[str]) -> None:
    assert list(names_of(label)) == names
    assert bare_name(label) == names[-1]


@given(st.text(max_size=30))
def test_any_label_has_a_name(label: str) -> None:
    assert names_of(label)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("greet", Name(("greet",))),
        (" Greeter.greet ", Name(("Greeter", "greet"))),
        ("Greeter::greet", Name(("Greeter", "greet"))),
        ("Greeter/greet", Name(("Greeter", "greet"))),
        ("Greeter.greet[1]", Name(("Greeter", "greet"), 1)),
        ("greet(int)[2]", Name(("greet",), 2)),
        ("Box[T].get", Name(("Box", "get"))),
    ],
)
def test_what_a_caller_writes_is_read(symbol: str, name: Name) -> None:
    assert name_of(symbol) == name


# --- Among symbols ------------------------------------------------------------------------------------------------


def symbol(name: str, line: int, depth: int = 0, kind: str = "function", path: str = "src/a.py") -> Symbol:
    return Symbol(path=path, line=line, character=5, end_line=line, end_character=9, name=name, kind=kind, depth=depth)


OUTLINE = [
    symbol("Greeter", 1, kind="class"),
    symbol("greet", 2, 1, "method"),
    symbol("greet", 4, 1, "method"),
    symbol("name", 6, 1, "method"),
    symbol("helper", 7, 2),
    symbol("helper", 10),
    symbol("Other", 12, kind="class"),
    symbol("greet(int)", 13, 1, "method"),
    symbol("name", 15, 1, "method"),
    symbol("local", 16, 2, "variable"),
]


def line_of(finding: SymbolLookup) -> int:
    assert isinstance(finding, LocatedSymbol), finding
    return finding.location.line


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("said", "line"),
    [
        pytest.param("Greeter", 1, id="a class"),
        pytest.param("Greeter.name", 6, id="a member"),
        pytest.param("Greeter.greet[0]", 2, id="the first overload"),
        pytest.param("Greeter.greet[1]", 4, id="the second overload"),
        pytest.param("Other.greet", 13, id="a decorated member"),
        pytest.param("Other::greet", 13, id="with the separator of another language"),
        pytest.param("greet[2]", 13, id="the third of that name"),
        pytest.param("helper", 10, id="the outermost wins"),
        pytest.param("Greeter.name.helper", 7, id="the one inside"),
        pytest.param("name.helper", 7, id="the end of a path"),
        pytest.param("local", 16, id="a local name, if nothing else has it"),
        pytest.param("a.Greeter", 1, id="with its module"),
        pytest.param("src.a.Greeter.name", 6, id="with its package"),
    ],
)
def test_a_name_finds_its_symbol(said: str, line: int) -> None:
    assert line_of(located(name_of(said), OUTLINE)) == line


@pytest.mark.proves("OPS-3")
def test_a_name_that_fits_several_returns_all_of_them_each_with_its_own_name() -> None:
    finding = located(name_of("greet"), OUTLINE)
    assert isinstance(finding, Ambiguous)
    assert [(one.name, one.location.line) for one in finding.candidates] == [
        ("Greeter.greet[0]", 2),
        ("Greeter.greet[1]", 4),
        ("Other.greet", 13),
    ]


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize("said", ["greet", "name", "Greeter.greet", "Greeter.greet[7]"])
def test_every_candidate_is_found_by_the_name_that_it_is_given(said: str) -> None:
    finding = located(name_of(said), OUTLINE)
    assert isinstance(finding, Ambiguous)
    for candidate in finding.candidates:
        assert located(name_of(candidate.name), OUTLINE) == LocatedSymbol(candidate.location)


def test_a_declaration_wins_over_a_block_that_adds_to_it() -> None:
    rust = [
        symbol("Point", 1, kind="struct"),
        symbol("impl Point", 3, kind="object"),
        symbol("new", 4, 1),
        symbol("impl Display for Point", 9, kind="object"),
        symbol("fmt", 10, 1),
    ]
    assert line_of(located(name_of("Point"), rust)) == 1
    assert line_of(located(name_of("Point.new"), rust)) == 4
    assert line_of(located(name_of("Point::fmt"), rust)) == 10
    assert line_of(located(name_of("implement"), [*rust, symbol("implement", 20)])) == 20


def test_what_is_local_to_a_function_yields() -> None:
    outline = [symbol("A", 1, kind="class"), symbol("x", 2, 1, "field"), symbol("f", 3), symbol("x", 4, 1, "variable")]
    assert line_of(located(name_of("x"), outline)) == 2


@pytest.mark.proves("OPS-3")
def test_a_member_and_the_function_that_it_is_are_one() -> None:
    member, function = symbol("get", 3), structs.replace(symbol("get", 3), character=20, end_character=23)
    assert located(name_of("get"), [function, member]) == LocatedSymbol(member)


ASSIGNED = """var etag = require('etag');
exports.etag = make();
app.get = function get() {};
res.contentType =
res.type = async function contentType() {};
local = function get() {};
if (exports.etag == 1) {}
"""


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("name", "line", "character", "member"),
    [
        ("get", 3, 19, (3, 5)),
        ("contentType", 5, 27, (4, 5)),
        ("get", 6, 18, (6, 18)),
        ("etag", 1, 5, (1, 5)),
    ],
)
def test_others_use_the_member_that_a_function_is_assigned_to(
    name: str, line: int, character: int, member: tuple[int, int]
) -> None:
    found = member_at(Text(ASSIGNED), Position(line - 1, character - 1), name_of(name))
    assert (found.line + 1, found.character + 1) == member


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("name", "outline", "members"),
    [("etag", symbol("etag", 1), [(2, 9)]), ("get", symbol("get", 3), []), ("type", symbol("x", 1), [(5, 5)])],
)
def test_a_member_that_the_outline_lacks_is_found_too(
    name: str, outline: Symbol, members: list[tuple[int, int]]
) -> None:
    found = assigned_members(Text(ASSIGNED), "a.js", name_of(name), [outline])
    assert [(one.line, one.character) for one in found] == members


@pytest.mark.proves("OPS-3")
def test_symbols_of_the_workspace_are_found_by_container_and_file() -> None:
    listed = [
        Symbol(
            path=path, line=1, character=1, end_line=1, end_character=2, name="run", kind="method", container=container
        )
        for path, container in [("lib/job.go", "(*Job)"), ("lib/task.go", "Task"), ("pkg/__init__.py", "")]
    ]
    assert isinstance(located(name_of("run"), listed[:2]), Ambiguous)
    assert located(name_of("Task.run"), listed) == LocatedSymbol(listed[1])
    assert located(name_of("Job.run"), listed) == LocatedSymbol(listed[0])
    assert located(name_of("job.run"), listed) == UnknownSymbol("job.run", ("run",))
    assert located(name_of("pkg.run"), listed) == LocatedSymbol(listed[2])


@pytest.mark.parametrize(
    ("said", "nearest"),
    [
        pytest.param("gret", ("Other.greet",), id="misspelt"),
        pytest.param("GREETER", ("Greeter",), id="other case"),
        pytest.param("Greeter.zzz", (), id="nothing near"),
    ],
)
def test_a_name_that_nothing_has_returns_the_nearest(said: str, nearest: tuple[str, ...]) -> None:
    finding = located(name_of(said), OUTLINE)
    assert isinstance(finding, UnknownSymbol)
    assert finding.nearest[:1] == nearest


@pytest.mark.proves("OPS-3")
def test_the_refusal_says_where_the_candidates_are() -> None:
    finding = located(name_of("greet"), OUTLINE)
    assert isinstance(finding, Ambiguous)
    assert refusal(finding).code is Code.AMBIGUOUS
    assert refusal(finding).message == (
        "greet could be any of 3: Greeter.greet[0] src/a.py:2:5, Greeter.greet[1] src/a.py:4:5, "
        "Other.greet src/a.py:13:5."
    )
    many = located(name_of("x"), [symbol("x", line) for line in range(1, 15)])
    assert isinstance(many, Ambiguous)
    assert refusal(many).message.endswith("x[9] src/a.py:10:5, and 4 more.")


def test_the_refusal_of_a_missing_name_names_the_nearest() -> None:
    refused = refusal(UnknownSymbol("gret", ("greet",)))
    assert (refused.code, refused.message, refused.hint) == (
        Code.NOT_FOUND,
        "There is no symbol gret.",
        "Nearest: greet.",
    )
    assert refusal(UnknownSymbol("x", ())).hint is None


# --- On a line ----------------------------------------------------------------------------------------------------


def on_line(said: str, line: str, symbols: list[Symbol] | None = None) -> SymbolLookup:
    return located_on_line(name_of(said), Text(f"first\n{line}\n"), "a.py", 2, symbols or [])


@pytest.mark.proves("OPS-3", "OPS-2")
@pytest.mark.parametrize(
    ("said", "line", "character"),
    [
        pytest.param("greet", "x = greet()", 5, id="used"),
        pytest.param("greet", "\t\tgreet()", 3, id="behind tabs"),
        pytest.param("greet", "'🐟🐟' + greet()", 8, id="behind emoji"),
        pytest.param("greet", "regreet(greet)", 9, id="whole word"),
        pytest.param("greet", "greet_all(greet)", 11, id="not a beginning"),
        pytest.param("x", "$x + x", 6, id="a dollar is part of a word"),
        pytest.param("größe", "größe = 1", 1, id="letters of any script"),
        pytest.param("Greeter.greet", "other.greet(Greeter.greet)", 21, id="qualified"),
        pytest.param("greet[1]", "greet(greet)", 7, id="the second on the line"),
        pytest.param("empty?", "a.empty? && b", 3, id="a name that ends in a sign"),
    ],
)
def test_a_name_on_a_line_is_found_in_code_points(said: str, line: str, character: int) -> None:
    finding = on_line(said, line)
    assert isinstance(finding, LocatedSymbol)
    assert finding.position == Position(1, character - 1)


@pytest.mark.proves("OPS-3")
def test_a_name_twice_on_a_line_is_ambiguous_unless_one_is_declared_there() -> None:
    finding = on_line("x", "x = x + 1")
    assert isinstance(finding, Ambiguous)
    assert [(one.name, one.location.character) for one in finding.candidates] == [("x[0]", 1), ("x[1]", 5)]
    declared = Symbol(path="a.py", line=2, character=5, end_line=2, end_character=6, name="x", kind="variable")
    assert on_line("x", "x = x + 1", [declared]) == on_line("x[1]", "x = x + 1")


def test_an_index_beyond_the_line_returns_what_is_there() -> None:
    finding = on_line("x[5]", "x = 1")
    assert isinstance(finding, Ambiguous)
    assert [one.name for one in finding.candidates] == ["x"]


def test_a_name_that_is_not_on_the_line_returns_the_words_near_it() -> None:
    assert on_line("gret", "x = greet()") == UnknownSymbol("gret on line 2", ("greet",))
    assert located_on_line(name_of("x"), Text("x"), "a.py", 9) == UnknownSymbol("x on line 9", ())


# --- Places and words ---------------------------------------------------------------------------------------------


@pytest.mark.proves("OPS-2")
def test_a_place_beyond_the_text_is_refused_and_not_moved() -> None:
    text = Text("🐟x\n")
    assert place_in(text, "a.py", 1, 3) == Position(0, 2)
    assert place_in(text, "a.py", 2, 1) == Position(1, 0)
    assert line_in(text, "a.py", 1) == Range(Position(0, 0), Position(0, 2))
    with pytest.raises(Refused, match=re.escape("a.py has 2 lines, so there is no line 3.")):
        place_in(text, "a.py", 3, 1)
    with pytest.raises(Refused, match=re.escape("Line 1 of a.py has 2 characters, so there is no character 4.")):
        place_in(text, "a.py", 1, 4)


WORDS = st.text(st.sampled_from("ab_$ .🐟é"), max_size=12)


@given(WORDS, st.sampled_from(["a", "ab", "é", "$a"]))
def test_words_are_found_where_a_naive_search_finds_them(line: str, word: str) -> None:
    def is_part(character: str) -> bool:
        return character.isalnum() or character in {"_", "$"}

    naive = [
        at
        for at in range(len(line))
        if line.startswith(word, at)
        and not is_part(line[at - 1 : at] or " ")
        and not is_part(line[at + len(word) : at + len(word) + 1] or " ")
    ]
    found = occurrences(Text(line), 0, word)
    assert [one.start.character for one in found] == naive
    first = first_occurrence(Text(line), word, Range(Position(0, 0), Position(0, len(line))))
    assert first == (found[0] if found else None)


@pytest.mark.parametrize(
    ("line", "character", "word"),
    [(0, 0, "def"), (0, 3, "def"), (0, 4, "greet"), (0, 9, "greet"), (0, 10, None), (1, 0, None), (9, 0, None)],
)
def test_the_word_at_a_position_is_the_one_around_or_before_it(line: int, character: int, word: str | None) -> None:
    assert word_at(Text("def greet()\n"), Position(line, character)) == word


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("line", "character"),
    [
        pytest.param("    async def greet(name: str) -> None:", 14, id="behind keywords"),
        pytest.param("export const total = 3", 13, id="of a constant"),
        pytest.param("  greet(1)", 2, id="of a call"),
        pytest.param("3 + größe", 4, id="behind a number"),
        pytest.param("    return", 4, id="a keyword, where it is all there is"),
        pytest.param("self.name = get_name(self)", 12, id="what is called, before the object itself"),
        pytest.param("this.total += 1", 5, id="a member of the object itself"),
        pytest.param("self", 0, id="the object itself, where it is all there is"),
    ],
)
def test_a_line_alone_means_the_name_that_it_is_about(line: str, character: int) -> None:
    assert main_name_in(Text(f"\n{line}\n"), "a.x", 2, called=True) == Position(1, character)


def test_who_asks_for_uses_means_the_first_name_of_a_line() -> None:
    assert main_name_in(Text("total = count(rows)\n"), "a.py", 1) == Position(0, 0)


def test_names_near_a_misspelt_one_are_members_of_what_was_named_first() -> None:
    found = located(
        name_of("Route.mtches"), [symbol("Host.matches", 1), symbol("Route.matches", 2), symbol("mtche", 3)]
    )
    assert isinstance(found, UnknownSymbol)
    assert found.nearest[0] == "Route.matches"


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("line", "said"), [(1, "has no name in it"), (2, "has no name in it"), (9, "there is no line 9")]
)
def test_a_line_without_a_name_is_refused(line: int, said: str) -> None:
    with pytest.raises(Refused, match=said):
        main_name_in(Text("\n  }  // 3\n"), "a.x", line)
