"""What a client asks: requests of the language server protocol, answered by our own operations."""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Diagnostic, DiagnosticsAnswer, ItemReference, State, is_empty, of_severities
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.ipc.messages import read_params
from pilotfish.model import AbsPath
from pilotfish.operations.rows import ROWS
from pilotfish.operations.selection import MAX_LIMIT
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.positions import Text
from pilotfish.protocol.wire import JsonObject, TextDocumentPositionParams
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.lsp import shapes
from pilotfish.surfaces.lsp.shapes import (
    UNSAVED,
    DocumentParams,
    FilePlaces,
    ItemParams,
    OpenDocuments,
    QueryParams,
    QuestionParams,
    RenameParams,
    document_path,
    paths_in,
    position_in,
)

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


class LspAnswers:
    """One client. A request about a document whose text is not on disk is refused."""

    def __init__(
        self,
        service: Service,
        client: ClientSession,
        documents: OpenDocuments,
        published: Callable[[], Awaitable[None]],
    ) -> None:
        self._service = service
        self._client = client
        self._documents = documents
        self._published = published
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
