"""What a check that ends late adds to what a conversation was told: everything once, and nothing lost (DIAG-11)."""

import pytest
from msgspec.structs import replace

from pilotfish.config.schema import FeedbackSettings
from pilotfish.feedback.conversation import Conversation, Standing
from pilotfish.feedback.delta import CheckedText, Comparison, Delta, NoBaseline, in_either
from pilotfish.feedback.text import Form
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.service.conversations.news import News, note_judged, what_is_left, without_told
from pilotfish.service.diagnostics.edit_feedback import Judged
from pilotfish.service.diagnostics.verdicts import BrokenFiles, FileVerdict, Outcome
from support.values.findings import diagnostic
from support.values.limits import LLXPRT

pytestmark = pytest.mark.proves("DIAG-11")

PATH = AbsPath("/root/user.x")
TEXT = "one\ntwo\n"
FIRST, SECOND = diagnostic("first"), diagnostic("second", line=1)


def judged(change: Comparison) -> Judged:
    """A check of something else, in which this other file was looked at."""
    verdict = FileVerdict(PATH, TEXT, (), listed=(FIRST, SECOND))
    return Judged((), {}, LLXPRT, BrokenFiles((verdict,), {PATH: change}, 1))


def told(*found: Diagnostic) -> Conversation:
    state = Conversation()
    state.judged(PATH, CheckedText(TEXT, found), Delta(found, (), ()), edited=False)
    return state


def test_what_was_told_is_not_found_once_more() -> None:
    (change,) = without_told(told(FIRST), judged(Delta((FIRST, SECOND), (), ()))).others.changes.values()
    assert change == Delta((SECOND,), (FIRST,), ())


def test_what_was_found_late_is_not_lost_where_a_later_check_cannot_compare() -> None:
    state = Conversation()
    state.found(PATH, CheckedText(TEXT, (FIRST,)), call=1, edited=False)
    note_judged(state, judged(NoBaseline((FIRST, SECOND))), 2)
    assert list(state.standing(Standing.LATE)) == [PATH]
    note_judged(state, judged(Delta((FIRST,), (SECOND,), ())), 3)
    assert list(state.standing(Standing.LATE)) == []


def test_what_a_file_may_have_broken_is_owed_after_another_edit_broke_the_file_itself() -> None:
    state = Conversation()
    state.owe_others(PATH, "before\n", call=1)
    note_judged(state, judged(Delta((FIRST,), (), ())), 2)
    assert state.unfinished == {PATH: "before\n"}
    state.found(PATH, CheckedText(TEXT, (FIRST,)), call=1, edited=True, unfinished="before\n")
    note_judged(state, judged(Delta((FIRST,), (), ())), 3)
    assert (state.untold, state.unfinished) == ({}, {PATH: "before\n"})


def test_an_edit_that_was_never_judged_is_owed_after_another_edit_broke_its_file() -> None:
    state = Conversation()
    state.owe(PATH, "before\n", call=1)
    note_judged(state, judged(Delta((FIRST,), (SECOND,), ())), 2)
    assert state.unjudged == {PATH: "before\n"}


def test_of_an_old_error_that_came_back_with_another_like_it_one_is_left() -> None:
    state, again = Conversation(), diagnostic("first", line=1)
    state.judged(PATH, CheckedText("", ()), Delta((), (), (FIRST,)), edited=True, before=TEXT)
    now = CheckedText(TEXT, (FIRST, again))
    state.judged(PATH, now, Delta((FIRST, again), (), ()), edited=True, before="")
    assert state.remaining(PATH, now, [FIRST.severity]) == (again,)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (told(FIRST), ["first"]),
        (Conversation(), ["user.x has errors, and there was no time to tell which of them are new."]),
    ],
)
def test_before_a_stop_nothing_is_said_not_to_be_checked_that_was(known: Conversation, expected: list[str]) -> None:
    known.owe(PATH, "before\n", call=1)
    known.changed.add(PATH)
    news = News(left={PATH: FileVerdict(PATH, TEXT, (Outcome("one", (FIRST,)),))})
    text, _ = what_is_left(known, news, Form(workspace=AbsPath("/root")), FeedbackSettings(no_verdict="say"), "")
    assert "was not checked" not in text
    assert all(words in text for words in expected)


def test_of_what_is_undone_nothing_is_said_to_be_unknown_before_a_stop() -> None:
    state, form, settings = Conversation(), Form(workspace=AbsPath("/root")), FeedbackSettings(no_verdict="say")
    state.wrote(PATH, "after\n", "before\n")
    state.owe_others(PATH, "before\n", call=1)
    text, _ = what_is_left(state.copied(), News(), form, settings, "")
    assert "may have broken could be checked in time" in text
    state.turn_ended()
    state.wrote(PATH, "before\n", "after\n")
    state.owe_others(PATH, "after\n", call=2)
    assert what_is_left(state.copied(), News(), form, settings, "") == ("", False)
    # As a record of another version has it: of that file nobody knows what it was.
    elder = replace(state.copied(), own_texts={**state.own_texts, AbsPath("/root/elder.py"): ("0",)})
    assert "could be checked in time" in what_is_left(elder, News(), form, settings, "")[0]
    state.wrote(AbsPath("/root/other.py"), "after\n", "before\n")
    text, _ = what_is_left(state, News(), form, settings, "")
    assert "may have broken could be checked in time" in text


def test_what_was_told_of_a_list_that_may_not_be_whole_is_told_before_the_stop() -> None:
    state, brought = Conversation(), Delta((FIRST,), (), ())
    unsignalled = FileVerdict(PATH, TEXT, (Outcome("one", (FIRST,), assumed=True, why="it did not say so"),))
    note_judged(state, Judged((unsignalled,), {PATH: brought}, LLXPRT, before={PATH: ""}), 1)
    for left, expected in [(unsignalled, "still there"), (replace(unsignalled, outcomes=()), "not be checked again")]:
        form = Form(workspace=AbsPath("/root"))
        text, _ = what_is_left(state, News(left={PATH: left}), form, FeedbackSettings(no_verdict="say"), "")
        heading, *errors = text.split("\n")
        assert expected in heading
        assert any("first" in line for line in errors)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (Delta((), (FIRST, SECOND), ()), Delta((SECOND,), (FIRST,), ())),
        # Right before this edit it was not there: so it was mended in between, and is new again.
        (Delta((FIRST,), (SECOND,), ()), Delta((FIRST, SECOND), (), ())),
    ],
)
def test_of_what_is_new_since_an_earlier_edit_only_the_untold_is_news(first: Delta, expected: Delta) -> None:
    assert in_either(first, Delta((FIRST, SECOND), (), ()), told=(FIRST,)) == expected
