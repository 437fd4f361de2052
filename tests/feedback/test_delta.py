"""Introduced, older, fixed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.feedback.delta import CheckedText, Delta, NoBaseline, delta
from pilotfish.model import Diagnostic, Severity
from support.values.findings import diagnostic

SOURCE = "import os\n\ndef f():\n    foo()\n    return bar\n"
FOO = diagnostic("foo is not defined", line=3, character=4, code="undefined")
BAR = diagnostic("bar is not defined", line=4, character=11, code="undefined")


def moved(item: Diagnostic, *, lines: int = 0, characters: int = 0) -> Diagnostic:
    """The same diagnostic elsewhere."""
    start, end = item.range.start, item.range.end
    start = replace(start, line=start.line + lines, character=start.character + characters)
    end = replace(end, line=end.line + lines, character=end.character + characters)
    return replace(item, range=replace(item.range, start=start, end=end))


def change(
    before: str, old: list[Diagnostic], after: str, new: list[Diagnostic]
) -> tuple[list[str], list[str], list[str]]:
    """Places and messages of what was introduced, what is older, what was fixed."""
    answer = delta(CheckedText(before, tuple(old)), CheckedText(after, tuple(new)))
    assert isinstance(answer, Delta)
    return spoken(answer.introduced), spoken(answer.older), spoken(answer.fixed)


def spoken(items: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{item.range.start.line}:{item.range.start.character} {item.message}" for item in items]


@pytest.mark.proves("DIAG-8")
@pytest.mark.parametrize(
    ("after", "new", "introduced", "older", "fixed"),
    [
        pytest.param(SOURCE, [FOO], [], ["3:4 foo is not defined"], [], id="nothing changed"),
        pytest.param("# new\n\n" + SOURCE, [moved(FOO, lines=2)], [], ["5:4 foo is not defined"], [], id="moved down"),
        pytest.param(SOURCE[11:], [moved(FOO, lines=-2)], [], ["1:4 foo is not defined"], [], id="moved up"),
        pytest.param(
            SOURCE.replace("\n", "\r\n"), [FOO], [], ["3:4 foo is not defined"], [], id="line ends became Windows ones"
        ),
        pytest.param(
            SOURCE.replace("foo()", "foo(1)"),
            [FOO],
            [],
            ["3:4 foo is not defined"],
            [],
            id="its line was edited behind it",
        ),
        pytest.param(
            SOURCE.replace("foo()", "x = foo()"),
            [moved(FOO, characters=4)],
            [],
            ["3:8 foo is not defined"],
            [],
            id="its line was edited before it",
        ),
        pytest.param(
            SOURCE.replace("    foo()", "    if os:\n        foo()"),
            [moved(FOO, lines=1, characters=4)],
            [],
            ["4:8 foo is not defined"],
            [],
            id="its line was indented",
        ),
        pytest.param(
            SOURCE.replace("    foo()\n", "") + "    foo()\n",
            [moved(FOO, lines=1)],
            [],
            ["4:4 foo is not defined"],
            [],
            id="its line was moved below another",
        ),
        pytest.param(
            SOURCE.replace("    foo()\n", "    foo()\n    foo()\n"),
            [FOO, moved(FOO, lines=1)],
            ["4:4 foo is not defined"],
            ["3:4 foo is not defined"],
            [],
            id="its line was doubled: the second is new",
        ),
        pytest.param(
            SOURCE.replace("foo()", "foo(); foo()"),
            [FOO, moved(FOO, characters=7)],
            ["3:11 foo is not defined"],
            ["3:4 foo is not defined"],
            [],
            id="a second one on its line is new",
        ),
        pytest.param(
            SOURCE,
            [FOO, BAR],
            ["4:11 bar is not defined"],
            ["3:4 foo is not defined"],
            [],
            id="another error appeared without a change here",
        ),
        pytest.param(
            SOURCE.replace("    foo()\n", ""), [], [], [], ["3:4 foo is not defined"], id="its line was removed"
        ),
        pytest.param(SOURCE, [], [], [], ["3:4 foo is not defined"], id="it was fixed from elsewhere"),
        pytest.param(
            SOURCE.replace("foo()", "baz()"),
            [replace(FOO, message="baz is not defined")],
            ["3:4 baz is not defined"],
            [],
            ["3:4 foo is not defined"],
            id="it became another error",
        ),
        pytest.param(
            SOURCE,
            [replace(FOO, severity=Severity.WARNING, code="other", source="lint")],
            [],
            ["3:4 foo is not defined"],
            [],
            id="the same words from another server in the same place",
        ),
        pytest.param(
            SOURCE,
            [moved(FOO, characters=3)],
            [],
            ["3:7 foo is not defined"],
            [],
            id="the server points elsewhere on the same line",
        ),
        pytest.param("", [], [], [], ["3:4 foo is not defined"], id="the file was emptied"),
        pytest.param(
            "foo()\n",
            [diagnostic("foo is not defined", code="undefined")],
            [],
            ["0:0 foo is not defined"],
            [],
            id="rewritten",
        ),
    ],
)
def test_an_edit_is_told_from_what_was_there(
    after: str, new: list[Diagnostic], introduced: list[str], older: list[str], fixed: list[str]
) -> None:
    assert change(SOURCE, [FOO], after, new) == (introduced, older, fixed)


@pytest.mark.proves("DIAG-14")
def test_a_warning_that_settings_make_an_error_is_introduced_and_an_error_that_they_soften_is_older() -> None:
    warning = replace(FOO, severity=Severity.WARNING)
    assert change(SOURCE, [warning, BAR], SOURCE, [FOO, BAR]) == (
        ["3:4 foo is not defined"],
        ["4:11 bar is not defined"],
        ["3:4 foo is not defined"],
    )
    assert change(SOURCE, [FOO], SOURCE, [warning]) == ([], ["3:4 foo is not defined"], [])
    # Of two servers that agree one is kept, and not always the same one.
    assert change(SOURCE, [replace(warning, server="other")], SOURCE, [FOO]) == ([], ["3:4 foo is not defined"], [])


@pytest.mark.proves("DIAG-8")
def test_two_blocks_that_change_places_keep_their_errors() -> None:
    first = "def a():\n    foo()\n    one()\n"
    second = "def b():\n    bar()\n"
    foo, bar = diagnostic("foo", line=1, character=4), diagnostic("bar", line=4, character=4)
    swapped = [moved(bar, lines=-3), moved(foo, lines=2)]
    assert change(first + second, [foo, bar], second + first, swapped) == ([], ["1:4 bar", "3:4 foo"], [])


@pytest.mark.proves("DIAG-8")
def test_an_error_that_leaps_between_unchanged_twin_lines_is_fixed_here_and_introduced_there() -> None:
    before = "def a():\n    return x\ndef b():\n    return x\n"
    old, new = diagnostic("x", line=1, character=11), diagnostic("x", line=3, character=11)
    assert change(before, [old], before, [new]) == (["3:11 x"], [], ["1:11 x"])


@pytest.mark.proves("DIAG-8")
def test_a_diagnostic_about_the_whole_file_stays_at_its_top() -> None:
    whole = diagnostic("missing docstring")
    assert change("a\n", [whole], "import os\na\n", [whole]) == ([], ["0:0 missing docstring"], [])


@pytest.mark.proves("DIAG-8")
def test_a_diagnostic_at_the_end_of_the_file_stays_at_its_end() -> None:
    old, new = diagnostic("unexpected end of file", line=1), diagnostic("unexpected end of file", line=3)
    assert change("f(\n", [old], "f(\na\nb\n", [new]) == ([], ["3:0 unexpected end of file"], [])


@pytest.mark.proves("DIAG-8")
def test_a_line_number_inside_a_message_may_change() -> None:
    old = diagnostic("Redefinition of `f` from line 1", line=4)
    new = diagnostic("Redefinition of `f` from line 3", line=6)
    text = "def f(): ...\n\n\n\ndef f(): ...\n"
    assert change(text, [old], "\n# top\n" + text, [new]) == ([], ["6:0 Redefinition of `f` from line 3"], [])


@pytest.mark.proves("DIAG-8")
def test_what_explains_a_message_may_change() -> None:
    old = diagnostic("Invalid override\ninfo: parameter `a` is missing", line=0)
    new = diagnostic("Invalid override\ninfo: parameter `b` is missing\ninfo: see there", line=0)
    introduced, older, fixed = change("x\n", [old], "x\n", [new])
    assert (introduced, len(older), fixed) == ([], 1, [])


@pytest.mark.proves("DIAG-8")
def test_which_member_of_a_union_a_message_explains_may_change_unless_its_line_does() -> None:
    head = "Property 'revoke' does not exist on type 'State'."
    old = diagnostic(
        f"{head}\n  Property 'revoke' does not exist on type 'MapState'.", line=3, character=4, code="2339"
    )
    new = replace(old, message=f"{head}\n  Property 'revoke' does not exist on type 'SetState'.")
    assert change(SOURCE, [old], SOURCE, [new])[0] == []
    edited = SOURCE.replace("foo()", "foo(1)")
    assert change(SOURCE, [old], edited, [new])[0] == spoken((new,))


def test_a_fix_may_be_offered_later() -> None:
    old, new = diagnostic("Unknown type name 'context'"), diagnostic("Unknown type name 'context' (fix available)")
    introduced, older, fixed = change("x\n", [old], "x\n", [new])
    assert (introduced, len(older), fixed) == ([], 1, [])


def test_which_members_of_a_long_type_are_shown_may_change() -> None:
    words = "'string' can't be used to index type '{ a?: %s; ... 4 more ...; z: 1; }'."
    old, new = diagnostic(words % '"never" | "always"'), diagnostic(words % '"observed"', line=1)
    assert change("x\n", [old], "y\nx\n", [new])[0] == []
    other = diagnostic(words.replace("string", "number") % '"never" | "always"', line=1)
    assert change("x\n", [old], "y\nx\n", [other])[0] != []


@pytest.mark.proves("DIAG-8")
def test_a_formatter_moves_errors_and_makes_none() -> None:
    before = "function f() {\n    return (g as any).apply(this, 'a')\n}\nfunction h() { return this; }\n"
    after = (
        'function f() {\n  return (g as any).apply(\n    this,\n    "a",\n  );\n}\nfunction h() {\n  return this;\n}\n'
    )
    old = [diagnostic("this", line=1, character=28), diagnostic("this", line=3, character=22)]
    new = [diagnostic("this", line=2, character=4), diagnostic("this", line=7, character=9)]
    assert change(before, old, after, new) == ([], ["2:4 this", "7:9 this"], [])
    # At another place of the same code it is another one.
    assert change(before, old[:1], after, new[1:])[0] == ["7:9 this"]


@pytest.mark.proves("DIAG-8")
def test_another_number_inside_a_message_may_not() -> None:
    old, new = diagnostic("expected 2 arguments"), diagnostic("expected 3 arguments")
    assert change("f()\n", [old], "f()\n", [new]) == (["0:0 expected 3 arguments"], [], ["0:0 expected 2 arguments"])


@pytest.mark.proves("DIAG-8")
@pytest.mark.parametrize(
    ("after", "new", "is_older"),
    [
        pytest.param(SOURCE, replace(FOO, message="foo needs 2 more"), True, id="in other words"),
        pytest.param("# new\n" + SOURCE, replace(moved(FOO, lines=1), message="foo needs 2 more"), True, id="lower"),
        pytest.param(SOURCE, replace(FOO, message="foo needs 2 more", code="count"), False, id="of another rule"),
        pytest.param(SOURCE, replace(FOO, message="foo needs 2 more", server="lint"), False, id="of another server"),
        pytest.param(
            SOURCE, replace(moved(FOO, characters=2), message="foo needs 2 more"), False, id="beside the place"
        ),
        pytest.param(
            SOURCE.replace("foo()", "foo(1)"),
            replace(FOO, message="foo needs 2 more"),
            False,
            id="where its line was written anew",
        ),
    ],
)
def test_what_was_broken_and_is_broken_by_the_same_rule_at_its_place_is_no_new_error(
    after: str, new: Diagnostic, *, is_older: bool
) -> None:
    answer = delta(CheckedText(SOURCE, (FOO,)), CheckedText(after, (new,)))
    assert answer == (Delta((), (new,), (), reworded=(new,)) if is_older else Delta((new,), (), (FOO,)))


@pytest.mark.proves("DIAG-8")
def test_beside_an_error_that_stays_a_second_one_of_its_rule_at_its_place_is_new() -> None:
    second = replace(FOO, message="foo needs 2 more")
    assert delta(CheckedText(SOURCE, (FOO,)), CheckedText(SOURCE, (FOO, second))) == Delta((second,), (FOO,), ())


@pytest.mark.proves("DIAG-8")
def test_without_a_baseline_nothing_is_claimed() -> None:
    assert delta(None, CheckedText(SOURCE, (BAR, FOO))) == NoBaseline((FOO, BAR))


@pytest.mark.proves("DIAG-8")
def test_in_a_file_that_was_created_all_are_introduced() -> None:
    assert delta(CheckedText("", ()), CheckedText(SOURCE, (BAR, FOO))) == Delta((FOO, BAR), (), ())


@pytest.mark.proves("DIAG-8")
def test_a_file_whose_text_is_not_at_hand_keeps_its_places() -> None:
    before, after = CheckedText("", (FOO, BAR)), CheckedText("", (BAR, moved(FOO, lines=9)))
    assert delta(before, after) == Delta((moved(FOO, lines=9),), (BAR,), (FOO,))


# --- Properties ---------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(["", "    ", "a", "    a", "b", "}"]), max_size=8).map("\n".join)
ITEMS = st.builds(
    diagnostic,
    st.sampled_from(["m", "n", "from line 1", "from line 2"]),
    line=st.integers(0, 9),
    character=st.integers(0, 2),
    severity=st.sampled_from(Severity),
    server=st.sampled_from(["one", "two"]),
)
SNAPSHOTS = st.builds(CheckedText, TEXTS, st.lists(ITEMS, max_size=8).map(tuple))


@pytest.mark.proves("DIAG-8")
@given(SNAPSHOTS, SNAPSHOTS)
def test_every_diagnostic_is_counted_once(before: CheckedText, after: CheckedText) -> None:
    answer = delta(before, after)
    assert isinstance(answer, Delta)
    assert Counter(answer.introduced) + Counter(answer.older) == Counter(after.diagnostics)
    assert Counter(answer.fixed) <= Counter(before.diagnostics)
    assert messages(answer.fixed) + messages(answer.older) == messages(before.diagnostics)


@pytest.mark.proves("DIAG-8")
@given(SNAPSHOTS)
def test_nothing_changed_means_nothing_introduced_and_nothing_fixed(snapshot: CheckedText) -> None:
    answer = delta(snapshot, snapshot)
    assert isinstance(answer, Delta)
    assert (answer.introduced, answer.fixed) == ((), ())


@pytest.mark.proves("DIAG-8")
@given(TEXTS, st.lists(ITEMS, max_size=8), st.integers(1, 4))
def test_blank_lines_above_change_nothing(text: str, items: list[Diagnostic], blank: int) -> None:
    """A diagnostic about a blank line is left out: among blank lines nobody can say which one is which."""
    lines = text.split("\n")
    spoken_of = tuple(item for item in items if item.range.start.line < len(lines) and lines[item.range.start.line])
    after = CheckedText("\n" * blank + text, tuple(moved(item, lines=blank) for item in spoken_of))
    answer = delta(CheckedText(text, spoken_of), after)
    assert isinstance(answer, Delta)
    assert (answer.introduced, answer.fixed) == ((), ())


@pytest.mark.proves("DIAG-8")
@given(
    st.permutations(range(9)),
    st.sets(st.integers(0, 8)),
    st.sets(st.integers(9, 12)),
    st.sets(st.integers(0, 8)),
    st.sets(st.integers(0, 12)),
)
def test_where_every_line_is_unique_the_answer_is_that_of_the_lines_themselves(
    order: list[int], removed: set[int], added: set[int], wrong_before: set[int], wrong_after: set[int]
) -> None:
    """The oracle knows each line by its number, whatever happened to its place: moved, kept, removed or added."""
    old_lines = list(range(9))
    new_lines = [number for number in [*order, *added] if number not in removed]
    before, after = numbered(old_lines, wrong_before), numbered(new_lines, wrong_after)
    answer = delta(before, after)
    assert isinstance(answer, Delta)
    was, now = wrong_before & set(old_lines), wrong_after & set(new_lines)
    assert messages(answer.introduced) == Counter(f"number {number}" for number in now - was)
    assert messages(answer.older) == Counter(f"number {number}" for number in now & was)
    assert messages(answer.fixed) == Counter(f"number {number}" for number in was - now)


def numbered(lines: list[int], wrong: set[int]) -> CheckedText:
    """One line a number, and a diagnostic of its own on each that is wrong."""
    found = tuple(diagnostic(f"number {number}", line=line) for line, number in enumerate(lines) if number in wrong)
    return CheckedText("\n".join(f"line {number}" for number in lines), found)


def messages(items: tuple[Diagnostic, ...]) -> Counter[str]:
    return Counter("from line" if item.message.startswith("from line") else item.message for item in items)
