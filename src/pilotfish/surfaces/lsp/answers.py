"""What a client asks: requests of the language server protocol, answered by our own operations.

It is told unasked of the diagnostics of the files that it touches, and of those that this breaks. After each touch the
diagnostics of the file are published, all of them, and of every other file those that the client has brought about
since it came: an empty list once they are gone. What is found late is published when it is found. A file without a
verdict is not published: an empty list would say that it is clean.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from pilotfish.api.answers import (
    Answer,
    Diagnostic,
    DiagnosticsAnswer,
    ItemReference,
    State,
    diagnostic_of,
    is_empty,
    of_severities,
)
from pilotfish.api.questions import Moment, Operation, Question, Touch
from pilotfish.client.pulse import Pulse
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc.messages import read_params
from pilotfish.model import AbsPath
from pilotfish.model import Diagnostic as ModelDiagnostic
from pilotfish.operations.rows import ROWS
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import DocumentParams, JsonObject, TextDocumentPositionParams, WireDiagnostic
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.host_channel import Notify
from pilotfish.surfaces.lsp import shapes
from pilotfish.surfaces.lsp.shapes import (
    UNSAVED,
    FilePlaces,
    ItemParams,
    OpenDocuments,
    QueryParams,
    QuestionParams,
    RenameParams,
    diagnostics,
    document_path,
    paths_in,
    position_in,
)
from pilotfish.system.real_path import real_path

logger = logging.getLogger(__name__)


_Render = Callable[[Any, FilePlaces], object]

Method = Callable[["LspAnswers", Raw], Awaitable[object]]

AT_POSITION: Mapping[Operation, _Render] = {
    Operation.DEFINITION: shapes.locations,
    Operation.DECLARATION: shapes.locations,
    Operation.TYPE_DEFINITION: shapes.locations,
    Operation.IMPLEMENTATION: shapes.locations,
    Operation.REFERENCES: shapes.locations,
    Operation.HOVER: lambda found, _: shapes.hover(found),
    Operation.PREPARE_CALLS: shapes.hierarchy_items,
}
"""Requests about a position in a document, and how the data of an answer are written."""

ABOUT_ITEM: Mapping[Operation, _Render] = {
    Operation.INCOMING_CALLS: shapes.calls,
    Operation.OUTGOING_CALLS: shapes.calls,
}
"""Requests about an item that we gave."""

RESULTS: Mapping[Operation, _Render] = {
    **AT_POSITION,
    **ABOUT_ITEM,
    Operation.DOCUMENT_SYMBOL: shapes.symbol_tree,
    Operation.WORKSPACE_SYMBOL: shapes.symbol_list,
    Operation.RENAME: shapes.workspace_edit,
}


class LspAnswers(Struct, frozen=True):
    """One client. A request about a document whose text is not on disk is refused."""

    _service: Service
    _client: ClientSession
    _documents: OpenDocuments
    _published: Callable[[], Awaitable[None]]
    """Waits until the diagnostics of what was touched before are published."""

    async def at_position(self, operation: Operation, params: Raw) -> object:
        given = read_params(params, QuestionParams)
        asked = Question(operation=operation, include_declaration=given.context.include_declaration)
        return await self._ask_at(given, asked)

    async def about_item(self, operation: Operation, params: Raw) -> object:
        try:
            item = decode(read_params(params, ItemParams).item.data, ItemReference)
        except Malformed:
            raise Refused(Code.INVALID_INPUT, "this item did not come from textDocument/prepareCallHierarchy") from None
        return await self._ask(Question(operation=operation, call_hierarchy_item=item))

    async def document_symbols(self, params: Raw) -> object:
        path, _ = await self._document(read_params(params, DocumentParams).text_document.uri)
        return await self._ask(Question(operation=Operation.DOCUMENT_SYMBOL, file_path=path))

    async def workspace_symbols(self, params: Raw) -> object:
        return await self._ask(
            Question(operation=Operation.WORKSPACE_SYMBOL, query=read_params(params, QueryParams).query)
        )

    async def prepare_rename(self, params: Raw) -> object:
        given = read_params(params, TextDocumentPositionParams)
        _, text = await self._document(given.text_document.uri)
        return shapes.word_at(text, given.position)

    async def rename(self, params: Raw) -> object:
        given = read_params(params, RenameParams)
        return await self._ask_at(given, Question(operation=Operation.RENAME, new_name=given.new_name))

    async def diagnostics(self, params: Raw) -> JsonObject:
        path, _ = await self._document(read_params(params, DocumentParams).text_document.uri)
        # A client that pulls after an edit may look at nothing that comes later.
        await self._published()
        files = self._wanted(await self._service.check(self._client, (path,)))
        found = [one for listed in files.values() for one in listed]
        places = await read_places(self._service, self._client, [path])
        return {"kind": "full", "items": shapes.diagnostics(path, found, places)}

    async def workspace_diagnostics(self, _: Raw) -> JsonObject:
        files = self._wanted(await self._service.check_project(self._client))
        places = await read_places(self._service, self._client, files)
        items = [
            {
                "kind": "full",
                "uri": places.uri(path),
                "version": None,
                "items": shapes.diagnostics(path, found, places),
            }
            for path, found in files.items()
        ]
        return {"items": items}

    def _wanted(self, answer: DiagnosticsAnswer) -> Mapping[str, tuple[Diagnostic, ...]]:
        """The diagnostics that the configuration lets models see. Raises `Unavailable` as `_ask` does."""
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        files = of_severities(answer, severities).data or {}
        if not any(files.values()):
            _require_fresh(answer)
        return files

    async def _ask_at(self, given: TextDocumentPositionParams, question: Question) -> object:
        path, text = await self._document(given.text_document.uri)
        line, character = position_in(text, given.position)
        return await self._ask(replace(question, file_path=path, line=line, character=character))

    async def _ask(self, question: Question) -> object:
        """Raises `Unavailable` where nobody answered, or where nothing was found and not all were asked."""
        answer = await self._service.ask(replace(question, limit=MAX_LIMIT), self._client)
        if is_empty(answer.data):
            _require_fresh(answer)
            return None
        places = await read_places(self._service, self._client, paths_in(answer.data))
        return RESULTS[question.operation](answer.data, places)

    async def _document(self, uri: str) -> tuple[AbsPath, Text]:
        """A file and its text on disk. Raises `Refused` for one that the client holds another text of."""
        path = document_path(uri)
        text = await self._service.text_of(self._client, path)
        if not self._documents.is_saved(path, text.string):
            raise Unavailable(Code.UNSUPPORTED, UNSAVED.format(name=os.path.basename(path)))
        return path, text


async def read_places(service: Service, client: ClientSession, paths: Iterable[str]) -> FilePlaces:
    """By path as given; relative ones count from the root of the workspace, and what may not be read is left out."""
    texts = dict[str, Text]()
    for path in dict.fromkeys(paths):
        with suppress(Refused):
            texts[path] = await service.text_of(client, os.path.join(client.root, path))
    return FilePlaces(client.root, texts)


def _require_fresh(answer: Answer[Any]) -> None:
    """Nothing was found: that is an answer only when all that was asked has answered."""
    if answer.meta.state is not State.FRESH:
        code = answer.errors[0].code if answer.errors else Code.REQUEST_TIMEOUT
        raise Unavailable(code, answer.meta.reason or "nobody answered")


def _asking(
    operations: Iterable[Operation], ask: Callable[[LspAnswers, Operation, Raw], Awaitable[object]]
) -> Iterator[tuple[str, Method]]:
    for operation in operations:
        request = ROWS[operation].request
        assert request is not None
        yield request.method, lambda answers, params, asked=operation: ask(answers, asked, params)


METHODS: Mapping[str, Method] = {
    **dict(_asking(AT_POSITION, LspAnswers.at_position)),
    **dict(_asking(ABOUT_ITEM, LspAnswers.about_item)),
    "textDocument/documentSymbol": LspAnswers.document_symbols,
    "workspace/symbol": LspAnswers.workspace_symbols,
    "textDocument/prepareRename": LspAnswers.prepare_rename,
    "textDocument/rename": LspAnswers.rename,
    "textDocument/diagnostic": LspAnswers.diagnostics,
    "workspace/diagnostic": LspAnswers.workspace_diagnostics,
}
"""Every request that is answered, but for the life of the connection."""


WARNING = 2
"""`MessageType.Warning`."""


class Publisher:
    """One client. `run` does the work, in the order of the touches; those that come meanwhile are taken together."""

    def __init__(self, service: Service, client: ClientSession, documents: OpenDocuments, notify: Notify) -> None:
        self._service = service
        self._client = client
        self._documents = documents
        self._notify = notify
        self._waiting: dict[AbsPath, None] = {}
        self._is_late = False
        self._is_busy = False
        self._wake = Pulse()
        self._done = Pulse()
        self._touched: set[AbsPath] = set()
        """Every file that the client has touched: of these it hears everything."""
        self._left: Mapping[AbsPath, tuple[ModelDiagnostic, ...]] = {}
        self._published: dict[AbsPath, list[WireDiagnostic]] = {}

    def touch(self, *paths: AbsPath) -> None:
        self._waiting |= dict.fromkeys(paths)
        self._wake.notify()

    async def published(self) -> None:
        """Wait until every touch so far is published, as far as it can be."""
        while self._waiting or self._is_busy:
            await self._done.wait()

    async def publish(self) -> None:
        self._service.conversations.on_late(self._client, self._on_late)
        while True:
            if self._waiting:
                paths, self._waiting = tuple(self._waiting), {}
                self._is_busy = True
                await self._take(paths)
                self._is_busy = False
                self._done.notify()
            elif self._is_late:
                self._is_late = False
                await self._service.reached(Moment("call", counts=False), self._client)
                await self._publish(())
            else:
                await self._wake.wait()

    def _on_late(self) -> None:
        self._is_late = True
        self._wake.notify()

    async def _take(self, paths: Iterable[AbsPath]) -> None:
        saved = [path for path in paths if await self._is_saved(path)]
        if not saved:
            return
        self._touched.update(AbsPath(real_path(path)) for path in saved)
        await self._service.touched(Touch(tuple(saved), "edit"), self._client)
        await self._publish(saved)

    async def _is_saved(self, path: AbsPath) -> bool:
        """Whether the client's text is the one on disk; where it is not, the client may be told so."""
        try:
            on_disk = (await self._service.text_of(self._client, path)).string
        except Refused:
            on_disk = None
        if self._documents.compare(path, on_disk):
            return True
        if self._documents.is_to_be_told(path):
            message = UNSAVED.format(name=os.path.basename(path))
            self._notify("window/showMessage", {"type": WARNING, "message": message})
            if self._published.get(path):
                # What was published is about another text. Where nothing was, an empty list would be a verdict.
                self._send(path, [])
        return False

    async def _publish(self, touched: Iterable[AbsPath]) -> None:
        left, before = self._service.conversations.left(self._client), self._left
        self._left = left
        changed = {path for path in {*left, *before} if left.get(path, ()) != before.get(path, ())}
        asked = dict.fromkeys(touched)
        # The touched files come last: a client that waits for these has the others by then.
        for path in [*sorted(changed - {AbsPath(real_path(path)) for path in asked}), *asked]:
            is_whole = path in asked or path in self._touched
            found = await self._all_of(path) if is_whole else self._wanted(left.get(path, ()))
            if found is not None:
                places = await read_places(self._service, self._client, [path])
                listed = diagnostics(path, found, places)
                if path in asked or listed != self._published.get(path, []):
                    self._send(path, listed)

    async def _all_of(self, path: AbsPath) -> tuple[Diagnostic, ...] | None:
        """All diagnostics of a file; None without a verdict."""
        answer = await self._service.check(self._client, (path,))
        if any(error.code is Code.FILE_MISSING for error in answer.errors):
            return ()
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        found = [one for listed in (of_severities(answer, severities).data or {}).values() for one in listed]
        if not found and answer.meta.state is not State.FRESH:
            logger.info("nothing published path=%s reason=%s", path, answer.meta.reason)
            return None
        return tuple(found)

    def _wanted(self, found: Iterable[ModelDiagnostic]) -> tuple[Diagnostic, ...]:
        severities = self._service.workspaces.of(self._client).config.feedback.severities
        return tuple(diagnostic_of(one) for one in found if one.severity in severities)

    def _send(self, path: AbsPath, listed: list[WireDiagnostic]) -> None:
        self._published[path] = listed
        self._notify("textDocument/publishDiagnostics", {"uri": uri_of(path), "diagnostics": listed})
