"""What a client says: the parameters of its messages, and the questions that they mean. Pure.

Fields that we do not use are not read, and whatever may be absent has a default.
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Raw, field

from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import ContentChange, TextDocumentIdentifier, TextDocumentItem, Wire, WirePosition

T = TypeVar("T")

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

HIERARCHY: Mapping[str, Operation] = {
    "callHierarchy/incomingCalls": Operation.INCOMING_CALLS,
    "callHierarchy/outgoingCalls": Operation.OUTGOING_CALLS,
}
"""Requests about an item that we gave."""


class Folder(Wire, frozen=True):
    uri: str


class InitializeParams(Wire, frozen=True):
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[Folder] | None = None

    @property
    def root(self) -> AbsPath | None:
        """The first folder that the client names; None where it names none."""
        named = [self.root_uri, *(folder.uri for folder in self.workspace_folders or ())]
        found = next((path for uri in named if uri and (path := path_of(uri)) is not None), None)
        return found or (AbsPath(self.root_path) if self.root_path else None)


class OpenParams(Wire, frozen=True):
    text_document: TextDocumentItem


class DocumentParams(Wire, frozen=True):
    text_document: TextDocumentIdentifier


class ChangeParams(DocumentParams, frozen=True):
    content_changes: list[ContentChange] = field(default_factory=list[ContentChange])

    @property
    def whole_text(self) -> str | None:
        """The text of the document now; None from a client that sends parts of it, which we do not ask for."""
        last = self.content_changes[-1] if self.content_changes else None
        return None if last is None or last.range is not None else last.text


class PositionParams(DocumentParams, frozen=True):
    position: WirePosition


class ReferenceContext(Wire, frozen=True):
    include_declaration: bool = True


class QuestionParams(PositionParams, frozen=True):
    context: ReferenceContext = ReferenceContext()


class RenameParams(PositionParams, frozen=True):
    new_name: str = ""


class QueryParams(Wire, frozen=True):
    query: str = ""


class GivenItem(Wire, frozen=True):
    """An item of a call hierarchy: what we need of it is what we put into `data`."""

    data: Raw = Raw(b"null")


class ItemParams(Wire, frozen=True):
    item: GivenItem


DELETED = 3
"""`FileChangeType.Deleted`."""


class WatchedFile(Wire, frozen=True):
    uri: str
    type: int = 0


class WatchedParams(Wire, frozen=True):
    changes: list[WatchedFile]


def read(params: Raw, shape: type[T]) -> T:
    """The parameters of a message. Raises `Refused`."""
    try:
        return decode(params, shape)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, f"cannot read the parameters: {malformed}") from None


def document_path(uri: str) -> AbsPath:
    """The file of a document. Raises `Refused` for a document that is none."""
    path = path_of(uri)
    if path is None:
        raise Refused(Code.INVALID_INPUT, f"only files are served, and this is none: {uri}")
    return path
