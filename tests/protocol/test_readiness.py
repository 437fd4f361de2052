"""What a server says about its own work."""

from math import inf

import msgspec
import pytest

from pilotfish.protocol.readiness import MAX_TOKENS, RESTART_SECONDS, Readiness


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def progress(readiness: Readiness, token: object, **value: object) -> None:
    readiness.progress(raw({"token": token, "value": value}))


@pytest.mark.proves("C54", "C55")
def test_work_that_began_and_has_not_ended_means_busy() -> None:
    readiness = Readiness()
    assert not readiness.busy
    progress(readiness, 1, kind="begin", title="Indexing", cancellable=True)
    assert readiness.busy
    progress(readiness, 1, kind="report", message="3/5", percentage=60)
    assert readiness.running() == ("Indexing",)
    progress(readiness, 1, kind="end")
    assert not readiness.busy
    assert readiness.ended == 1


@pytest.mark.proves("C54")
def test_it_is_known_when_the_last_work_ended() -> None:
    readiness = Readiness()
    assert readiness.ended_at == -inf
    for token, kind, now in ((1, "begin", 1.0), (2, "begin", 2.0), (1, "end", 3.0), (2, "end", 4.0), (2, "end", 5.0)):
        readiness.progress(raw({"token": token, "value": {"kind": kind, "title": "t"}}), now)
    assert readiness.ended_at == 4


@pytest.mark.proves("C54", "DIAG-3")
def test_it_is_known_in_which_work_something_was_said_and_whether_a_change_came_into_it() -> None:
    readiness = Readiness()
    readiness.disturbed()
    for token, kind, now in ((1, "begin", 1.0), (1, "end", 2.0), (2, "begin", 3.0)):
        readiness.progress(raw({"token": token, "value": {"kind": kind, "title": "t"}}), now)
    assert readiness.work_at(1.5) == (1, True)
    assert readiness.work_at(2.5) == readiness.work_at(3.5) == (-inf, False), "outside, and in work that goes on"
    readiness.disturbed()
    readiness.progress(raw({"token": 2, "value": {"kind": "end"}}), 4.0)
    assert readiness.work_at(3.5) == (3, False)


@pytest.mark.proves("C54")
def test_a_report_before_begin_counts_and_an_end_counts_once() -> None:
    readiness = Readiness()
    progress(readiness, "t", kind="report", percentage=1)
    assert readiness.busy
    progress(readiness, "t", kind="end")
    progress(readiness, "t", kind="end")
    progress(readiness, "never begun", kind="end")
    assert readiness.ended == 1


@pytest.mark.proves("F93")
def test_a_server_is_behind_from_a_save_until_its_work_has_ended() -> None:
    readiness = Readiness()
    assert not readiness.is_behind("check/"), "nothing was saved"
    readiness.saved(0.0)
    assert readiness.is_behind("check/")
    progress(readiness, "check/0", kind="begin", title="t")
    assert readiness.is_behind("check/")
    progress(readiness, "check/0", kind="end")
    assert not readiness.is_behind("check/")
    progress(readiness, "check/1", kind="begin", title="t")
    assert readiness.is_behind("check/"), "it began by itself"


@pytest.mark.proves("F93")
def test_work_after_a_save_is_over_when_all_that_began_since_has_ended() -> None:
    readiness = Readiness()
    progress(readiness, "check/0", kind="begin", title="t")
    readiness.saved(0.0)
    # What ran before is cancelled: its end says nothing about the save.
    progress(readiness, "check/0", kind="end")
    assert (readiness.has_begun("check/"), readiness.has_ended("check/")) == (False, False)
    for token in ("check/0", "check/1", "index"):
        progress(readiness, token, kind="begin", title="t")
    progress(readiness, "check/0", kind="end")
    assert (readiness.has_begun("check/"), readiness.has_ended("check/")) == (True, False)
    progress(readiness, "check/1", kind="end")
    assert readiness.has_ended("check/")
    assert not readiness.has_ended("index")
    progress(readiness, "check/0", kind="begin", title="t")
    assert not readiness.has_ended("check/"), "it runs once more"
    readiness.saved(0.0)
    assert not readiness.has_begun("check/")


@pytest.mark.proves("F93")
@pytest.mark.parametrize(
    ("second", "begins", "counts"),
    [(1.0, 1.0005, False), (1.0, 1.5, True), (0.0, 0.0005, True)],
    ids=["on its way", "later", "saved together"],
)
def test_work_that_began_while_a_second_save_was_on_its_way_says_nothing_about_it(
    second: float, begins: float, counts: bool
) -> None:
    readiness = Readiness()
    for kind in ("begin", "end"):
        progress(readiness, "loading", kind=kind, title="t")
    readiness.saved(0.0)
    readiness.saved(second)
    for kind in ("begin", "end"):
        readiness.progress(raw({"token": "check", "value": {"kind": kind, "title": "t"}}), begins)
    assert readiness.has_ended("check") is counts


@pytest.mark.proves("F93")
@pytest.mark.parametrize(("saves", "sure_at"), [(1, -inf), (2, 2.0 + RESTART_SECONDS)])
def test_work_that_ends_after_several_saves_may_begin_once_more(saves: int, sure_at: float) -> None:
    readiness = Readiness()

    def work(kind: str, now: float) -> None:
        readiness.progress(raw({"token": "check", "value": {"kind": kind, "title": "t"}}), now)

    for number in range(saves):
        readiness.saved(0.001 * number)
    work("begin", 1.0)
    work("end", 2.0)
    assert readiness.sure_at == sure_at
    assert readiness.last_end(restarts=False) == sure_at
    assert readiness.last_end(restarts=True) == 2.0 + RESTART_SECONDS
    work("begin", 2.1)
    work("end", 3.0)
    assert readiness.has_ended("check")
    assert readiness.sure_at <= 3.0, "it was for the saves that are left"


def test_work_after_a_save_is_remembered_within_a_bound() -> None:
    readiness = Readiness()
    for token in range(2 * MAX_TOKENS):
        progress(readiness, token, kind="begin", title="t")
        progress(readiness, token, kind="end")
    assert not readiness.has_begun(str(2 * MAX_TOKENS - 1))
    readiness.saved(0.0)
    progress(readiness, "check", kind="begin", title="t")
    assert readiness.has_begun("check")


@pytest.mark.proves("C91", "C94")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"token": 1},
        3,
        {"token": 1, "value": 7},
        {"token": 1, "value": {"kind": 5}},
        {"token": 1, "value": {"items": []}},
    ],
)
def test_partial_results_and_malformed_progress_change_nothing(params: object) -> None:
    readiness = Readiness()
    readiness.progress(raw(params))
    assert not readiness.busy


def test_tokens_that_never_end_are_bounded() -> None:
    readiness = Readiness()
    for token in range(MAX_TOKENS + 10):
        progress(readiness, token, kind="begin", title=str(token))
    assert len(readiness.running()) == MAX_TOKENS
    assert readiness.running()[0] == "10"


def test_work_that_is_forgotten_as_it_runs_has_not_ended_before_its_token_ends_again() -> None:
    readiness = Readiness()
    readiness.saved(0.0)
    progress(readiness, "check/1", kind="begin", title="t")
    progress(readiness, "check/2", kind="begin", title="t")
    progress(readiness, "check/2", kind="end")
    for token in range(MAX_TOKENS):
        progress(readiness, token, kind="begin", title="t")
    assert readiness.has_begun("check/1")
    assert not readiness.has_ended("check/")
    assert readiness.is_behind("check/")
    for kind in ("begin", "end"):
        progress(readiness, "check/1", kind=kind, title="t")
    assert readiness.has_ended("check/")
    assert not readiness.is_behind("check/")


def test_server_status_says_whether_it_is_quiescent_and_well() -> None:
    readiness = Readiness()
    assert readiness.quiescent is None
    readiness.status(raw({"health": "warning", "quiescent": False}))
    assert readiness.busy
    assert readiness.health == "warning"
    readiness.status(raw({"quiescent": True}))
    assert not readiness.busy
    assert (readiness.health, readiness.quiescent) == ("warning", True)


@pytest.mark.parametrize("params", [3, {"health": 1, "quiescent": "yes"}])
def test_a_malformed_status_changes_nothing(params: object) -> None:
    readiness = Readiness()
    readiness.status(raw(params))
    assert (readiness.health, readiness.quiescent) == (None, None)


def test_a_server_with_a_word_of_its_own_for_it_is_busy_until_that_has_come() -> None:
    readiness = Readiness("workspace/projectInitializationComplete")
    assert readiness.busy
    assert not readiness.heard("window/_roslyn_showToast", raw({}))
    assert readiness.busy
    assert readiness.heard("workspace/projectInitializationComplete", raw(None))
    assert not readiness.busy
    assert Readiness().quiescent is None


def test_a_notification_of_its_own_says_that_the_project_is_loaded_by_its_type() -> None:
    readiness = Readiness("language/status ServiceReady")
    others: list[object] = [{"type": "Starting"}, 3, {}]
    for params in others:
        assert not readiness.heard("language/status", raw(params))
        assert readiness.busy
    assert readiness.heard("language/status", raw({"type": "ServiceReady"}))
    assert not readiness.busy
