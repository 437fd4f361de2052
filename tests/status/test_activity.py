"""What the page and the panel show of edits: lines before and after, and totals of a day."""

import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.status import DayTotals
from pilotfish.model import AbsPath
from pilotfish.service.status.activity import feedback_shown
from pilotfish.service.status.recent_feedback import MAX_CHARACTERS, EditedFile, RecentFeedback, ShownFeedback
from pilotfish.service.workspaces import ClientSession

pytestmark = pytest.mark.proves("HTTP-2")

CLIENT = ClientSession("one", AbsPath("/project"), AbsPath("/project"), "agent")
NOON = 1_700_000_000.0
DAY = 24 * 3600.0


def shown(
    before: str, after: str, at: float = NOON, *, duration_ms: int = 0, introduced: int = 0, fixed: int = 0
) -> ShownFeedback:
    told = Feedback("text", State.FRESH, duration_ms, introduced=introduced, fixed=fixed)
    return ShownFeedback(at, CLIENT, ("a.py",), told, (EditedFile(AbsPath("/project/a.py"), before, after),))


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        pytest.param("a\nb\nc\n", "a\nx\nc\n", [(2, ("b",), ("x",))], id="changed"),
        pytest.param("a\nc\n", "a\nb\nc\n", [(2, (), ("b",))], id="added"),
        pytest.param("a\nb\nc\n", "a\nc\n", [(2, ("b",), ())], id="removed"),
        pytest.param("", "a\n", [(1, (), ("a",))], id="new"),
        pytest.param("a\n", "a\n", [], id="same"),
        pytest.param("a\nb\nc\nd\n", "x\nb\nc\ny\n", [(1, ("a",), ("x",)), (4, ("d",), ("y",))], id="two places"),
        pytest.param("def f():\n    a\n", "def f():\n    b\n", [(2, ("    a",), ("    b",))], id="indented"),
        pytest.param("a\na\n", "a\na\na\n", [(3, (), ("a",))], id="repeated"),
    ],
)
def test_an_edit_is_the_lines_that_differ(before: str, after: str, places: list[object]) -> None:
    changes = feedback_shown(shown(before, after)).changes
    assert [(one.line, one.old, one.new) for one in changes] == places
    assert {one.path for one in changes} <= {"a.py"}


def test_a_large_edit_is_cut_and_counted() -> None:
    many = "".join(f"line {number}\n" for number in range(1000))
    (change,) = feedback_shown(shown("", many)).changes
    assert (change.line, change.new[0], len(change.new), change.more) == (1, "line 0", 8, 992)


def test_large_texts_are_not_kept() -> None:
    recent = RecentFeedback()
    recent.add(shown("x" * MAX_CHARACTERS, "y" * (MAX_CHARACTERS + 1)))
    assert [one.edits for one in recent.all()] == [()]


def test_a_day_has_its_own_totals() -> None:
    recent = RecentFeedback()
    recent.add(shown("", "", introduced=2, duration_ms=1000))
    recent.add(shown("", "", fixed=1, duration_ms=200))
    assert recent.today(CLIENT.root, NOON) == DayTotals(edits=2, told=2, introduced=2, fixed=1, saved_ms=800)
    assert recent.today(CLIENT.root, NOON + DAY) == DayTotals()
    assert recent.today(AbsPath("/other"), NOON) == DayTotals()
    recent.add(shown("", "", NOON + DAY, duration_ms=100))
    assert recent.today(CLIENT.root, NOON + DAY) == DayTotals(edits=1, told=1, saved_ms=900)
