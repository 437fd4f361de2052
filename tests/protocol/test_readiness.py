"""What a server says about its own work."""

import msgspec
import pytest

from pilotfish.protocol.readiness import MAX_TOKENS, Progress, Readiness


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
    assert readiness.running() == (Progress("Indexing", "3/5", 60, cancellable=True),)
    progress(readiness, 1, kind="end")
    assert not readiness.busy
    assert readiness.ended == 1


@pytest.mark.proves("C54")
def test_a_report_before_begin_counts_and_an_end_counts_once() -> None:
    readiness = Readiness()
    progress(readiness, "t", kind="report", percentage=1)
    assert readiness.running() == (Progress("", None, 1, cancellable=False),)
    progress(readiness, "t", kind="end")
    progress(readiness, "t", kind="end")
    progress(readiness, "never begun", kind="end")
    assert readiness.ended == 1


def test_ended_work_is_counted_by_how_its_token_starts_and_the_count_is_bounded() -> None:
    readiness = Readiness()
    for token in ("check/0", "check/1", "check/0", "index"):
        progress(readiness, token, kind="begin", title="t")
        progress(readiness, token, kind="end")
    assert (readiness.ended_of("check/"), readiness.ended_of("index"), readiness.ended_of("x")) == (3, 1, 0)
    for token in range(MAX_TOKENS):
        progress(readiness, token, kind="begin", title="t")
        progress(readiness, token, kind="end")
    assert readiness.ended_of("check/0") == 0


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
    assert readiness.running()[0].title == "10"


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
