"""What we answer to a server, row by row."""

from typing import Any

import msgspec
import pytest

from pilotfish.client.inbound import MAX_MESSAGES, REQUESTS, Inbox, answer_request, take_notification
from pilotfish.protocol.rpc import ErrorCode, ResponseError
from pilotfish.protocol.wire import ApplyEditResult, Json, WorkspaceFolder
from support.servers.sessions import session_on

SETTINGS: dict[str, Json] = {
    "python": {"analysis": {"mode": "strict"}},
    "dotted.key": {"x": 1},
    "list": [1],
    "nothing": None,
}


def inbox() -> Inbox:
    return Inbox(SETTINGS, (WorkspaceFolder("file:///w", "w"),), now=lambda: 0.0)


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def asked(method: str, params: object = None, box: Inbox | None = None) -> Any:
    reply = answer_request(box or inbox(), method, raw(params), stopping=False)
    return reply if isinstance(reply, ResponseError) else msgspec.json.decode(msgspec.json.encode(reply))


NOTHING: dict[str, object] = {}
CONFIGURATION: list[tuple[list[str | None], list[object]]] = [
    ([], []),
    (["python"], [{"analysis": {"mode": "strict"}}]),
    (["python.analysis"], [{"mode": "strict"}]),
    (["python.analysis.mode"], ["strict"]),
    (["dotted.key"], [{"x": 1}]),
    (["unknown"], [{}]),
    (["python.unknown.deeper"], [{}]),
    (["list.0"], [{}]),
    ([""], [SETTINGS]),
    ([None], [SETTINGS]),
    (["a", "python.analysis.mode", "b", "list", "c"], [{}, "strict", {}, [1], {}]),
]


@pytest.mark.proves("C46", "RPC-4")
@pytest.mark.parametrize(("sections", "values"), CONFIGURATION)
def test_configuration_has_the_length_and_order_asked_for(sections: list[str | None], values: list[object]) -> None:
    items = [{"section": section, "scopeUri": "file:///w/a"} for section in sections]
    assert asked("workspace/configuration", {"items": items}) == values


@pytest.mark.proves("C48", "C50", "C53", "RPC-4")
def test_registrations_are_always_accepted_even_for_what_nobody_knows() -> None:
    box = inbox()
    registrations = [
        {"id": "1", "method": "textDocument/hover"},
        {"nonsense": True},
        {"id": "2", "method": "no/such/method"},
    ]
    assert asked("client/registerCapability", {"registrations": registrations}, box) is None
    assert box.capabilities.supports("textDocument/hover")


@pytest.mark.proves("C49", "RPC-4")
@pytest.mark.parametrize("spelling", ["unregisterations", "unregistrations"])
def test_both_spellings_unregister_and_an_unknown_id_is_harmless(spelling: str) -> None:
    box = inbox()
    asked("client/registerCapability", {"registrations": [{"id": "1", "method": "textDocument/hover"}]}, box)
    gone = [{"id": "1", "method": "textDocument/hover"}, {"id": "never", "method": "x"}]
    assert asked("client/unregisterCapability", {spelling: gone}, box) is None
    assert not box.capabilities.supports("textDocument/hover")


@pytest.mark.proves("C57", "RPC-4")
def test_workspace_folders_are_the_root_or_null() -> None:
    assert asked("workspace/workspaceFolders") == [{"uri": "file:///w", "name": "w"}]
    box = inbox()
    box.folders = ()
    assert asked("workspace/workspaceFolders", box=box) is None


@pytest.mark.proves("C58", "RPC-4")
def test_nobody_is_there_to_choose_an_action() -> None:
    box = inbox()
    actions = [{"title": "Build"}, {"title": "Later"}]
    assert asked("window/showMessageRequest", {"type": 3, "message": "Start a build?", "actions": actions}, box) is None
    assert box.messages[-1] == "asked: Start a build? ['Build', 'Later']"


@pytest.mark.proves("C59", "T34", "RPC-4", "A17.15")
@pytest.mark.parametrize("uri", ["file:///etc/passwd", "https://example.org", "javascript:alert(1)"])
def test_no_document_is_ever_shown(uri: str) -> None:
    assert asked("window/showDocument", {"uri": uri, "external": True}) == {"success": False}


@pytest.mark.proves("C61", "RPC-4", "A17.15")
def test_an_edit_that_nobody_asked_for_is_refused() -> None:
    reply = asked("workspace/applyEdit", {"edit": {"changes": {}}})
    assert reply["applied"] is False
    assert "No command is running" in reply["failureReason"]


@pytest.mark.proves("C60", "RPC-4")
def test_an_edit_of_a_command_that_we_asked_for_goes_to_its_taker() -> None:
    taken: list[bytes] = []

    def sink(edit: msgspec.Raw) -> ApplyEditResult:
        taken.append(bytes(edit))
        return ApplyEditResult(applied=True)

    box = inbox()
    box.edit_sink = sink
    assert asked("workspace/applyEdit", {"edit": {"changes": {}}}, box) == {"applied": True}
    assert taken == [b'{"changes":{}}']


@pytest.mark.proves("C54", "C62", "C23", "RPC-4")
@pytest.mark.parametrize(
    "method", [name for name in REQUESTS if name.endswith("/refresh")] + ["window/workDoneProgress/create"]
)
@pytest.mark.parametrize("params", [b"", b"null", b"{}"])
def test_refreshes_and_progress_are_acknowledged_with_or_without_params(method: str, params: bytes) -> None:
    assert answer_request(inbox(), method, msgspec.Raw(params), stopping=False) is None


@pytest.mark.proves("C62", "C98")
def test_a_diagnostic_refresh_is_remembered_and_told() -> None:
    told: list[object] = []
    box = inbox()
    box.on_change = lambda: told.append(None)
    asked("workspace/diagnostic/refresh", box=box)
    assert box.reports.refreshes == 1
    assert told == [None]


@pytest.mark.proves("C15", "C16", "RPC-4")
@pytest.mark.parametrize("method", ["foobar/qux", "$/unknown", "markdown/parse"])
def test_an_unknown_request_is_method_not_found(method: str) -> None:
    reply = asked(method)
    assert isinstance(reply, ResponseError)
    assert reply.code == ErrorCode.METHOD_NOT_FOUND


@pytest.mark.proves("C18")
@pytest.mark.parametrize("method", ["client/registerCapability", "workspace/configuration", "workspace/applyEdit"])
def test_malformed_params_are_invalid_params(method: str) -> None:
    reply = asked(method, 3)
    assert isinstance(reply, ResponseError)
    assert reply.code == ErrorCode.INVALID_PARAMS


@pytest.mark.proves("C17")
def test_a_fault_of_ours_is_an_internal_error_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    def broken(edit: msgspec.Raw) -> ApplyEditResult:
        raise RuntimeError("ours")

    box = inbox()
    box.edit_sink = broken
    reply = asked("workspace/applyEdit", {"edit": {}}, box)
    assert isinstance(reply, ResponseError)
    assert (reply.code, reply.message) == (ErrorCode.INTERNAL_ERROR, "RuntimeError: ours")
    assert "answering failed method=workspace/applyEdit" in caplog.text


@pytest.mark.proves("C38")
def test_while_stopping_everything_is_answered_with_null() -> None:
    assert answer_request(inbox(), "workspace/configuration", raw({"items": [NOTHING]}), stopping=True) is None
    assert answer_request(inbox(), "no/such", raw(None), stopping=True) is None


@pytest.mark.proves("C16", "C45")
@pytest.mark.parametrize("method", ["$/unknown", "$/logTrace", "telemetry/event", "custom/thing"])
def test_unknown_notifications_are_met_with_silence(method: str) -> None:
    assert take_notification(inbox(), method, raw({"x": 1}))


@pytest.mark.proves("C63", "A17.16")
def test_a_hundred_thousand_log_messages_are_bounded() -> None:
    box = inbox()
    for number in range(100_000):
        take_notification(box, "window/logMessage", raw({"type": 3, "message": f"{number} " + "x" * 10}))
    take_notification(box, "window/showMessage", raw({"type": 1, "message": "y" * 10_000}))
    assert len(box.messages) == MAX_MESSAGES
    assert len(box.messages[-1]) == 2_000


@pytest.mark.proves("F40")
@pytest.mark.parametrize("method", ["textDocument/publishDiagnostics", "window/logMessage"])
def test_a_malformed_notification_is_reported_and_changes_nothing(method: str) -> None:
    assert not take_notification(inbox(), method, raw(3))


def test_status_and_progress_reach_readiness() -> None:
    box = inbox()
    take_notification(box, "experimental/serverStatus", raw({"quiescent": False}))
    assert box.readiness.busy
    take_notification(box, "experimental/serverStatus", raw({"quiescent": True}))
    take_notification(box, "$/progress", raw({"token": 1, "value": {"kind": "begin", "title": "t"}}))
    assert box.readiness.busy


@pytest.mark.anyio
@pytest.mark.proves("C21", "F39", "F36", "A17.16")
async def test_ten_thousand_requests_at_once_are_all_answered() -> None:
    async with session_on(lambda script: None) as (session, server):
        identifiers = [server.ask("workspace/configuration", {"items": [{}]}) for _ in range(10_000)]
        last = await server.answered(identifiers[-1])
        assert last == [{}]
        assert len(server.answers) == 10_000
        assert session.failure is None
