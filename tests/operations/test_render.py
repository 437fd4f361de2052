"""The text form, word for word, and that nothing foreign gets into any form unclean."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, structs
from msgspec.structs import replace

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    Diagnostic,
    DiagnosticsAnswer,
    Edge,
    Effort,
    Error,
    Exploration,
    Feedback,
    FileChange,
    HierarchyItem,
    Hover,
    Impact,
    Location,
    Point,
    Signature,
    Span,
    State,
    Symbol,
    SymbolText,
    UsedSymbol,
    answer_from,
    at_least,
)
from pilotfish.api.questions import Operation
from pilotfish.errors import Bug, Code
from pilotfish.library.opta import opta_text
from pilotfish.operations.cleaning import structured
from pilotfish.operations.render import text_of
from pilotfish.protocol.codec import encode
from support.values.answers import read_answer

FRESH = Effort(duration_ms=1, server_hits=1)
SPAN = Span(Point(0, 4), Point(0, 9))


def at(path: str, line: int, character: int, text: str | None = None, *, external: bool = False) -> Location:
    return Location(
        path=path,
        line=line,
        character=character,
        end_line=line,
        end_character=character + 5,
        text=text,
        external=external,
    )


def symbol(name: str, line: int, depth: int = 0, **more: Any) -> Symbol:
    fields: dict[str, Any] = {"kind": "function", "first_line": line, "last_line": line, **more}
    return Symbol(
        path="src/a.py",
        line=line,
        character=5,
        end_line=line,
        end_character=9,
        name=name,
        depth=depth,
        **fields,
    )


def item(name: str, location: Location, detail: str | None = None, data: object = UNSET) -> HierarchyItem:
    return HierarchyItem(
        name=name,
        uri="file:///w/src/a.py",
        range=SPAN,
        selection_range=SPAN,
        kind=12,
        detail=detail,
        data=data,
        server="fakels",
        location=location,
    )


HERE = at("src/a.py", 10, 5, "    def greet(name: str) -> str:")
THERE = at("src/b.py", 3, 7, "print(greet(1))")
LIBRARY = at("/usr/lib/x.py", 1, 1, external=True)
ERROR = Diagnostic(
    line=3, character=5, end_line=3, end_character=6, severity="error", message="No x", server="s", code="E1"
)
HINT = Diagnostic(line=4, character=1, end_line=4, end_character=2, severity="hint", message="Unused", server="s")
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"

FORMS: list[Any] = [
    pytest.param(Operation.DEFINITION, (HERE,), "src/a.py:10:5  def greet(name: str) -> str:", id="one place"),
    pytest.param(
        Operation.REFERENCES,
        (HERE, at("src/a.py", 12, 1), replace(THERE, within="main"), LIBRARY),
        "4 results in 3 files:\n"
        "src/a.py\n"
        "  10:5  def greet(name: str) -> str:\n"
        "  12:1\n"
        "src/b.py\n"
        "  3:7 in main  print(greet(1))\n"
        "/usr/lib/x.py (external)\n"
        "  1:1",
        id="several files",
    ),
    pytest.param(
        Operation.REFERENCES,
        (HERE, at("src/a.py", 12, 1)),
        "2 results:\nsrc/a.py\n  10:5  def greet(name: str) -> str:\n  12:1",
        id="one file",
    ),
    pytest.param(Operation.REFERENCES, (), "No results found.", id="nothing"),
    pytest.param(
        Operation.HOVER, Hover(("```python\ndef f()\n```", "Does f.")), "```python\ndef f()\n```\n\nDoes f.", id="hover"
    ),
    pytest.param(Operation.HOVER, None, "No results found.", id="no hover"),
    pytest.param(
        Operation.SIGNATURE,
        (
            Signature("f(a, b)", "Does f.", ("a", "b"), active_parameter=1, active=True),
            Signature("f()"),
        ),
        "> f(a, b)  (at b)\nDoes f.\n  f()",
        id="signatures",
    ),
    pytest.param(
        Operation.DOCUMENT_SYMBOL,
        (
            symbol("Greeter", 1, kind="class", last_line=8),
            symbol("greet", 2, 1, kind="method", detail="(self)"),
            symbol("flat", 9, container="Greeter", first_line=None, last_line=None),
        ),
        "src/a.py\n  1:5 class Greeter (1-8)\n    2:5 method greet: (self)\n  9:5 function flat in Greeter",
        id="outline",
    ),
    pytest.param(
        Operation.WORKSPACE_SYMBOL,
        (symbol("greet", 2, container="Greeter"), symbol("greet_all", 9)),
        "2 results:\nsrc/a.py:2:5  function greet in Greeter\nsrc/a.py:9:5  function greet_all",
        id="workspace symbols",
    ),
    pytest.param(
        Operation.PREPARE_CALLS, (item("greet", HERE, "a.py"),), "src/a.py:10:5  function greet  a.py", id="items"
    ),
    pytest.param(
        Operation.INCOMING_CALLS,
        (Edge((THERE,), caller=item("main", at("src/b.py", 2, 5))), Edge((), caller=item("greet", HERE))),
        "2 results in 2 files:\n"
        "src/b.py:2:5  function main\n"
        "  call src/b.py:3:7  print(greet(1))\n"
        "src/a.py:10:5  function greet",
        id="incoming calls",
    ),
    pytest.param(
        Operation.OUTGOING_CALLS,
        (Edge((THERE,), callee=item("greet", HERE)),),
        "src/a.py:10:5  function greet\n  call src/b.py:3:7  print(greet(1))",
        id="outgoing calls",
    ),
    pytest.param(
        Operation.DIAGNOSTICS,
        {"src/a.py": (ERROR, HINT), "src/b.py": ()},
        "src/a.py:3:5  error: No x (E1)\nsrc/a.py:4:1  hint: Unused",
        id="diagnostics",
    ),
    pytest.param(Operation.DIAGNOSTICS, {"src/a.py": ()}, "No diagnostics.", id="clean"),
    pytest.param(
        Operation.RENAME,
        Changes(
            applied=False,
            files=(
                FileChange("a.py", edits=1, diff=DIFF),
                FileChange("b.py", "rename", "c.py"),
                FileChange("/usr/x.py", edits=2),
            ),
            confirm=("Rename in comments",),
        ),
        "Preview: 3 files, 3 edits. Nothing was written.\n"
        "needs confirmation: Rename in comments\n"
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n"
        "rename b.py -> c.py\n"
        "edit /usr/x.py",
        id="preview",
    ),
    pytest.param(
        Operation.RENAME_FILE,
        Changes(applied=True, files=(FileChange("a.py", "rename", "b.py", 1, DIFF),)),
        "Applied: 1 file, 1 edit.\nrename a.py -> b.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y",
        id="applied",
    ),
    pytest.param(
        Operation.RENAME,
        Changes(True, (FileChange("a.py"),), feedback=Feedback("a.py is broken now", State.FRESH, 1)),
        "Applied: 1 file, 0 edits.\nedit a.py\n\na.py is broken now",
        id="applied, and what became of it",
    ),
    pytest.param(
        Operation.RENAME,
        Changes(True, (FileChange("a.py"),), feedback=Feedback("", State.PARTIAL, 1, "s has not answered")),
        "Applied: 1 file, 0 edits.\nedit a.py\nChecking the changed files: partial: s has not answered",
        id="applied, and nobody knows what became of it",
    ),
    pytest.param(
        Operation.CODE_ACTIONS,
        (
            Action(1, "Import os", "s", "quickfix", preferred=True, changes=Changes(True, (FileChange("b.py"),))),
            Action(2, "Extract", "s", disabled="nothing selected"),
            Action(3, "Sort", "s"),
        ),
        "1. Import os (quickfix, preferred)\n"
        "Applied: 1 file, 0 edits.\n"
        "edit b.py\n"
        "3. Sort\n"
        "1 more action cannot be applied here",
        id="actions",
    ),
    pytest.param(
        Operation.CODE_ACTIONS,
        (Action(0, "Extract", "s", disabled="nothing selected"),),
        "- Extract (disabled: nothing selected)",
        id="no action that can be applied",
    ),
]


@pytest.mark.proves("OPS-8")
@pytest.mark.parametrize(("operation", "data", "text"), FORMS)
def test_the_text_of_an_answer(operation: Operation, data: object, text: str) -> None:
    assert text_of(answer_from(operation, data, FRESH)) == text


@pytest.mark.proves("OPS-7")
@pytest.mark.parametrize(("operation", "data", "text"), FORMS)
def test_an_answer_that_travelled_as_json_reads_the_same(operation: Operation, data: object, text: str) -> None:
    made = answer_from(operation, data, FRESH)
    travelled = read_answer(encode(made))
    assert travelled == made
    assert text_of(travelled) == text


def test_in_a_pipe_every_reference_is_a_line_of_its_own() -> None:
    places = tuple(
        Location(path=path, line=line, character=1, end_line=line, end_character=2, text="x = 1", within="f")
        for path, line in (("a.py", 1), ("a.py", 3), ("b.py", 2))
    )
    answer = answer_from(Operation.REFERENCES, places, Effort(server_hits=1, total=3))
    assert text_of(answer, grouped=False).splitlines() == [
        "a.py:1:1  x = 1", "a.py:3:1  x = 1", "b.py:2:1  x = 1",
    ]  # fmt: skip


def test_errors_are_told_before_hints_of_any_file() -> None:
    hint, error = (
        Diagnostic(line=1, character=1, end_line=1, end_character=2, severity=severity, message=severity, server="s")
        for severity in ("hint", "error")
    )
    found = {"a.py": (hint,), "b.py": (hint, error)}
    answer: DiagnosticsAnswer = answer_from(Operation.DIAGNOSTICS, found, FRESH)
    assert text_of(answer).splitlines() == [
        "b.py:1:1  error: error", "a.py:1:1  hint: hint", "b.py:1:1  hint: hint",
    ]  # fmt: skip
    assert text_of(at_least(answer, "warning")) == "b.py:1:1  error: error"


GREET = SymbolText(
    **structs.asdict(symbol("greet", 1)), source='def greet(name):\n    """Say hello.\n    Twice."""\n', digest="d"
)


def test_documentation_that_the_text_has_is_not_told_twice() -> None:
    said = "```python\ndef greet(name) -> None\n```\n---\nSay hello.\n\nTwice.\n\nNot in the text."
    answer = answer_from(Operation.EXPLORE, Exploration(symbol=GREET, contents=(said,), uses=(), total=0), FRESH)
    told = text_of(answer)
    assert told.count("Say hello.") == told.count("Twice.") == told.count("Not in the text.") == 1


WRONG = Diagnostic(line=9, character=1, end_line=9, end_character=2, severity="error", message="wrong", server="s")


def test_the_impact_of_a_named_symbol_begins_with_its_users() -> None:
    one = UsedSymbol(symbol=symbol("greet", 1))
    found = Impact(changed=(one,), broken={"b.py": (WRONG,)}, checked=2, named=True)
    told = text_of(answer_from(Operation.IMPACT, found, FRESH)).splitlines()
    assert told[0].endswith("greet: not used")
    assert told[1:] == ["1 error in these files, of 2 files checked:", "b.py:9:1  error: wrong"]


def test_a_change_of_files_that_no_server_checks_counts_neither_files_nor_symbols() -> None:
    found = Impact(changed=(), broken={}, checked=0, files=("package-lock.json",))
    assert text_of(answer_from(Operation.IMPACT, found, FRESH)).splitlines() == [
        "No changed file has a server that checks it.",
        "package-lock.json: changed outside of symbols",
    ]


def test_errors_that_are_counted_and_not_listed_are_said_to_be_more() -> None:
    many = tuple(structs.replace(WRONG, line=number) for number in range(1, 12))
    found = Impact(changed=(UsedSymbol(symbol=symbol("greet", 1)),), broken={"b.py": many}, checked=2, named=True)
    told = text_of(answer_from(Operation.IMPACT, found, FRESH)).splitlines()
    assert (told[1], told[-1]) == ("11 errors in these files, of 2 files checked:", "… 3 more of 11 errors")
    assert len(told) == 2 + 8 + 1


@pytest.mark.parametrize(
    ("fields", "head"),
    [
        ({}, ["No errors in the 2 files that were checked."]),
        ({"older": 12}, ["No new errors in the 2 files that were checked.", "And 12 older errors."]),
        (
            {"broken": {"b.py": (WRONG,)}, "older": 1},
            ["Broken now, of 2 files checked:", "b.py:9:1  error: wrong", "And 1 older error."],
        ),
        (
            {"unknown": {"c.py": 2, "d.py": 1}, "older": 1},
            [
                "No new errors are known in the 2 files that were checked.",
                "And 1 older error.",
                "3 other errors may be older than the change: c.py 2, d.py 1.",
            ],
        ),
        (
            {"broken": {"b.py": (WRONG,)}, "possibly_older": True},
            ["Errors in these files (possibly older), of 2 files checked:", "b.py:9:1  error: wrong"],
        ),
    ],
    ids=["clean", "older", "broken", "others not known", "not known"],
)
def test_the_impact_of_a_change_is_what_it_broke(fields: dict[str, Any], head: list[str]) -> None:
    one = UsedSymbol(symbol=symbol("__call__", 1))
    usual: dict[str, Any] = {"broken": {}, "checked": 2}
    found = Impact(changed=(one,), **usual | fields)
    told = text_of(answer_from(Operation.IMPACT, found, FRESH)).splitlines()
    assert told[: len(head) + 1] == [*head, "1 symbol changed:"]
    assert told[-1].endswith("__call__: called without its name, so its uses are not known")


def test_an_answer_to_no_operation_travels_too() -> None:
    refused: Answer[Any] = answer_from("zzz", None, Effort(errors=(Error("pilotfish", "no such", Code.INVALID_INPUT),)))
    assert read_answer(encode(refused)) == refused


def test_an_answer_that_lies_is_not_read() -> None:
    with pytest.raises(msgspec.DecodeError):
        read_answer(b'{"ok":true,"operation":"hover","data":null,"meta":{}}')


CRASHED = Error("eslint", "eslint crashed", Code.SERVER_CRASHED)
STATES = [
    pytest.param(
        (HERE,),
        Effort(server_hits=1, caveats=("rust-analyzer is still indexing",)),
        "partial: rust-analyzer is still indexing\nsrc/a.py:10:5  def greet(name: str) -> str:",
        id="indexing",
    ),
    pytest.param(
        (),
        Effort(server_hits=1, caveats=("rust-analyzer is still indexing",), errors=(CRASHED,)),
        "partial: rust-analyzer is still indexing\nNothing found so far.\neslint crashed",
        id="indexing, one crashed, nothing yet",
    ),
    pytest.param(
        (HERE,),
        Effort(server_hits=1, errors=(CRASHED,)),
        "partial: eslint crashed\nsrc/a.py:10:5  def greet(name: str) -> str:",
        id="one crashed",
    ),
    pytest.param((), Effort(errors=(CRASHED,)), "unavailable: eslint crashed", id="nobody left"),
    pytest.param(
        (HERE,),
        Effort(server_hits=1, stale="the file has changed since"),
        "stale: the file has changed since\nsrc/a.py:10:5  def greet(name: str) -> str:",
        id="stale",
    ),
    pytest.param(
        (HERE,),
        Effort(server_hits=1, truncated=True, total=900, also_mentioned=2),
        "src/a.py:10:5  def greet(name: str) -> str:\n… 899 more of 900 results; go on with offset 1\n"
        "note: 2 more files mention the name, and the server sees no use there: a comment, a string, something else",
        id="cut",
    ),
]


@pytest.mark.proves("OPS-8", "OPS-6", "T38")
@pytest.mark.parametrize(("data", "effort", "text"), STATES)
def test_the_text_says_how_much_it_can_be_believed(data: object, effort: Effort, text: str) -> None:
    assert text_of(answer_from(Operation.REFERENCES, data, effort)) == text


def test_a_hover_in_a_list_is_our_fault() -> None:
    with pytest.raises(Bug):
        text_of(answer_from(Operation.REFERENCES, (Hover(("x",)),), FRESH))


# --- Opta ---------------------------------------------------------------------------------------------------------


@pytest.mark.proves("OPTA-1")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param((at("app.ts", 10, 6, "x"),), "app.ts:10:5", id="one"),
        pytest.param(
            (at("b.ts", 1, 1), at("b.ts", 1, 1), at("c.ts", 5, 3)), "b.ts:1:0\nc.ts:5:2", id="without duplicates"
        ),
        pytest.param((), "No results found.", id="nothing"),
        pytest.param((symbol("greet", 2),), "src/a.py:2:4 function greet", id="symbols"),
        pytest.param(Hover(("int",)), "int", id="hover"),
    ],
)
def test_the_opta_tools_count_columns_from_zero(data: object, text: str) -> None:
    assert opta_text(answer_from(Operation.DEFINITION, data, FRESH)) == text


@pytest.mark.proves("OPTA-1", "OPS-6")
def test_the_opta_tools_say_what_is_not_fresh() -> None:
    effort = Effort(server_hits=1, caveats=("indexing",), truncated=True, total=2)
    text = opta_text(answer_from(Operation.REFERENCES, (HERE,), effort))
    assert text == "partial: indexing\nsrc/a.py:10:4\nnote: showing 1 of 2 results"


# --- Cleaning -----------------------------------------------------------------------------------------------------

EVIL = "\x1b[31mevil\u202e\u200b" + "z" * 50_000
EVIL_PLACE = at(EVIL, 1, 1, EVIL)
EVIL_ANSWERS: list[Any] = [
    (Operation.DEFINITION, (EVIL_PLACE,)),
    (Operation.HOVER, Hover((EVIL,))),
    (Operation.SIGNATURE, (Signature(EVIL, EVIL, (EVIL,), active_parameter=0, active=True),)),
    (Operation.DOCUMENT_SYMBOL, (symbol(EVIL, 1, detail=EVIL, container=EVIL),)),
    (Operation.WORKSPACE_SYMBOL, (symbol(EVIL, 1, container=EVIL),)),
    (Operation.SUPERTYPES, (item(EVIL, EVIL_PLACE, EVIL),)),
    (Operation.INCOMING_CALLS, (Edge((EVIL_PLACE,), caller=item(EVIL, EVIL_PLACE)),)),
    (Operation.DIAGNOSTICS, {EVIL: (msgspec.structs.replace(ERROR, message=EVIL, code=EVIL, source=EVIL),)}),
    (
        Operation.RENAME,
        Changes(
            applied=False,
            files=(FileChange(EVIL, "rename", EVIL, diff=EVIL), FileChange(EVIL)),
            confirm=(EVIL,),
        ),
    ),
    (Operation.CODE_ACTIONS, (Action(1, EVIL, EVIL, EVIL, disabled=EVIL),)),
]


@pytest.mark.proves("T31", "T32")
@pytest.mark.parametrize(("operation", "data"), EVIL_ANSWERS, ids=[str(one[0]) for one in EVIL_ANSWERS])
def test_every_foreign_text_goes_through_the_cleaner(operation: Operation, data: object) -> None:
    effort = Effort(server_hits=1, caveats=(EVIL,), errors=(Error("s", EVIL, Code.SERVER_ERROR),), warnings=(EVIL,))
    made = answer_from(operation, data, effort)
    for form in (text_of(made), opta_text(made), encode(structured(made)).decode()):
        assert "evil[U+202E +1]" in form
        assert not {"\x1b", "\u202e", "\u200b"} & set(form)
        assert "z" * 40_000 not in form


@pytest.mark.proves("T31", "OPS-7")
def test_what_goes_back_to_a_server_stays_word_for_word() -> None:
    made = answer_from(Operation.PREPARE_CALLS, (item("greet", HERE, data={"raw": "\u202edata"}),), FRESH)
    plain: Any = structured(made)
    assert plain["data"][0]["data"] == {"raw": "\u202edata"}
    assert plain["data"][0]["uri"] == "file:///w/src/a.py"
    assert plain["meta"]["durationMs"] == 1


@pytest.mark.proves("T31")
@pytest.mark.parametrize(
    ("operation", "data", "limit"),
    [
        pytest.param(Operation.HOVER, Hover(("z" * 99_999,)), 8000, id="hover"),
        pytest.param(Operation.SIGNATURE, (Signature("f()", "z" * 99_999),), 8000, id="documentation"),
        pytest.param(Operation.SIGNATURE, (Signature("z" * 99_999),), 1000, id="anything else"),
        pytest.param(
            Operation.RENAME, Changes(applied=False, files=(FileChange("a", diff="z" * 99_999),)), 40_000, id="diff"
        ),
    ],
)
def test_every_field_of_the_structured_form_has_a_limit(operation: Operation, data: object, limit: int) -> None:
    form = encode(structured(answer_from(operation, data, FRESH))).decode()
    assert form.count("z") == limit - 1


def test_a_text_within_its_limit_is_whole() -> None:
    answer = answer_from(Operation.REFERENCES, tuple(at("a.py", n, 1) for n in range(1, 4)), FRESH)
    assert text_of(answer, len(text_of(answer))) == text_of(answer)


@pytest.mark.proves("OPS-8", "MCP-1")
@pytest.mark.parametrize(
    ("answer", "last"),
    [
        pytest.param(
            answer_from(Operation.REFERENCES, tuple(at("ä.py", n, 1, "x") for n in range(50)), FRESH),
            "… 26 more of 50 results; go on with offset 24",
            id="places",
        ),
        pytest.param(
            answer_from(Operation.WORKSPACE_SYMBOL, tuple(symbol("f", n) for n in range(50)), FRESH),
            "… 41 more of 50 results; go on with offset 9",
            id="symbols of the workspace",
        ),
        pytest.param(
            answer_from(Operation.DOCUMENT_SYMBOL, tuple(symbol("f", n) for n in range(50)), FRESH),
            "… 36 more of 50 symbols; go on with offset 14",
            id="an outline",
        ),
        pytest.param(
            answer_from(Operation.HOVER, Hover(("\n".join(["word"] * 80),)), FRESH),
            "… 25 more of 80 lines",
            id="a hover",
        ),
    ],
)
def test_a_text_beyond_its_limit_ends_with_a_whole_item(answer: Answer[Any], last: str) -> None:
    text = text_of(answer, 300)
    assert text.split("\n")[-1] == last
    assert len(text.encode()) <= 300
    assert text_of(answer).startswith(text.rpartition("\n")[0])


@pytest.mark.proves("OPS-8", "MCP-1")
def test_one_item_beyond_the_limit_is_cut_at_a_line_and_what_must_be_said_stays() -> None:
    changes = Changes(files=(FileChange("a.py", edits=1, diff="+line\n" * 100),), applied=False)
    text = text_of(answer_from(Operation.RENAME, changes, FRESH), 200)
    assert text.startswith("Preview: 1 file, 1 edit. Nothing was written.\n+line\n")
    assert text.endswith(" more of 101 lines")
    assert len(text.encode()) <= 200


@pytest.mark.proves("OPS-8")
def test_what_the_question_got_wrong_is_no_state_of_an_answer() -> None:
    wrong = Error(server_id="pilotfish", message="line is missing. It takes filePath, line.", code=Code.INVALID_INPUT)
    assert text_of(answer_from(Operation.HOVER, None, Effort(errors=(wrong,)))) == wrong.message
