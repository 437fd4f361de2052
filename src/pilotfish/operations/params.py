"""The parameters of each request, exactly as the protocol has them."""

from pilotfish.operations.hierarchy import protocol_item
from pilotfish.operations.request_context import RequestContext
from pilotfish.protocol.wire import FileRename, TextDocumentIdentifier, TextDocumentPositionParams

_INVOKED = 1
"""Code actions are requested by a user, not because a cursor moved."""


def at_position(asked: RequestContext) -> object:
    return TextDocumentPositionParams(TextDocumentIdentifier(asked.document), asked.place)


def of_document(asked: RequestContext) -> object:
    return {"textDocument": TextDocumentIdentifier(asked.document)}


def of_references(asked: RequestContext) -> object:
    return {
        "textDocument": TextDocumentIdentifier(asked.document),
        "position": asked.place,
        "context": {"includeDeclaration": asked.question.include_declaration},
    }


def of_query(asked: RequestContext) -> object:
    return {"query": asked.query}


def of_item(asked: RequestContext) -> object:
    return {"item": protocol_item(asked.hierarchy_item)}


def of_rename(asked: RequestContext) -> object:
    return {
        "textDocument": TextDocumentIdentifier(asked.document),
        "position": asked.place,
        "newName": asked.new_name,
    }


def of_file_rename(asked: RequestContext) -> object:
    return {"files": [FileRename(asked.document, asked.target)]}


def of_actions(asked: RequestContext) -> object:
    only = {"only": [asked.question.kind]} if asked.question.kind else {}
    return {
        "textDocument": TextDocumentIdentifier(asked.document),
        "range": asked.extent,
        "context": {"diagnostics": asked.diagnostics, **only, "triggerKind": _INVOKED},
    }
