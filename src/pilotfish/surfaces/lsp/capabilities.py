"""What we say of ourselves in `initialize`, the same to every client. Pure.

Texts are synchronised whole, because they are only compared with the disk. The client is asked for nothing.
"""

from pilotfish.protocol.wire import JsonObject
from pilotfish.version import VERSION

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
