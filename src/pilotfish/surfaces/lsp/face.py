"""`pilotfish lsp`: a language server over the daemon's service, for hosts that have an LSP client of their own.

It is no multiplexer. A message about a document is a hint that the file was touched, and every answer is about the
disk: what one client has not saved never reaches another one. It asks its client nothing, offers what agents use, and
answers `initialize` before any server is started.
"""

import logging
from functools import partial

import anyio
from msgspec import Raw

from pilotfish.ipc.client_sessions import OpenSession
from pilotfish.ipc.messages import read_params
from pilotfish.ipc.upgrades import DaemonContext, Upgrade
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.rpc import ErrorCode, ResponseError
from pilotfish.protocol.wire import DidChangeWatchedFilesParams, DidOpenParams, DocumentParams, JsonObject
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import HostChannel, MethodTable, NotificationTable, Notify
from pilotfish.surfaces.lsp.answers import METHODS, LspAnswers, Publisher
from pilotfish.surfaces.lsp.shapes import (
    DELETED,
    INITIALIZE_RESULT,
    ChangeParams,
    InitializeParams,
    OpenDocuments,
    document_path,
)
from pilotfish.system.ports import ByteStream
from pilotfish.system.tasks import owned_tasks

logger = logging.getLogger(__name__)

MAX_WATCHED = 100
"""Files of one notification that are taken: a client that reports more has changed its branch."""


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
        self._client: ClientSession | None = None
        self._publisher: Publisher | None = None
        self._answers: LspAnswers | None = None
        self._shut_down = False
        self.methods: MethodTable = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            **{method: partial(self._ask, method) for method in METHODS},
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
        if self._client is None or self._publisher is None:
            return
        async with owned_tasks() as tasks:
            tasks.start_soon(self._service.warm_up, self._client)
            await self._publisher.publish()

    async def _initialize(self, params: Raw) -> JsonObject | ResponseError:
        if self._client is not None:
            return ResponseError(ErrorCode.INVALID_REQUEST, "initialize was sent before")
        client = self._open(read_params(params, InitializeParams).root)
        self._service.conversations.begin(client)
        self._client = client
        self._publisher = Publisher(self._service, client, self._documents, self._notify)
        self._answers = LspAnswers(self._service, client, self._documents, self._publisher.published)
        self._initialized.set()
        return INITIALIZE_RESULT

    def _open(self, root: AbsPath | None) -> ClientSession:
        """The session of the folder that the client names; that of our own folder where it lies in its workspace."""
        here = self._open_session(None)
        return here if root is None or is_inside(root, here.root) else self._open_session(root)

    async def _shutdown(self, _: Raw) -> None:
        self._shut_down = True

    async def _ask(self, method: str, params: Raw) -> object:
        if self._answers is None:
            return ResponseError(ErrorCode.SERVER_NOT_INITIALIZED, "initialize must be sent first")
        if self._shut_down:
            return ResponseError(ErrorCode.INVALID_REQUEST, "shutdown was sent before")
        return await METHODS[method](self._answers, params)

    # --- Documents ----------------------------------------------------------------------------------------------------

    def _opened(self, params: Raw) -> None:
        document = read_params(params, DidOpenParams).text_document
        self._report(document.uri, document.text)

    def _changed(self, params: Raw) -> None:
        change = read_params(params, ChangeParams)
        self._report(change.text_document.uri, change.whole_text)

    def _saved(self, params: Raw) -> None:
        self._touch(document_path(read_params(params, DocumentParams).text_document.uri))

    def _closed(self, params: Raw) -> None:
        self._documents.close(document_path(read_params(params, DocumentParams).text_document.uri))

    def _watched(self, params: Raw) -> None:
        changes = read_params(params, DidChangeWatchedFilesParams).changes[:MAX_WATCHED]
        for file in changes:
            if file.type == DELETED:
                self._documents.close(document_path(file.uri))
        self._touch(*(document_path(file.uri) for file in changes))

    def _report(self, uri: str, text: str | None) -> None:
        path = document_path(uri)
        self._documents.report(path, text)
        self._touch(path)

    def _touch(self, *paths: AbsPath) -> None:
        if self._publisher is not None and not self._shut_down:
            self._publisher.touch(*paths)
