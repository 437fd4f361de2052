"""`pilotfish lsp`: a language server over the daemon's service, for hosts that have an LSP client of their own.

It is no multiplexer. A message about a document is a hint that the file was touched, and every answer is about the
disk: what one client has not saved never reaches another one. Requests are answered by our own operations. It asks its
client nothing, offers what agents use, and answers `initialize` before any server is started.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import Raw
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Diagnostic, DiagnosticsAnswer, ItemReference, State, is_empty, of_severities
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc.client_sessions import DaemonContext, OpenSession, Upgrade
from pilotfish.ipc.messages import read_params
from pilotfish.model import AbsPath
from pilotfish.operations.rows import request_of
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.paths import is_inside
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.positions import Text
from pilotfish.protocol.rpc import ErrorCode, ResponseError
from pilotfish.protocol.wire import (
    DidChangeWatchedFilesParams,
    DidOpenParams,
    DocumentParams,
    JsonObject,
    TextDocumentPositionParams,
)
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import HostChannel, MethodTable, NotificationTable, Notify
from pilotfish.surfaces.lsp import shapes
from pilotfish.surfaces.lsp.publisher import Publisher, read_places
from pilotfish.surfaces.lsp.shapes import FilePlaces, OpenDocuments, document_path
from pilotfish.system.ports import ByteStream
from pilotfish.system.tasks import owned_tasks

MAX_WATCHED = 100
"""Files of one notification that are taken: a client that reports more has changed its branch."""

RESULTS: Mapping[Operation, Callable[[Any, FilePlaces], object]] = {
    Operation.DEFINITION: shapes.locations,
    Operation.DECLARATION: shapes.locations,
    Operation.TYPE_DEFINITION: shapes.locations,
    Operation.IMPLEMENTATION: shapes.locations,
    Operation.REFERENCES: shapes.locations,
    Operation.HOVER: shapes.hover,
    Operation.PREPARE_CALLS: shapes.hierarchy_items,
    Operation.INCOMING_CALLS: shapes.calls,
    Operation.OUTGOING_CALLS: shapes.calls,
    Operation.DOCUMENT_SYMBOL: shapes.symbol_tree,
    Operation.WORKSPACE_SYMBOL: shapes.symbol_list,
    Operation.RENAME: shapes.workspace_edit,
}
"""The operations that are offered as requests of the protocol, and how the data of an answer are written."""


def upgrade_of(_: DaemonContext) -> Upgrade:
    """Serves a client of the daemon that asked for it."""
    return lambda upgraded: serve(upgraded.stream, upgraded.service, upgraded.session)


async def serve(stream: ByteStream, service: Service, open_session: OpenSession) -> None:
    """Serve one client until it is gone or says `exit`."""
    channel = HostChannel(stream, last_method="exit")
    face = LspFace(service, open_session, channel.notify)
    async with owned_tasks() as tasks:
        tasks.start_soon(face.publish)
        await channel.serve(face.methods, face.notifications)
        tasks.cancel_scope.cancel()


class LspFace:
    """One client: `initialize` first, then questions and documents, then `shutdown`."""

    def __init__(self, service: Service, open_session: OpenSession, notify: Notify) -> None:
        self._service = service
        self._open_session = open_session
        self._notify = notify
        self._documents = OpenDocuments()
        self._initialized = anyio.Event()
        self._publisher: Publisher | None = None
        """None before `initialize`."""
        self._shut_down = False
        answered = {
            **{request_of(operation).method: partial(self._answer, operation) for operation in RESULTS},
            "textDocument/prepareRename": self._prepare_rename,
            "textDocument/diagnostic": self._diagnostics,
            "workspace/diagnostic": self._workspace_diagnostics,
        }
        self.methods: MethodTable = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            **{method: partial(self._in_turn, answer) for method, answer in answered.items()},
        }
        self.notifications: NotificationTable = {
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didSave": self._saved,
            "textDocument/didClose": self._closed,
            "workspace/didChangeWatchedFiles": self._watched,
        }

    async def publish(self) -> None:
        """Publish, from `initialize` on."""
        await self._initialized.wait()
        assert self._publisher is not None
        async with owned_tasks() as tasks:
            tasks.start_soon(self._service.warm_up, self._client)
            await self._publisher.publish()

    async def _initialize(self, params: Raw) -> JsonObject | ResponseError:
        if self._publisher is not None:
            return ResponseError(ErrorCode.INVALID_REQUEST, "initialize was sent before")
        root = read_params(params, shapes.InitializeParams).root
        # The session of our own folder, where the folder that the client names lies in its workspace.
        here = self._open_session(None)
        client = here if root is None or is_inside(root, here.root) else self._open_session(root)
        self._service.conversations.begin(client)
        self._publisher = Publisher(self._service, client, self._documents, self._notify)
        self._initialized.set()
        return shapes.INITIALIZE_RESULT

    async def _shutdown(self, _: Raw) -> None:
        self._shut_down = True

    async def _in_turn(self, answer: Callable[[Raw], Any], params: Raw) -> object:
        if self._publisher is None:
            return ResponseError(ErrorCode.SERVER_NOT_INITIALIZED, "initialize must be sent first")
        if self._shut_down:
            return ResponseError(ErrorCode.INVALID_REQUEST, "shutdown was sent before")
        return await answer(params)

    @property
    def _client(self) -> ClientSession:
        assert self._publisher is not None
        return self._publisher.client

    # --- Questions ----------------------------------------------------------------------------------------------------

    async def _answer(self, operation: Operation, params: Raw) -> object:
        """Raises `Unavailable` where nobody answered, or where nothing was found and not all were asked."""
        question = replace(await self._question(operation, params), limit=MAX_LIMIT)
        answer = await self._service.ask(question, self._client)
        if is_empty(answer.data):
            _require_fresh(answer)
            return None
        places = await read_places(self._service, self._client, shapes.paths_in(answer.data))
        return RESULTS[operation](answer.data, places)

    async def _question(self, operation: Operation, params: Raw) -> Question:
        match operation:
            case Operation.INCOMING_CALLS | Operation.OUTGOING_CALLS:
                try:
                    item = decode(read_params(params, shapes.ItemParams).item.data, ItemReference)
                except Malformed:
                    why = "this item did not come from textDocument/prepareCallHierarchy"
                    raise Refused(Code.INVALID_INPUT, why) from None
                return Question(operation=operation, call_hierarchy_item=item)
            case Operation.WORKSPACE_SYMBOL:
                return Question(operation=operation, query=read_params(params, shapes.QueryParams).query)
            case Operation.DOCUMENT_SYMBOL:
                path, _ = await self._document(read_params(params, DocumentParams).text_document.uri)
                return Question(operation=operation, file_path=path)
            case _:
                given = read_params(params, shapes.QuestionParams)
                path, text = await self._document(given.text_document.uri)
                line, character = shapes.position_in(text, given.position)
                asked = Question(operation=operation, file_path=path, line=line, character=character)
                if operation is Operation.RENAME:
                    return replace(asked, new_name=given.new_name)
                return replace(asked, include_declaration=given.context.include_declaration)

    async def _prepare_rename(self, params: Raw) -> JsonObject | None:
        given = read_params(params, TextDocumentPositionParams)
        _, text = await self._document(given.text_document.uri)
        return shapes.word_at(text, given.position)

    async def _diagnostics(self, params: Raw) -> JsonObject:
        assert self._publisher is not None
        path, _ = await self._document(read_params(params, DocumentParams).text_document.uri)
        # A client that pulls after an edit may look at nothing that comes later.
        await self._publisher.published()
        files = self._wanted(await self._service.check(self._client, (path,)))
        found = [one for listed in files.values() for one in listed]
        places = await read_places(self._service, self._client, [path])
        return {"kind": "full", "items": shapes.diagnostics(path, found, places)}

    async def _workspace_diagnostics(self, _: Raw) -> JsonObject:
        files = self._wanted(await self._service.check_project(self._client))
        places = await read_places(self._service, self._client, files)
        return {
            "items": [
                {
                    "kind": "full",
                    "uri": places.uri(path),
                    "version": None,
                    "items": shapes.diagnostics(path, found, places),
                }
                for path, found in files.items()
            ]
        }

    def _wanted(self, answer: DiagnosticsAnswer) -> Mapping[str, tuple[Diagnostic, ...]]:
        """The diagnostics that the configuration lets models see. Raises `Unavailable` as `_answer` does."""
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        files = of_severities(answer, severities).data or {}
        if not any(files.values()):
            _require_fresh(answer)
        return files

    async def _document(self, uri: str) -> tuple[AbsPath, Text]:
        """A file and its text on disk. Raises `Unavailable` for one that the client holds another text of."""
        path = document_path(uri)
        text = await self._service.text_of(self._client, path)
        if not self._documents.is_saved(path, text.string):
            raise Unavailable(Code.UNSUPPORTED, shapes.UNSAVED.format(name=os.path.basename(path)))
        return path, text

    # --- Documents ----------------------------------------------------------------------------------------------------

    def _opened(self, params: Raw) -> None:
        document = read_params(params, DidOpenParams).text_document
        self._report(document.uri, document.text)

    def _changed(self, params: Raw) -> None:
        change = read_params(params, shapes.ChangeParams)
        self._report(change.text_document.uri, change.whole_text)

    def _saved(self, params: Raw) -> None:
        self._touch(document_path(read_params(params, DocumentParams).text_document.uri))

    def _closed(self, params: Raw) -> None:
        self._documents.close(document_path(read_params(params, DocumentParams).text_document.uri))

    def _watched(self, params: Raw) -> None:
        changes = read_params(params, DidChangeWatchedFilesParams).changes[:MAX_WATCHED]
        for file in changes:
            if file.type == shapes.DELETED:
                self._documents.close(document_path(file.uri))
        self._touch(*(document_path(file.uri) for file in changes))

    def _report(self, uri: str, text: str | None) -> None:
        path = document_path(uri)
        self._documents.report(path, text)
        self._touch(path)

    def _touch(self, *paths: AbsPath) -> None:
        if self._publisher is not None and not self._shut_down:
            self._publisher.touch(*paths)


def _require_fresh(answer: Answer[Any]) -> None:
    """Nothing was found: that is an answer only when all that was asked has answered."""
    if answer.meta.state is not State.FRESH:
        code = answer.errors[0].code if answer.errors else Code.REQUEST_TIMEOUT
        raise Unavailable(code, answer.meta.reason or "nobody answered")
