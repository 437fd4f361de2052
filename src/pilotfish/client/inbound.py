"""What we answer to a server's requests, and what we do with its notifications: two tables.

Every request is answered at once and in the order received, so nothing here waits.
The reasons for the answers: `workspace/configuration` must have the right length and `{}` for what is unknown, because
servers exit or report a clean file on `null`; `client/registerCapability` gets `null` even for methods we do not know,
because servers abort on an error. No person is asked anything: none is there.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping

from msgspec import Raw, Struct, field

from pilotfish.protocol.capabilities import Capabilities
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.diagnostics import Reports
from pilotfish.protocol.readiness import Readiness
from pilotfish.protocol.rpc import ErrorCode, ResponseError
from pilotfish.protocol.wire import (
    ApplyEditParams,
    ApplyEditResult,
    ConfigurationParams,
    Json,
    MessageParams,
    PublishDiagnosticsParams,
    WorkspaceFolder,
)
from pilotfish.system.clock import current_time

logger = logging.getLogger(__name__)

MAX_MESSAGES = 200
"""How many of the server's log lines are kept for `status`; a server may write thousands while it indexes."""

MAX_MESSAGE_LENGTH = 2_000
"""A log line longer than this is cut: some servers log whole documents."""

EditSink = Callable[[Raw], ApplyEditResult]
"""Takes the edit of a command that we asked the server to run."""


class Inbox(Struct):
    """Everything a server's messages may read or change."""

    settings: Mapping[str, Json]
    folders: tuple[WorkspaceFolder, ...]
    capabilities: Capabilities = field(default_factory=Capabilities)
    reports: Reports = field(default_factory=Reports)
    readiness: Readiness = field(default_factory=Readiness)
    messages: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_MESSAGES))
    """The last log lines."""
    now: Callable[[], float] = current_time
    has_settings: bool = False
    """Whether it has asked for its settings."""
    logged: int = 0
    """How many log lines have come."""
    edit_sink: EditSink | None = None
    """Set while a command that we asked for runs; without it an edit is refused."""
    on_log: Callable[[str], None] = lambda _message: None
    """Called with every line that the server logs."""
    on_change: Callable[[], None] = lambda: None
    """Called after any message that may change what is known: diagnostics, progress, registrations."""


def answer_request(inbox: Inbox, method: str, params: Raw, *, stopping: bool) -> object | ResponseError:
    """The reply to one request of the server."""
    if stopping:
        # After `shutdown` servers still ask and some wait for the answer; an error deadlocks their exit.
        return None
    handler = REQUESTS.get(method)
    if handler is None:
        return ResponseError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not supported")
    try:
        reply = handler(inbox, params)
        if method in CHANGING:
            inbox.on_change()
    except Malformed as malformed:
        return ResponseError(ErrorCode.INVALID_PARAMS, str(malformed))
    except Exception as error:
        logger.exception("answering failed method=%s", method)
        return ResponseError(ErrorCode.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
    return reply


def take_notification(inbox: Inbox, method: str, params: Raw) -> bool:
    """Take in one notification; False when it is malformed. Unknown ones are ignored, as the specification says."""
    handler = NOTIFICATIONS.get(method)
    if handler is None:
        if inbox.readiness.heard(method, params):
            inbox.on_change()
        return True
    try:
        handler(inbox, params)
    except Malformed:
        return False
    if method in CHANGING:
        inbox.on_change()
    return True


# --- Requests -----------------------------------------------------------------------------------------------------


def _configuration(inbox: Inbox, params: Raw) -> object:
    items = decode(params, ConfigurationParams).items
    inbox.has_settings = True
    return [_settings_of(inbox.settings, item.section) for item in items]


def _settings_of(settings: Mapping[str, Json], section: str | None) -> Json:
    """The part that a dotted section names; all for an empty one, `{}` for an unknown one."""
    if section and section in settings:
        return settings[section]
    value: Json = dict(settings)
    for part in section.split(".") if section else ():
        if not isinstance(value, dict) or part not in value:
            return {}
        value = value[part]
    return value


def _apply_edit(inbox: Inbox, params: Raw) -> object:
    edit = decode(params, ApplyEditParams).edit
    if inbox.edit_sink is None:
        return ApplyEditResult(applied=False, failure_reason="No command is running that may change files.")
    return inbox.edit_sink(edit)


def _show_message_request(inbox: Inbox, params: Raw) -> None:
    note = decode(params, MessageParams)
    _keep(inbox, f"asked: {note.message} {[action.title for action in note.actions or ()]}")


def _nothing(_inbox: Inbox, _params: Raw) -> object:
    return None


REQUESTS: dict[str, Callable[[Inbox, Raw], object]] = {
    "workspace/configuration": _configuration,
    "workspace/workspaceFolders": lambda inbox, _: list(inbox.folders) or None,
    "client/registerCapability": lambda inbox, params: inbox.capabilities.register(params),
    "client/unregisterCapability": lambda inbox, params: inbox.capabilities.unregister(params),
    "workspace/applyEdit": _apply_edit,
    "window/showMessageRequest": _show_message_request,
    # Opening anything for a server would let a repository open links on the user's machine.
    "window/showDocument": lambda _inbox, _params: {"success": False},
    # The JSON and the YAML server ask their client for schemas that they do not fetch themselves. Nothing is fetched
    # for a server (T52). An empty schema finds no fault; an error would be shown as one of the file.
    "vscode/content": lambda _inbox, _params: "{}",
    "window/workDoneProgress/create": _nothing,
    "workspace/diagnostic/refresh": lambda inbox, _: inbox.reports.refresh(),
    # We keep nothing of these, so there is nothing to invalidate.
    "workspace/codeLens/refresh": _nothing,
    "workspace/semanticTokens/refresh": _nothing,
    "workspace/inlayHint/refresh": _nothing,
    "workspace/inlineValue/refresh": _nothing,
    "workspace/foldingRange/refresh": _nothing,
    "workspace/textDocumentContent/refresh": _nothing,
}


# --- Notifications ------------------------------------------------------------------------------------------------


def _publish(inbox: Inbox, params: Raw) -> None:
    inbox.reports.publish(decode(params, PublishDiagnosticsParams), inbox.now())
    inbox.on_change()


def _message(inbox: Inbox, params: Raw) -> None:
    _keep(inbox, decode(params, MessageParams).message)


def _keep(inbox: Inbox, message: str) -> None:
    inbox.messages.append(message[:MAX_MESSAGE_LENGTH])
    inbox.logged += 1
    inbox.on_log(message)


NOTIFICATIONS: dict[str, Callable[[Inbox, Raw], None]] = {
    "textDocument/publishDiagnostics": _publish,
    "$/progress": lambda inbox, params: inbox.readiness.progress(params, inbox.now()),
    "experimental/serverStatus": lambda inbox, params: inbox.readiness.status(params),
    "window/logMessage": _message,
    "window/showMessage": _message,
}

CHANGING = frozenset({
    "$/progress", "client/registerCapability", "client/unregisterCapability", "experimental/serverStatus",
    "workspace/configuration", "workspace/diagnostic/refresh",
})  # fmt: skip
"""Messages after which another thing may be known than before."""
