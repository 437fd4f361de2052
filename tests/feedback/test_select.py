"""What is shown of what is known."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.config.schema import SEVERITIES, FeedbackSettings, TouchKind
from pilotfish.feedback.delta import Delta, NoBaseline
from pilotfish.feedback.select import Checked, Chosen, Finding, Selection, Tally, cut, findings, selection
from pilotfish.model import AbsPath, Diagnostic, Severity
from support.values.findings import WORKSPACE, checked, compared, diagnostic, errors
from support.values.limits import LLXPRT, SEEDS

WRITES = replace(LLXPRT, other_files_after=("write",))
"""The seeds' own rule: other files after a write alone."""
BOTH = replace(LLXPRT, include_severities=("error", "warning"))


def warning(message: str = "odd", *, line: int = 0) -> Diagnostic:
    return diagnostic(message, line=line, severity=Severity.WARNING)


def outline(chosen: Selection) -> list[tuple[str, int, int]]:
    """Of every file: its name, how many are shown, how many left out."""
    files = (*chosen.edited, *chosen.others)
    return [(file.path.removeprefix(f"{WORKSPACE}/"), len(file.shown), file.left_out) for file in files]


def shown(file: Chosen) -> list[str]:
    return [found.diagnostic.message for found in file.shown]


@pytest.mark.proves("FMT-5", "FMT-7", "DIAG-6", "CFG-6")
@pytest.mark.parametrize(
    ("edited", "others", "kind", "limits", "expected"),
    [
        pytest.param([checked("a", errors(1))], [checked("b", errors(1))], "edit", WRITES, [("a", 1, 0)], id="BR-2"),
        pytest.param(
            [checked("a", errors(1))],
            [checked("b", errors(1))],
            "write",
            LLXPRT,
            [("a", 1, 0), ("b", 1, 0)],
            id="BR-3",
        ),
        pytest.param([checked("a", [warning(), diagnostic()])], [], "edit", LLXPRT, [("a", 1, 0)], id="BR-4"),
        pytest.param([checked("a", errors(21))], [], "edit", LLXPRT, [("a", 20, 1)], id="BR-5"),
        pytest.param(
            [checked("a", errors(4))], [], "edit", replace(LLXPRT, max_per_file=3), [("a", 3, 1)], id="BR-5 configured"
        ),
        pytest.param(
            [checked("a")],
            [checked(f"b{number}", errors(1)) for number in range(7)],
            "write",
            LLXPRT,
            [("a", 0, 0), *((f"b{number}", 1, 0) for number in range(5))],
            id="BR-6",
        ),
        pytest.param(
            [checked("a", errors(20))],
            [checked("b", errors(20)), checked("c", errors(20))],
            "write",
            LLXPRT,
            [("a", 20, 0), ("b", 20, 0), ("c", 10, 10)],
            id="BR-7",
        ),
        pytest.param(
            [checked("a", [warning() for _ in range(30)] + list(errors(25)))],
            [checked("b", errors(25)), checked("c", errors(12))],
            "write",
            LLXPRT,
            [("a", 20, 5), ("b", 20, 5), ("c", 10, 2)],
            id="BR-8",
        ),
        pytest.param([], [checked("b", errors(3))], "patch", SEEDS["pi"], [], id="BR-11 EC-37 EC-38"),
        pytest.param(
            [],
            [compared("b", introduced=errors(1), older=errors(2)), checked("c", errors(3))],
            "patch",
            LLXPRT,
            [("b", 1, 0)],
            id="FMT-7 what a deletion broke is shown",
        ),
        pytest.param(
            [checked("z", errors(1))],
            [checked("c", errors(1)), checked("a", errors(1)), checked("b", errors(1))],
            "write",
            LLXPRT,
            [("z", 1, 0), ("a", 1, 0), ("b", 1, 0), ("c", 1, 0)],
            id="BR-16",
        ),
        pytest.param(
            [checked("b", errors(1)), checked("a", errors(2))],
            [checked("c", errors(1))],
            "patch",
            WRITES,
            [("b", 1, 0), ("a", 2, 0)],
            id="BR-17",
        ),
        pytest.param(
            [checked("a")],
            [checked("b", errors(1)), checked("c")],
            "write",
            LLXPRT,
            [("a", 0, 0), ("b", 1, 0)],
            id="BR-35 BR-36 EC-42 EC-43",
        ),
        pytest.param([checked("a", [warning(), *errors(30)])], [], "edit", BOTH, [("a", 20, 11)], id="BR-38"),
        pytest.param([checked("a", errors(25))], [], "edit", LLXPRT, [("a", 20, 5)], id="EC-17"),
        pytest.param(
            [checked("a", errors(10))],
            [checked(f"b{number}", errors(10)) for number in range(9)],
            "write",
            LLXPRT,
            [("a", 10, 0), ("b0", 10, 0), ("b1", 10, 0), ("b2", 10, 0), ("b3", 10, 0)],
            id="EC-18",
        ),
        pytest.param(
            [checked("a", errors(50))],
            [checked("b", errors(3))],
            "write",
            replace(LLXPRT, max_per_file=50),
            [("a", 50, 0)],
            id="EC-19",
        ),
        pytest.param(
            [checked("a", errors(50))],
            [checked("b", errors(3))],
            "write",
            LLXPRT,
            [("a", 20, 30), ("b", 3, 0)],
            id="EC-19 what its own cap hides uses nothing up",
        ),
        pytest.param([checked("a", [warning(), *errors(1)])], [], "edit", LLXPRT, [("a", 1, 0)], id="EC-24"),
        pytest.param(
            [checked("a", [*(warning(line=line) for line in range(15)), *errors(15)])],
            [],
            "edit",
            BOTH,
            [("a", 20, 10)],
            id="EC-25",
        ),
        pytest.param([checked("a")], [], "write", LLXPRT, [("a", 0, 0)], id="EC-36 EC-39 EC-44"),
        pytest.param(
            [checked("a", errors(30)), checked("b", errors(30)), checked("c", errors(30)), checked("d", errors(7))],
            [checked("e", errors(1))],
            "patch",
            SEEDS["pi"],
            [("a", 20, 10), ("b", 20, 10), ("c", 10, 20), ("d", 0, 7)],
            id="edited files that find no place are counted",
        ),
        pytest.param(
            [checked("a", errors(100))] * 2,
            [checked("a", errors(3)), checked("b", errors(1)), checked("b", errors(1))],
            "write",
            SEEDS["opencode"],
            [("a", 20, 80), ("b", 1, 0)],
            id="a file is shown once, and as edited when it is",
        ),
        pytest.param(
            [checked(f"a{number}", errors(20)) for number in range(5)],
            [],
            "patch",
            SEEDS["opencode"],
            [(f"a{number}", 20, 0) for number in range(5)],
            id="opencode has no total",
        ),
        pytest.param(
            [checked("a")],
            [
                checked("b", [warning()]),
                checked("d", errors(1)),
                checked("c", [warning(), *errors(1)]),
                checked("e", [warning()]),
            ],
            "edit",
            SEEDS["pi"],
            [("a", 0, 0), ("c", 1 + 1, 0), ("d", 1, 0), ("b", 1, 0)],
            id="pi shows the worst other files first, after an edit too",
        ),
    ],
)
def test_the_limits_hold_in_their_order(
    edited: list[Checked],
    others: list[Checked],
    kind: TouchKind,
    limits: FeedbackSettings,
    expected: list[tuple[str, int, int]],
) -> None:
    assert outline(selection(edited, others, kind, limits)) == expected


@pytest.mark.proves("FMT-4")
def test_inside_a_file_the_order_is_by_line_then_column() -> None:
    places = [(3, 0), (1, 9), (1, 2), (0, 5)]
    items = [diagnostic(f"{line}:{character}", line=line, character=character) for line, character in places]
    chosen = selection([checked("a", items)], [], "edit", LLXPRT)
    assert shown(chosen.edited[0]) == ["0:5", "1:2", "1:9", "3:0"]


@pytest.mark.proves("FMT-4", "CFG-6")
def test_in_the_order_of_pi_the_worse_come_first_and_then_the_earlier() -> None:
    items = [warning("odd 0", line=0), *errors(2, first_line=1), warning("odd 9", line=9)]
    chosen = selection([checked("a", items)], [], "edit", SEEDS["pi"])
    assert shown(chosen.edited[0]) == ["wrong 0", "wrong 1", "odd 0", "odd 9"]
    assert shown(cut(chosen, 3).edited[0]) == ["wrong 0", "wrong 1", "odd 0"]


@pytest.mark.proves("FMT-5")
def test_a_cap_keeps_the_worse_and_shows_it_by_place() -> None:
    items = [warning("odd 0", line=0), *errors(2, first_line=1), warning("odd 9", line=9)]
    chosen = selection([checked("a", items)], [], "edit", replace(BOTH, max_per_file=3))
    assert shown(chosen.edited[0]) == ["odd 0", "wrong 0", "wrong 1"]


@pytest.mark.proves("FMT-5", "DIAG-8")
def test_a_cap_keeps_what_the_edit_introduced() -> None:
    new = diagnostic("new", line=90)
    chosen = selection([compared("a", introduced=[new], older=errors(30))], [], "edit", LLXPRT)
    assert shown(chosen.edited[0]) == [*(f"wrong {number}" for number in range(19)), "new"]


@pytest.mark.proves("FMT-4", "DIAG-8")
def test_other_files_that_the_edit_broke_find_place_before_those_that_were_broken_before() -> None:
    old = [compared(name, older=errors(20)) for name in "abcdefg"]
    broken = compared("z", introduced=errors(1))
    chosen = selection([checked("edited")], [*old, broken], "write", LLXPRT)
    assert outline(chosen) == [("edited", 0, 0), ("a", 20, 0), ("b", 20, 0), ("c", 9, 11), ("z", 1, 0)]
    assert len(chosen.others_left_out) == 4


@pytest.mark.proves("DIAG-8")
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param(
            compared("a", introduced=[diagnostic("new", line=5)], older=errors(3), fixed=errors(2)),
            ["new"],
            id="older ones go",
        ),
        pytest.param(compared("a", older=errors(3)), [], id="only older ones"),
        pytest.param(checked("a", errors(2)), ["wrong 0", "wrong 1"], id="without a baseline nothing is hidden"),
    ],
)
def test_only_new_hides_what_is_known_to_be_older(file: Checked, expected: list[str]) -> None:
    chosen = selection([file], [], "edit", replace(LLXPRT, only_new=True))
    assert shown(chosen.edited[0]) == expected
    assert chosen.edited[0].left_out == 0


@pytest.mark.proves("DIAG-8")
def test_the_tally_counts_the_chosen_severities_shown_or_not() -> None:
    file = compared(
        "a", introduced=[*errors(25), warning()], older=[warning(), diagnostic()], fixed=[warning(), *errors(3)]
    )
    chosen = selection([file, checked("b", errors(1))], [], "patch", replace(LLXPRT, only_new=True))
    assert [each.tally for each in chosen.edited] == [Tally(introduced=25, older=1, fixed=3), None]


@pytest.mark.parametrize(
    ("severities", "errors_only"),
    [
        pytest.param(("error",), True, id="errors"),
        pytest.param(("error", "hint"), False, id="errors and hints"),
        pytest.param(("warning",), False, id="warnings"),
    ],
)
def test_a_selection_says_whether_it_is_about_errors_only(severities: tuple[str, ...], errors_only: bool) -> None:
    assert (
        selection([checked("a")], [], "edit", replace(LLXPRT, include_severities=severities)).errors_only is errors_only
    )


def test_findings_carry_what_is_known_about_their_age() -> None:
    first, second = errors(2)
    assert findings(NoBaseline((second, first))) == (Finding(first, None), Finding(second, None))
    assert findings(Delta((second,), (first,), ())) == (
        Finding(first, introduced=False),
        Finding(second, introduced=True),
    )


def test_a_cut_takes_from_the_other_files_first_and_counts() -> None:
    edited = [checked("a", errors(3)), checked("b", errors(2))]
    others = [compared("c", older=errors(2)), compared("d", introduced=errors(2))]
    whole = selection(edited, others, "write", LLXPRT)
    assert outline(whole) == [("a", 3, 0), ("b", 2, 0), ("c", 2, 0), ("d", 2, 0)]
    assert outline(cut(whole, 6)) == [("a", 3, 0), ("b", 2, 0), ("c", 0, 2), ("d", 1, 1)]
    assert outline(cut(whole, 2)) == [("a", 2, 1), ("b", 0, 2), ("c", 0, 2), ("d", 0, 2)]
    assert cut(whole, 9) == whole


@pytest.mark.proves("FMT-5", "DIAG-8")
def test_a_patch_shows_what_it_broke_in_its_last_file_before_what_was_broken_in_its_first() -> None:
    files = [compared(name, introduced=errors(1), older=errors(3)) for name in "ab"]
    chosen = selection(files, [], "patch", replace(LLXPRT, max_total_lines=3))
    assert outline(chosen) == [("a", 2, 2), ("b", 1, 3)]
    assert [found.introduced for found in chosen.edited[1].shown] == [True]


# --- Properties ---------------------------------------------------------------------------------------------------

ITEMS = st.lists(
    st.builds(diagnostic, st.sampled_from("mn"), line=st.integers(0, 3), severity=st.sampled_from(Severity)), max_size=5
).map(tuple)
CHANGES = st.builds(NoBaseline, ITEMS) | st.builds(Delta, ITEMS, ITEMS, ITEMS)
FILES = st.lists(
    st.builds(Checked, st.sampled_from("abcdef").map(lambda name: AbsPath(f"/project/{name}")), CHANGES), max_size=4
)
COUNTS = st.integers(0, 8)
KINDS = st.sampled_from(["edit", "write", "patch"])
SOME_LIMITS = st.builds(
    FeedbackSettings,
    include_severities=st.sets(st.sampled_from(list(SEVERITIES)), min_size=1).map(tuple),
    max_per_file=COUNTS,
    max_other_files=COUNTS,
    max_total_lines=COUNTS | st.none(),
    other_files_order=st.sampled_from(["path", "severity"]),
    other_files_after=st.lists(KINDS).map(tuple),
    only_new=st.booleans(),
)


@pytest.mark.proves("FMT-5")
@given(FILES, FILES, KINDS, SOME_LIMITS)
def test_no_limit_is_ever_exceeded(
    edited: list[Checked], others: list[Checked], kind: TouchKind, limits: FeedbackSettings
) -> None:
    chosen = selection(edited, others, kind, limits)
    files = (*chosen.edited, *chosen.others)
    assert len({file.path for file in files}) == len(files)
    assert all(len(file.shown) <= limits.max_per_file for file in files)
    assert len(chosen.others) <= limits.max_other_files
    assert limits.max_total_lines is None or chosen.size <= limits.max_total_lines
    assert {found.diagnostic.severity for file in files for found in file.shown} <= limits.severities
    assert all(file.shown for file in chosen.others)
    if any(file.left_out and len(file.shown) < limits.max_per_file for file in chosen.edited):
        assert chosen.others == ()


@pytest.mark.proves("FMT-5")
@given(FILES, SOME_LIMITS)
def test_what_is_not_shown_of_an_edited_file_is_counted(edited: list[Checked], limits: FeedbackSettings) -> None:
    known = {file.path: findings(file.change) for file in edited}
    for file in selection(edited, [], "patch", limits).edited:
        wanted = Counter(
            found
            for found in known[file.path]
            if found.diagnostic.severity in limits.severities and not (limits.only_new and found.introduced is False)
        )
        assert Counter(file.shown) <= wanted
        assert len(file.shown) + file.left_out == wanted.total()


@pytest.mark.proves("FMT-5", "DIAG-8")
@given(FILES, SOME_LIMITS)
def test_nothing_older_is_shown_in_place_of_what_the_edit_introduced(
    edited: list[Checked], limits: FeedbackSettings
) -> None:
    known = {file.path: findings(file.change) for file in edited}
    chosen = selection(edited, [], "patch", limits).edited
    if all(found.introduced is not False for file in chosen for found in file.shown):
        return
    for file in chosen:
        included = [found for found in known[file.path] if found.diagnostic.severity in limits.severities]
        new = sum(found.introduced is not False for found in included)
        assert sum(found.introduced is not False for found in file.shown) == min(new, limits.max_per_file)


@given(FILES, FILES, SOME_LIMITS, st.integers(0, 30))
def test_a_cut_loses_nothing_uncounted(
    edited: list[Checked], others: list[Checked], limits: FeedbackSettings, most: int
) -> None:
    whole = selection(edited, others, "write", limits)
    shorter = cut(whole, most)
    assert shorter.size == min(most, whole.size)
    for before, after in zip((*whole.edited, *whole.others), (*shorter.edited, *shorter.others), strict=True):
        assert after.path == before.path
        assert len(after.shown) + after.left_out == len(before.shown) + before.left_out
        assert set(after.shown) <= set(before.shown)
