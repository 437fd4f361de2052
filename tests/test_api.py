"""Our own questions and answers: what they look like, and that no answer can lie."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.api.answers import (
    Answer,
    Changes,
    Effort,
    Error,
    FileChange,
    Hover,
    Location,
    NotFresh,
    State,
    answer_from,
    diagnostic_of,
    error_of,
    is_empty,
)
from pilotfish.api.questions import Operation, Question, Touch
from pilotfish.errors import Bug, Code, Refused, Scene, ServerFailed
from pilotfish.model import Diagnostic, Position, Range, Severity

HERE = Location(path="a.py", line=1, character=1, end_line=1, end_character=2)
CRASHED = Error("pyright", "pyright crashed", Code.SERVER_CRASHED)
LATE = Error("pyright", "pyright took too long", Code.REQUEST_TIMEOUT)


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


@pytest.mark.proves("OPS-6")
def test_a_fresh_answer_leaves_out_what_is_absent() -> None:
    assert encoded(answer_from(Operation.DEFINITION, (HERE,), Effort(duration_ms=3, server_hits=1))) == (
        b'{"ok":true,"operation":"goToDefinition",'
        b'"data":[{"line":1,"character":1,"endLine":1,"endCharacter":2,"path":"a.py"}],'
        b'"meta":{"durationMs":3,"serverHits":1,"partial":false,"state":"fresh"}}'
    )


@pytest.mark.proves("OPS-6")
def test_no_result_is_ok_empty_and_fresh() -> None:
    assert encoded(answer_from(Operation.REFERENCES, (), Effort(server_hits=1))) == (
        b'{"ok":true,"operation":"findReferences","data":[],'
        b'"meta":{"durationMs":0,"serverHits":1,"partial":false,"state":"fresh","empty":true}}'
    )


@pytest.mark.proves("OPS-6", "T38")
def test_a_time_out_is_never_an_empty_answer() -> None:
    assert encoded(answer_from(Operation.HOVER, (), Effort(duration_ms=10_000, errors=(LATE,)))) == (
        b'{"ok":false,"operation":"hover","data":null,'
        b'"errors":[{"serverId":"pyright","message":"pyright took too long","code":"ETIMEDOUT"}],'
        b'"meta":{"durationMs":10000,"serverHits":0,"partial":false,"state":"unavailable","timedOut":true,'
        b'"reason":"pyright took too long"}}'
    )


STATES = [
    pytest.param((HERE,), Effort(server_hits=1), State.FRESH, id="everybody answered"),
    pytest.param((HERE,), Effort(server_hits=1, errors=(CRASHED,)), State.PARTIAL, id="one of two crashed"),
    pytest.param((), Effort(server_hits=1, errors=(CRASHED,)), State.PARTIAL, id="one crashed, one found nothing"),
    pytest.param((), Effort(server_hits=1, caveats=("indexing",)), State.PARTIAL, id="still indexing"),
    pytest.param((HERE,), Effort(server_hits=1, timed_out=True), State.PARTIAL, id="the wait ran out"),
    pytest.param((HERE,), Effort(server_hits=1, stale="older text"), State.STALE, id="about an older text"),
    pytest.param((), Effort(errors=(CRASHED,)), State.UNAVAILABLE, id="nobody answered"),
    pytest.param(None, Effort(caveats=("no server",)), State.UNAVAILABLE, id="nobody to ask"),
    pytest.param(
        Changes(applied=True, files=(FileChange("a.py", "rename", "b.py"),)),
        Effort(caveats=("no server updates imports",)),
        State.PARTIAL,
        id="done without a server",
    ),
]


@pytest.mark.proves("OPS-6")
@pytest.mark.parametrize(("data", "effort", "state"), STATES)
def test_the_state_follows_from_how_the_answer_came_about(data: object, effort: Effort, state: State) -> None:
    assert answer_from(Operation.REFERENCES, data, effort).meta.state is state


def test_an_answer_that_nobody_gave_must_say_why() -> None:
    with pytest.raises(Bug):
        answer_from(Operation.REFERENCES, (), Effort())


EFFORTS = st.builds(
    Effort,
    duration_ms=st.integers(0, 9),
    server_hits=st.integers(0, 2),
    errors=st.lists(st.sampled_from([CRASHED, LATE]), max_size=2).map(tuple),
    caveats=st.lists(st.just("still indexing"), max_size=1).map(tuple),
    stale=st.none() | st.just("an older text"),
    timed_out=st.booleans(),
    truncated=st.booleans(),
)
DATA = st.sampled_from(
    [None, (), (HERE,), Hover(("x",)), Hover(()), {}, {"a.py": ()}, Changes(applied=False, files=())]
)


@pytest.mark.proves("OPS-6", "T38")
@given(DATA, EFFORTS)
def test_whatever_happened_an_empty_fresh_answer_means_that_all_went_well(data: object, effort: Effort) -> None:
    trouble = effort.errors or effort.caveats or effort.stale or effort.timed_out
    if not effort.server_hits and not trouble:
        return
    made = answer_from(Operation.HOVER, data, effort)
    assert (made.meta.state is State.FRESH) is (not trouble and effort.server_hits > 0)
    assert made.meta.empty is (made.meta.state is State.FRESH and is_empty(data))
    assert made.ok or made.data is None
    assert made.meta.state is State.FRESH or made.meta.reason
    assert made.meta.partial is (made.meta.state is State.PARTIAL)
    assert not any(one.code is Code.REQUEST_TIMEOUT for one in effort.errors) or made.meta.timed_out
    assert msgspec.json.decode(encoded(made), type=Answer[Any]).meta == made.meta


LIES = [
    pytest.param({"ok": False}, id="failed but fresh"),
    pytest.param({"data": [], "meta": {"empty": False}}, id="empty without saying so"),
    pytest.param({"meta": {"empty": True}}, id="not empty at all"),
    pytest.param({"meta": {"timedOut": True}}, id="fresh after a time-out"),
    pytest.param({"meta": {"serverHits": 0}}, id="fresh from nobody"),
    pytest.param({"errors": [{"serverId": "s", "message": "m", "code": "bug"}]}, id="fresh with errors"),
    pytest.param({"meta": {"state": "partial", "partial": True}}, id="partial without a reason"),
    pytest.param({"meta": {"state": "partial", "reason": "r"}}, id="partial said two ways"),
    pytest.param({"ok": False, "meta": {"state": "unavailable", "reason": "r"}}, id="data that nobody gave"),
    pytest.param({"data": [], "meta": {"state": "stale", "reason": "r", "empty": True}}, id="stale and empty"),
]


@pytest.mark.proves("OPS-6")
@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_lies_is_refused_on_every_wire(lie: dict[str, Any]) -> None:
    honest: dict[str, Any] = {
        "ok": True,
        "operation": "findReferences",
        "data": [1],
        "meta": {"durationMs": 1, "serverHits": 1, "partial": False, "state": "fresh"},
    }
    msgspec.convert(honest, Answer[Any])
    with pytest.raises(msgspec.ValidationError, match="lies"):
        msgspec.convert({**honest, **lie, "meta": {**honest["meta"], **lie.get("meta", {})}}, Answer[Any])


def test_a_failure_becomes_an_error_that_says_what_to_do() -> None:
    failed = ServerFailed(Code.SERVER_HUNG, "gopls hangs.", hint="Restart it.", scene=Scene(server="gopls"))
    assert error_of(failed) == Error("gopls", "gopls hangs. Restart it.", Code.SERVER_HUNG)
    assert error_of(Refused(Code.INVALID_INPUT, "no")) == Error("pilotfish", "no", Code.INVALID_INPUT)


def test_the_reason_says_once_what_a_server_says_of_several_files() -> None:
    errors = (Error("gopls", "gopls is broken", Code.SERVER_CRASHED),) * 2
    assert answer_from("hover", "text", Effort(server_hits=1, errors=errors)).meta.reason == "gopls is broken"


def test_the_reason_names_the_server_that_the_message_does_not() -> None:
    made: Answer[Any] = answer_from(
        Operation.HOVER, None, Effort(errors=(Error("gopls", "no reply", Code.SERVER_ERROR),))
    )
    assert made.meta.reason == "gopls: no reply"


@pytest.mark.proves("OPS-7")
def test_a_diagnostic_counts_from_one_and_leaves_out_what_is_absent() -> None:
    found = Diagnostic(Range(Position(2, 4), Position(2, 7)), Severity.WARNING, "unused", "pyright", code="W1")
    assert encoded(diagnostic_of(found)) == (
        b'{"line":3,"character":5,"endLine":3,"endCharacter":8,"severity":"warning","message":"unused",'
        b'"server":"pyright","code":"W1"}'
    )
    assert diagnostic_of(found, introduced=False).introduced is False


@pytest.mark.parametrize("severity", list(Severity))
def test_every_severity_has_a_word(severity: Severity) -> None:
    found = Diagnostic(Range(Position(0, 0), Position(0, 0)), severity, "m", "s")
    assert diagnostic_of(found).severity == severity.name.lower()


def test_questions_and_touches_refuse_fields_that_they_do_not_have() -> None:
    decoded = msgspec.json.decode(b'{"operation":"hover","filePath":"a.py","line":1,"character":2}', type=Question)
    assert (decoded.file_path, decoded.include_declaration) == ("a.py", True)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"operation":"hover","path":"a.py"}', type=Question)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"paths":[],"kind":"edit","text":"x"}', type=Touch)


def test_a_fresh_answer_gives_its_data_and_any_other_raises_with_all_that_it_has() -> None:
    place = Location(line=1, character=1, end_line=1, end_character=2, path="a.py")
    fresh = answer_from("goToDefinition", (place,), Effort(server_hits=1))
    assert fresh.unwrap() == (place,)
    partial = answer_from("findReferences", (place,), Effort(server_hits=1, caveats=("x is still indexing",)))
    with pytest.raises(NotFresh, match="findReferences is partial: x is still indexing") as caught:
        partial.unwrap()
    assert (caught.value.answer, caught.value.state, caught.value.code) == (partial, State.PARTIAL, None)
    error = Error("x", "x has crashed", Code.SERVER_CRASHED)
    with pytest.raises(NotFresh) as caught:
        answer_from("hover", None, Effort(errors=(error,))).unwrap()
    assert caught.value.code is Code.SERVER_CRASHED
