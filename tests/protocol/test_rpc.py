"""Correlation: every request ends once, whatever the other side sends."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from lsprotocol import types as lsp
from msgspec import Raw

from pilotfish.errors import Bug
from pilotfish.protocol.frames import FrameDecoder
from pilotfish.protocol.rpc import (
    MAX_DETAIL,
    Answered,
    CancelRequested,
    Dropped,
    DropReason,
    ErrorCode,
    Event,
    Failed,
    Notified,
    Outgoing,
    Peer,
    Requested,
    RequestId,
    ResponseError,
    UnusableResponse,
    decode_message,
)

NULL = Raw(b"null")


def body_of(data: bytes) -> bytes:
    (body,) = FrameDecoder().feed(data)
    return body


def ask(peer: Peer, method: str = "m") -> RequestId:
    return peer.request(method).id


def take(peer: Peer, message: object) -> Event:
    return peer.receive(json.dumps(message).encode())


def only(peer: Peer, reason: DropReason, count: int = 1) -> bool:
    return dict(peer.dropped) == {reason: count}


# --- Two peers without a wire -------------------------------------------------------------------------------------


@pytest.mark.proves("RPC-1", "RPC-2", "C8", "C9", "C10")
def test_two_peers_ask_and_answer_each_other_with_the_same_ids() -> None:
    client, server = Peer(), Peer()
    ours = client.request("initialize", {"processId": 7})
    theirs = server.request("workspace/configuration")
    assert ours.id == theirs.id == 0
    assert server.receive(body_of(ours.data)) == Requested(0, "initialize", Raw(b'{"processId":7}'))
    assert client.receive(body_of(theirs.data)) == Requested(0, "workspace/configuration", NULL)
    answer, refusal = server.reply(0, {"capabilities": {}}), client.fail(0, ResponseError(-32601, "no"))
    assert client.receive(body_of(answer)) == Answered(0, "initialize", Raw(b'{"capabilities":{}}'))
    assert server.receive(body_of(refusal)) == Failed(0, "workspace/configuration", ResponseError(-32601, "no"))
    assert client.receive(body_of(server.notify("a/b", [1]))) == Notified("a/b", Raw(b"[1]"))
    assert (len(client.waiting), client.owed, dict(client.dropped)) == (0, {}, {})


@pytest.mark.proves("C14", "C19")
def test_answers_find_their_requests_in_any_order() -> None:
    peer = Peer()
    ids = [ask(peer, f"m{number}") for number in range(5)]
    assert ids == [0, 1, 2, 3, 4]
    for identifier in (3, 0, 4, 2, 1):
        assert take(peer, {"id": identifier, "result": identifier}) == Answered(
            identifier, f"m{identifier}", Raw(str(identifier).encode())
        )
    assert len(peer.waiting) == 0


# --- What has a method --------------------------------------------------------------------------------------------


@pytest.mark.proves("C8", "C10", "F36")
@pytest.mark.parametrize("identifier", [0, 1, -1, 2**31 - 1, -(2**31), "7", "", "0", "anything", "9" * 400, "é😀"])
def test_a_reply_echoes_the_exact_id(identifier: RequestId) -> None:
    peer = Peer()
    body = json.dumps({"jsonrpc": "2.0", "id": identifier, "method": "m", "params": {}}).encode()
    assert peer.receive(body) == Requested(identifier, "m", Raw(b"{}"))
    echoed = json.loads(body_of(peer.reply(identifier, None)))
    assert echoed == {"jsonrpc": "2.0", "id": identifier, "result": None}
    assert type(echoed["id"]) is type(identifier)


@pytest.mark.proves("C24")
def test_an_id_written_as_a_float_is_the_integer_that_it_means() -> None:
    peer = Peer()
    assert peer.receive(b'{"id":1.0,"method":"m"}') == Requested(1, "m", NULL)
    ask(peer)
    assert peer.receive(b'{"id":0.0,"result":null}') == Answered(0, "m", NULL)


@pytest.mark.proves("C24", "F36")
@pytest.mark.parametrize("identifier", [None, 2**31, -(2**31) - 1, 2**53, 2**63, 10**12])
def test_a_request_with_an_impossible_id_is_dropped(identifier: int | None) -> None:
    peer = Peer()
    assert take(peer, {"id": identifier, "method": "m"}) == Dropped(
        DropReason.INVALID_ID, f"m with the id {identifier!r}"
    )
    assert peer.owed == {}


@pytest.mark.proves("C9", "F36")
def test_a_request_with_the_id_of_ours_is_a_request() -> None:
    peer = Peer()
    assert ask(peer, "ours") == 0
    assert take(peer, {"id": 0, "method": "theirs", "result": 1}) == Requested(0, "theirs", NULL)
    assert take(peer, {"id": 0, "result": 1}) == Answered(0, "ours", Raw(b"1"))


@pytest.mark.proves("C23")
@pytest.mark.parametrize(
    ("members", "params"), [({}, b"null"), ({"params": None}, b"null"), ({"params": {}}, b"{}"), ({"params": 3}, b"3")]
)
def test_params_may_be_absent_or_anything(members: dict[str, object], params: bytes) -> None:
    peer = Peer()
    assert take(peer, {"method": "m", **members}) == Notified("m", Raw(params))
    assert take(peer, {"id": 1, "method": "m", **members}) == Requested(1, "m", Raw(params))


@pytest.mark.proves("C6")
@pytest.mark.parametrize("version", [{}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"jsonrpc": None}])
def test_any_version_is_tolerated(version: dict[str, object]) -> None:
    assert take(Peer(), {**version, "method": "m"}) == Notified("m", NULL)


@pytest.mark.proves("C19")
def test_notifications_come_out_in_the_order_they_came_in() -> None:
    peer = Peer()
    events = [take(peer, {"method": "m", "params": number}) for number in range(1000)]
    assert events == [Notified("m", Raw(str(number).encode())) for number in range(1000)]


# --- What we owe --------------------------------------------------------------------------------------------------


@pytest.mark.proves("C15", "F39", "RPC-4")
def test_a_request_is_owed_a_reply_until_it_has_one() -> None:
    peer = Peer()
    for number in range(10_000):
        take(peer, {"id": number, "method": f"m{number}"})
    assert peer.owed == {number: f"m{number}" for number in range(10_000)}
    for number in range(10_000):
        peer.reply(number, None) if number % 2 else peer.fail(number, ResponseError(ErrorCode.METHOD_NOT_FOUND, ""))
    assert peer.owed == {}


@pytest.mark.proves("C15")
@pytest.mark.parametrize("first", ["reply", "fail"])
@pytest.mark.parametrize("second", ["reply", "fail"])
def test_a_second_reply_is_a_bug(first: str, second: str) -> None:
    peer = Peer()
    take(peer, {"id": 1, "method": "m"})
    say = {"reply": lambda: peer.reply(1, None), "fail": lambda: peer.fail(1, ResponseError(-1, ""))}
    say[first]()
    with pytest.raises(Bug, match="a reply to 1, which is not owed one"):
        say[second]()


@pytest.mark.proves("C8", "C15")
@pytest.mark.parametrize("identifier", ["1", 2, ""])
def test_a_reply_to_an_id_of_another_type_or_value_is_a_bug(identifier: RequestId) -> None:
    peer = Peer()
    take(peer, {"id": 1, "method": "m"})
    with pytest.raises(Bug):
        peer.reply(identifier, None)
    assert peer.owed == {1: "m"}


@pytest.mark.proves("C17")
def test_a_result_that_cannot_be_encoded_leaves_the_reply_owed() -> None:
    peer = Peer()
    take(peer, {"id": 1, "method": "m"})
    with pytest.raises(TypeError):
        peer.reply(1, object())
    assert peer.owed == {1: "m"}
    peer.fail(1, ResponseError(ErrorCode.INTERNAL_ERROR, "no"))


@pytest.mark.proves("C15")
def test_a_request_repeated_before_its_reply_is_dropped() -> None:
    peer = Peer()
    take(peer, {"id": 1, "method": "m"})
    assert take(peer, {"id": 1, "method": "n"}) == Dropped(DropReason.DUPLICATE_REQUEST, "n with the id 1")
    peer.reply(1, None)
    assert take(peer, {"id": 1, "method": "n"}) == Requested(1, "n", NULL)


@pytest.mark.proves("C64")
def test_a_request_that_was_cancelled_is_still_owed_a_reply() -> None:
    client, server = Peer(), Peer()
    outgoing = server.request("workspace/configuration")
    client.receive(body_of(outgoing.data))
    cancel = server.cancel(outgoing.id)
    assert cancel is not None
    assert client.receive(body_of(cancel)) == CancelRequested(0, "workspace/configuration")
    assert client.owed == {0: "workspace/configuration"}
    reply = client.fail(0, ResponseError(ErrorCode.REQUEST_CANCELLED, "cancelled"))
    assert server.receive(body_of(reply)) == Dropped(DropReason.LATE, "id 0")


@pytest.mark.proves("C64", "C102")
@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"id": 9}, DropReason.UNKNOWN_CANCEL),
        ({"id": "1"}, DropReason.UNKNOWN_CANCEL),
        ({"id": None}, DropReason.INVALID_ID),
        ({}, DropReason.INVALID_ID),
        (None, DropReason.INVALID_ID),
        ([1], DropReason.INVALID_ID),
    ],
)
def test_a_cancellation_of_nothing_is_dropped(params: object, reason: DropReason) -> None:
    peer = Peer()
    take(peer, {"id": 1, "method": "m"})
    event = take(peer, {"method": "$/cancelRequest", "params": params})
    assert isinstance(event, Dropped)
    assert event.reason is reason
    assert peer.owed == {1: "m"}


# --- Responses ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("C11", "C12", "C22", "A17.17")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({"result": None}, Answered(0, "m", NULL), id="null is a result"),
        pytest.param({"result": 0}, Answered(0, "m", Raw(b"0")), id="zero is a result"),
        pytest.param({"result": [], "odd": 1}, Answered(0, "m", Raw(b"[]")), id="unknown member"),
        pytest.param({"result": 1, "error": None}, Answered(0, "m", Raw(b"1")), id="a null error is none"),
        pytest.param(
            {"method": None, "params": None, "result": 1}, Answered(0, "m", Raw(b"1")), id="a null method is none"
        ),
        pytest.param({"error": {"code": -1, "message": "no"}}, Failed(0, "m", ResponseError(-1, "no")), id="error"),
        pytest.param(
            {"result": 1, "error": {"code": -1, "message": "no"}},
            Failed(0, "m", ResponseError(-1, "no")),
            id="error wins",
        ),
        pytest.param(
            {"error": {"code": -32802, "message": "", "data": {"retriggerRequest": False}, "odd": 1}},
            Failed(0, "m", ResponseError(ErrorCode.SERVER_CANCELLED, "", Raw(b'{"retriggerRequest": false}'))),
            id="error with data",
        ),
        pytest.param(
            {"error": {"code": -1.0, "message": "no"}}, Failed(0, "m", ResponseError(-1, "no")), id="code as a float"
        ),
        pytest.param({"error": "no"}, Failed(0, "m", ResponseError(-32001, '"no"')), id="error is a string"),
        pytest.param({"error": 7}, Failed(0, "m", ResponseError(-32001, "7")), id="error is a number"),
        pytest.param(
            {"error": {"message": "no"}}, Failed(0, "m", ResponseError(-32001, '{"message": "no"}')), id="no code"
        ),
        pytest.param({"error": {"code": 1}}, Failed(0, "m", ResponseError(-32001, '{"code": 1}')), id="no message"),
        pytest.param({}, Answered(0, "m", NULL), id="an absent result is null"),
        pytest.param({"error": None}, Answered(0, "m", NULL), id="a null error only"),
    ],
)
def test_a_response_settles_its_request_like_this(members: dict[str, object], expected: Event) -> None:
    peer = Peer()
    ask(peer)
    assert take(peer, {"id": 0, **members}) == expected
    assert (len(peer.waiting), dict(peer.dropped)) == (0, {})


@pytest.mark.proves("C14", "F34")
def test_a_second_response_is_dropped_and_settles_nothing() -> None:
    peer = Peer()
    ask(peer, "first")
    ask(peer, "second")
    take(peer, {"id": 0, "result": 1})
    assert take(peer, {"id": 0, "result": 2}) == Dropped(DropReason.UNKNOWN_ID, "id 0")
    assert len(peer.waiting) == 1


@pytest.mark.proves("C8", "C14", "C24", "F35", "F36")
@pytest.mark.parametrize("identifier", [1, -1, "0", "", 2**31, 2**63, 10**12])
def test_a_response_with_an_unknown_id_is_counted_only(identifier: RequestId) -> None:
    peer = Peer()
    ask(peer)
    for _ in range(1000):
        assert take(peer, {"id": identifier, "result": 1}) == Dropped(DropReason.UNKNOWN_ID, f"id {identifier!r}")
    assert only(peer, DropReason.UNKNOWN_ID, 1000)
    assert len(peer.waiting) == 1


@pytest.mark.proves("C13")
@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ({"id": None, "error": {"code": -32700, "message": "Parse error"}}, "Parse error"),
        ({"error": {"code": -32700, "message": "Parse error"}}, "Parse error"),
        ({"id": None, "result": 1}, "a result without an id"),
        ({"result": 1}, "a result without an id"),
    ],
)
def test_a_response_to_nobody_is_dropped_with_its_message(message: dict[str, object], detail: str) -> None:
    peer = Peer()
    ask(peer)
    assert take(peer, message) == Dropped(DropReason.NO_ID, detail)
    assert len(peer.waiting) == 1


# --- Bodies that are not a message -----------------------------------------------------------------------------------

DEEP = 1_000_000


@pytest.mark.proves("C7", "C24", "F31", "F32", "F36")
@pytest.mark.parametrize(
    ("body", "reason", "detail"),
    [
        pytest.param(b"", DropReason.INVALID_JSON, "truncated", id="empty"),
        pytest.param(b"garbage", DropReason.INVALID_JSON, "invalid character (byte 0)", id="garbage"),
        pytest.param(b'{"method":"m"', DropReason.INVALID_JSON, "truncated", id="truncated"),
        pytest.param(
            b'{"method":"m"}Content-', DropReason.INVALID_JSON, "trailing characters", id="a length too large"
        ),
        pytest.param(b'{"method":"m","params":NaN}', DropReason.INVALID_JSON, "(byte 23)", id="NaN"),
        pytest.param(b'{"method":"m","params":"\xff"}', DropReason.INVALID_JSON, "in position 24", id="not utf-8"),
        pytest.param(b'{"method":"\xc0\xaf"}', DropReason.INVALID_JSON, "in position 11", id="overlong"),
        pytest.param(b'\xef\xbb\xbf{"method":"m"}', DropReason.INVALID_JSON, "(byte 0)", id="byte-order mark"),
        pytest.param(b"[" * DEEP, DropReason.INVALID_JSON, "nested too deeply", id="100k brackets"),
        pytest.param(
            b'{"method":"m","params":' + b"[" * DEEP + b"]" * DEEP + b"}",
            DropReason.INVALID_JSON,
            "nested too deeply",
            id="a million nested",
        ),
        pytest.param(
            b'{"id":' + b"9" * 5000 + b',"method":"m"}', DropReason.NOT_A_MESSAGE, "Exceeds the limit", id="5000 digits"
        ),
        pytest.param(b'[{"method":"m"}]', DropReason.BATCH, "got `array`", id="batch"),
        pytest.param(b" []", DropReason.BATCH, "got `array`", id="empty batch"),
        pytest.param(b'"text"', DropReason.NOT_A_MESSAGE, "got `str`", id="string"),
        pytest.param(b"7", DropReason.NOT_A_MESSAGE, "got `int`", id="number"),
        pytest.param(b"null", DropReason.NOT_A_MESSAGE, "got `null`", id="null"),
        pytest.param(b"{}", DropReason.NOT_A_MESSAGE, "neither a method nor an id", id="empty object"),
        pytest.param(b'{"id":null}', DropReason.NOT_A_MESSAGE, "neither", id="null id only"),
        pytest.param(b'{"id":null,"error":null}', DropReason.NOT_A_MESSAGE, "neither", id="nulls only"),
        pytest.param(b'{"method":7}', DropReason.NOT_A_MESSAGE, "at `$.method`", id="method is a number"),
        pytest.param(b'{"id":1.5,"method":"m"}', DropReason.NOT_A_MESSAGE, "at `$.id`", id="id is a fraction"),
        pytest.param(b'{"id":true,"method":"m"}', DropReason.NOT_A_MESSAGE, "at `$.id`", id="id is a boolean"),
        pytest.param(b'{"id":[0],"result":1}', DropReason.NOT_A_MESSAGE, "at `$.id`", id="id is a list"),
    ],
)
def test_these_bodies_are_dropped_and_settle_nothing(body: bytes, reason: DropReason, detail: str) -> None:
    peer = Peer()
    ask(peer)
    event = peer.receive(body)
    assert isinstance(event, Dropped)
    assert event.reason is reason
    assert detail in event.detail
    assert only(peer, reason)
    assert (len(peer.waiting), peer.owed) == (1, {})


@pytest.mark.proves("C11", "F31", "F32")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":0,"result":"\xff"}', id="not utf-8"),
        pytest.param(b'{"jsonrpc":"2.0","id":0,"result":NaN}', id="NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":0,"result":' + b"[" * DEEP + b"]" * DEEP + b"}", id="a million nested"),
        pytest.param(b'{"jsonrpc":"2.0","id":0,"result":[1,2', id="a length too small"),
        pytest.param(b'{"jsonrpc":"2.0","id":0,"result":[1]}Content', id="a length too large"),
        pytest.param(b'{"id":0,"error":{"code":1,"message":"\xff"}}', id="no version, error"),
        pytest.param(b' { "id" : 0 , "jsonrpc" : "2.0" , "result" : NaN}', id="version second, with spaces"),
        pytest.param(b'{"jsonrpc":"2.0","result":{"id":7,"x":NaN},"id":0}', id="id last"),
        pytest.param(b'{"error":{"data":NaN},"id":0,"jsonrpc":"2.0"} \n', id="id last but for the version"),
    ],
)
def test_a_broken_response_settles_its_request_where_the_id_can_be_made_out(body: bytes) -> None:
    peer = Peer()
    ask(peer)
    event = peer.receive(body)
    assert isinstance(event, Failed)
    assert (event.id, event.method) == (0, "m")
    assert isinstance(event.error, UnusableResponse)
    assert event.error.message.startswith("the response cannot be read: Envelope: ")
    assert len(peer.waiting) == 0
    assert peer.receive(body) == Dropped(DropReason.UNKNOWN_ID, "id 0")


@pytest.mark.proves("F31")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":0,"method":"m","params":{"x":NaN}}', id="request"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m","params":{"x":NaN,"id":0}}', id="notification"),
        pytest.param(b'{"jsonrpc":"2.0","method":"m","params":{"x":NaN},"id":0}', id="request with its id last"),
        pytest.param(b'{"jsonrpc":"2.0","params":{"id":0,"result":NaN}}', id="nested"),
        pytest.param(b'{"jsonrpc":"2.0","result":[NaN,{"id":0,"x":1}]}', id="nested last"),
        pytest.param(b'{"jsonrpc":"2.0","id":"0","result":NaN}', id="string id"),
        pytest.param(b'{"jsonrpc":"2.0","id":00000000000,"result":NaN}', id="too many digits"),
    ],
)
def test_a_broken_body_that_may_be_something_else_settles_nothing(body: bytes) -> None:
    peer = Peer()
    ask(peer)
    event = peer.receive(body)
    assert isinstance(event, Dropped)
    assert event.reason is DropReason.INVALID_JSON
    assert len(peer.waiting) == 1


@pytest.mark.proves("C25")
def test_lone_surrogates_are_replaced_and_the_message_lives() -> None:
    peer = Peer()
    ask(peer)
    assert peer.receive(rb'{"id":0,"result":{"contents":"a\ud800"}}') == Answered(
        0, "m", Raw(rb'{"contents":"a\ufffd"}')
    )


def test_what_is_quoted_of_a_message_is_short() -> None:
    peer = Peer()
    ask(peer)
    event = take(peer, {"id": "9" * 1000, "result": 1})
    assert isinstance(event, Dropped)
    assert len(event.detail) == MAX_DETAIL
    event = take(peer, {"id": 0, "error": "x" * 1000})
    assert isinstance(event, Failed)
    assert len(event.error.message) == MAX_DETAIL


IDS = st.integers(-2, 3) | st.sampled_from(["0", "", 2**31, 2**64]) | st.none() | st.booleans() | st.floats(0, 2)
JSON = st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": JSON,
        "id": IDS,
        "method": st.sampled_from(["m", "$/cancelRequest"]) | JSON,
        "params": JSON | st.fixed_dictionaries({"id": IDS}),
        "result": JSON,
        "error": JSON | st.fixed_dictionaries({}, optional={"code": IDS, "message": JSON, "data": JSON}),
    },
)
MESSAGES = MEMBERS.map(lambda message: json.dumps(message).encode())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(MESSAGES))
    for _ in range(draw(st.integers(0, 3))):
        body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
    return bytes(body)


@pytest.mark.proves("C7", "C14", "F31", "F32", "A17.17")
@settings(max_examples=300)
@given(st.lists(MESSAGES | mutated() | st.binary(max_size=40), max_size=8))
def test_any_bodies_give_events_and_the_books_balance(bodies: list[bytes]) -> None:
    peer = Peer()
    for _ in range(3):
        ask(peer)
    events = [peer.receive(body) for body in bodies]
    settled = [event.id for event in events if isinstance(event, Answered | Failed)]
    asked = [event.id for event in events if isinstance(event, Requested)]
    assert len(set(settled)) == len(settled) == 3 - len(peer.waiting)
    assert list(peer.owed) == asked
    assert sum(peer.dropped.values()) == sum(isinstance(event, Dropped) for event in events)


# --- Giving up ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("C101", "F37")
def test_a_cancelled_request_stays_known_until_its_late_answer_which_is_dropped() -> None:
    peer = Peer()
    identifier = ask(peer)
    assert peer.cancel(identifier) is not None
    assert (len(peer.waiting), len(peer.abandoned)) == (0, 1)
    assert take(peer, {"id": identifier, "result": 1}) == Dropped(DropReason.LATE, "id 0")
    assert (len(peer.waiting), len(peer.abandoned)) == (0, 0)
    assert take(peer, {"id": identifier, "result": 1}) == Dropped(DropReason.UNKNOWN_ID, "id 0")


@pytest.mark.proves("C101", "F31")
def test_a_late_answer_that_cannot_be_read_is_late_all_the_same() -> None:
    peer = Peer()
    peer.cancel(ask(peer))
    assert peer.receive(b'{"id":0,"result":NaN}') == Dropped(DropReason.LATE, "id 0")


@pytest.mark.proves("C101", "F37")
def test_a_forgotten_request_is_unknown() -> None:
    peer = Peer()
    identifier = ask(peer)
    peer.cancel(identifier)
    assert peer.forget(identifier)
    assert len(peer.abandoned) == 0
    assert not peer.forget(identifier)
    assert take(peer, {"id": identifier, "result": 1}) == Dropped(DropReason.UNKNOWN_ID, "id 0")
    assert ask(peer) != identifier


@pytest.mark.proves("C102")
def test_there_is_nothing_to_cancel_twice_or_after_the_answer_or_before_the_request_or_once_it_is_forgotten() -> None:
    peer = Peer()
    assert peer.cancel(0) is None
    cancelled, answered, unsent = ask(peer), ask(peer), ask(peer)
    peer.cancel(cancelled)
    assert peer.cancel(cancelled) is None
    take(peer, {"id": answered, "result": 1})
    assert peer.cancel(answered) is None
    assert not peer.forget(answered)
    assert peer.forget(unsent)
    assert peer.cancel(unsent) is None
    assert (len(peer.waiting), len(peer.abandoned)) == (0, 1)


@pytest.mark.proves("C43")
def test_nothing_waits_or_is_owed_after_closing_and_no_more_is_asked() -> None:
    peer = Peer()
    ask(peer, "first")
    peer.cancel(ask(peer, "second"))
    take(peer, {"id": 9, "method": "theirs"})
    peer.close()
    assert (len(peer.waiting), len(peer.abandoned), peer.owed) == (0, 0, {})
    with pytest.raises(Bug, match="m after the connection was closed"):
        peer.request("m")


def test_params_that_cannot_be_encoded_leave_nothing_waiting() -> None:
    peer = Peer()
    with pytest.raises(TypeError):
        peer.request("m", object())
    assert len(peer.waiting) == 0
    assert ask(peer) == 0


class Conversation(RuleBasedStateMachine):
    """Two peers that ask, answer, cancel and forget at random: every request ends exactly once."""

    frames = Bundle[tuple[int, bytes]]("frames")

    def __init__(self) -> None:
        super().__init__()
        self.peers = (Peer(), Peer())
        self.open: tuple[set[RequestId], set[RequestId]] = (set(), set())
        self.given_up: tuple[set[RequestId], set[RequestId]] = (set(), set())

    @rule(target=frames, side=st.integers(0, 1))
    def ask(self, side: int) -> tuple[int, bytes]:
        outgoing: Outgoing = self.peers[side].request("m", {"side": side})
        self.open[side].add(outgoing.id)
        return (1 - side, outgoing.data)

    @rule(target=frames, arrived=consumes(frames), refuse=st.booleans())
    def deliver(self, arrived: tuple[int, bytes], refuse: bool) -> Any:
        side, data = arrived
        event = self.peers[side].receive(body_of(data))
        match event:
            case Requested(identifier):
                peer = self.peers[side]
                reply = peer.fail(identifier, ResponseError(-1, "")) if refuse else peer.reply(identifier, 1)
                return (1 - side, reply)
            case Answered(identifier) | Failed(identifier):
                self.open[side].remove(identifier)
            case Dropped(reason):
                assert reason in {DropReason.LATE, DropReason.UNKNOWN_ID, DropReason.UNKNOWN_CANCEL}
            case Notified() | CancelRequested():
                raise AssertionError(event)
        return (side, self.peers[1 - side].notify("$/cancelRequest", {"id": -1}))

    @rule(target=frames, side=st.integers(0, 1), identifier=st.integers(0, 5))
    def give_up(self, side: int, identifier: int) -> tuple[int, bytes]:
        cancel = self.peers[side].cancel(identifier)
        assert (cancel is not None) == (identifier in self.open[side])
        if cancel is None:
            return (side, self.peers[1 - side].notify("$/cancelRequest", {"id": -1}))
        self.open[side].remove(identifier)
        self.given_up[side].add(identifier)
        return (1 - side, cancel)

    @invariant()
    def the_books_balance(self) -> None:
        for side in (0, 1):
            assert len(self.peers[side].waiting) == len(self.open[side])
            assert len(self.peers[side].abandoned) <= len(self.given_up[side])
            assert not self.peers[side].owed


TestConversation = pytest.mark.proves("C9", "C14", "C101", "C102")(Conversation.TestCase)
TestConversation.settings = settings(max_examples=60, stateful_step_count=30)


# --- The shapes of others -----------------------------------------------------------------------------------------


def test_the_error_codes_are_those_of_the_protocol() -> None:
    theirs = {int(code) for kind in (lsp.ErrorCodes, lsp.LSPErrorCodes) for code in kind}
    assert theirs <= {int(code) for code in ErrorCode}


@pytest.mark.proves("RPC-1")
def test_decoding_is_apart_from_accounting() -> None:
    message = decode_message(b'{"id":0,"result":1}')
    peer = Peer()
    assert peer.accept(message) == Dropped(DropReason.UNKNOWN_ID, "id 0")
    ask(peer)
    assert peer.accept(message) == Answered(0, "m", Raw(b"1"))
