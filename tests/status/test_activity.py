"""What the page and the panel show of edits: lines before and after, and totals of a day."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, Meta, State
from pilotfish.api.questions import Operation, Question
from pilotfish.api.status import DayTotals, QuestionShown
from pilotfish.model import AbsPath
from pilotfish.service.status.activity import feedback_shown, question_shown
from pilotfish.service.status.recent_feedback import (
    KIND,
    MAX_CHARACTERS,
    MAX_SHOWN,
    AnsweredQuestion,
    EditedFile,
    RecentFeedback,
    ShownFeedback,
)
from pilotfish.service.workspaces import ClientSession
from pilotfish.store import Store

pytestmark = pytest.mark.proves("HTTP-2")

CLIENT = ClientSession("one", AbsPath("/project"), AbsPath("/project"), "agent", conversation="talk")
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


def test_an_edit_that_waits_is_shown_and_counted_once_with_what_it_is_judged_with() -> None:
    recent, told = RecentFeedback(), shown("", "", introduced=1)
    waiting = ShownFeedback(NOON, CLIENT, ("b.py",), Feedback("", State.UNAVAILABLE, 0, "it waits"), waits=True)
    recent.add(replace(waiting, client=replace(CLIENT, id="two")))
    recent.add(waiting)
    assert recent.today(CLIENT.root, NOON) == DayTotals()
    recent.add(replace(waiting, paths=("a.py",)))
    recent.add(told)
    recent.add(replace(told, paths=()))
    assert [(one.paths, one.waits) for one in recent.all()] == [
        ((), False),
        (("b.py", "a.py"), False),
        (("b.py",), True),
    ]
    assert recent.today(CLIENT.root, NOON) == DayTotals(edits=1, told=1, introduced=1)


def test_a_busy_project_leaves_room_for_the_last_edits_of_another() -> None:
    recent, elsewhere = RecentFeedback(), replace(CLIENT, root=AbsPath("/quiet"))
    recent.add(replace(shown("", ""), client=elsewhere))
    for _ in range(MAX_SHOWN + 5):
        recent.add(shown("", ""))
    assert [one.client.root for one in recent.all()] == [CLIENT.root] * MAX_SHOWN + [elsewhere.root]


def test_a_day_has_its_own_totals() -> None:
    recent = RecentFeedback()
    recent.add(shown("", "", introduced=2, duration_ms=1000))
    recent.add(shown("", "", fixed=1, duration_ms=200))
    assert recent.today(CLIENT.root, NOON) == DayTotals(edits=2, told=2, introduced=2, fixed=1, saved_ms=800)
    assert recent.today(CLIENT.root, NOON + DAY) == DayTotals()
    assert recent.today(AbsPath("/other"), NOON) == DayTotals()
    recent.add(shown("", "", NOON + DAY, duration_ms=100))
    assert recent.today(CLIENT.root, NOON + DAY) == DayTotals(edits=1, told=1, saved_ms=900)


def test_a_day_goes_on_when_the_daemon_is_started_anew(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    RecentFeedback(store).add(shown("", "", introduced=2, duration_ms=1000))
    again = RecentFeedback(store)
    assert again.today(CLIENT.root, NOON) == DayTotals(edits=1, told=1, introduced=2)
    again.add(shown("", "", fixed=1, duration_ms=200))
    assert again.today(CLIENT.root, NOON) == DayTotals(edits=2, told=2, introduced=2, fixed=1, saved_ms=800)
    store.put(KIND, CLIENT.root, b"of another version")
    assert RecentFeedback(store).today(CLIENT.root, NOON) == DayTotals()
    store.close()


def test_questions_are_kept_the_newest_first_without_their_texts() -> None:
    recent = RecentFeedback()
    definition = Question(operation=Operation.DEFINITION, file_path="a.py", line=3, symbol="f", text="x" * 1000)
    found = Meta(7, 1, partial=False, state=State.FRESH, total=2)
    for question in (Question(operation=Operation.WORKSPACE_SYMBOL, query="Route"), definition):
        recent.add_question(AnsweredQuestion(NOON, CLIENT, question, found))
    newest, oldest = recent.questions()
    assert newest.question.text is None
    assert question_shown(newest) == QuestionShown(
        at=round(NOON * 1000),
        root="/project",
        host="agent",
        session="one",
        conversation="talk",
        operation="goToDefinition",
        about="a.py:3 f",
        state=State.FRESH,
        duration_ms=7,
        results=2,
    )
    assert question_shown(oldest).about == "Route"
