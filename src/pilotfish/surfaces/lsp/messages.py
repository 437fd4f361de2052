"""What a client says: the parameters of its messages, and the questions that they mean. Pure.

Fields that we do not use are not read, and whatever may be absent has a default. Our answer to `initialize` is the same
to every client: texts are synchronised whole, because they are only compared with the disk.
"""

from collections.abc import Mapping

from msgspec import Raw

from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import (
    ContentChange,
    JsonObject,
    TextDocumentIdentifier,
    TextDocumentPositionParams,
    Wire,
)
from pilotfish.version import VERSION

QUESTIONS: Mapping[str, Operation] = {
    "textDocument/definition": Operation.DEFINITION,
    "textDocument/declaration": Operation.DECLARATION,
    "textDocument/typeDefinition": Operation.TYPE_DEFINITION,
    "textDocument/implementation": Operation.IMPLEMENTATION,
    "textDocument/references": Operation.REFERENCES,
    "textDocument/hover": Operation.HOVER,
    "textDocument/prepareCallHierarchy": Operation.PREPARE_CALLS,
}
"""Requests about a position in a document."""

DELETED = 3
"""`FileChangeType.Deleted`."""

HIERARCHY: Mapping[str, Operation] = {
    "callHierarchy/incomingCalls": Operation.INCOMING_CALLS,
    "callHierarchy/outgoingCalls": Operation.OUTGOING_CALLS,
}
"""Requests about an item that we gave."""


WHOLE_TEXT = 1
"""`TextDocumentSyncKind.Full`."""

INITIALIZE_RESULT: JsonObject = {
    "capabilities": {
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": True, "change": WHOLE_TEXT, "save": {"includeText": False}},
        "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": True},
        "definitionProvider": True,
        "declarationProvider": True,
        "typeDefinitionProvider": True,
        "implementationProvider": True,
        "referencesProvider": True,
        "hoverProvider": True,
        "documentSymbolProvider": True,
        "workspaceSymbolProvider": True,
        "callHierarchyProvider": True,
        "renameProvider": {"prepareProvider": True},
    },
    "serverInfo": {"name": "pilotfish", "version": VERSION},
}


class InitializeParams(Wire, frozen=True):
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[TextDocumentIdentifier] | None = None
    """Of a folder we read what we read of a document: its address."""

    @property
    def root(self) -> AbsPath | None:
        """The first folder that the client names; None where it names none."""
        named = [self.root_uri, *(folder.uri for folder in self.workspace_folders or ())]
        found = next((path for uri in named if uri and (path := path_of(uri)) is not None), None)
        return found or (AbsPath(self.root_path) if self.root_path else None)


class DocumentParams(Wire, frozen=True):
    text_document: TextDocumentIdentifier


class ChangeParams(DocumentParams, frozen=True):
    content_changes: tuple[ContentChange, ...] = ()

    @property
    def whole_text(self) -> str | None:
        """The text of the document now; None from a client that sends parts of it, which we do not ask for."""
        last = self.content_changes[-1] if self.content_changes else None
        return None if last is None or last.range is not None else last.text


class ReferenceContext(Wire, frozen=True):
    include_declaration: bool = True


class QuestionParams(TextDocumentPositionParams, frozen=True):
    context: ReferenceContext = ReferenceContext()


class RenameParams(TextDocumentPositionParams, frozen=True):
    new_name: str = ""


class QueryParams(Wire, frozen=True):
    query: str = ""


class GivenItem(Wire, frozen=True):
    """An item of a call hierarchy: what we need of it is what we put into `data`."""

    data: Raw = Raw(b"null")


class ItemParams(Wire, frozen=True):
    item: GivenItem


def document_path(uri: str) -> AbsPath:
    """The file of a document. Raises `Refused` for a document that is none."""
    path = path_of(uri)
    if path is None:
        raise Refused(Code.INVALID_INPUT, f"only files are served, and this is none: {uri}")
    return path
