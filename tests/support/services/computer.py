"""A computer on which one scripted server serves `.toy` files, for tests of the library."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.config.places import user_places
from pilotfish.service.service import System
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from support.servers.pools import FakeVitals
from support.servers.script import Script
from support.servers.scripted import ScriptedServer, spawning
from support.values.settings import listing_every_error

PLACE = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 9}}

CAPABILITIES: dict[str, Any] = {
    "textDocumentSync": 1,
    "definitionProvider": True,
    "declarationProvider": True,
    "typeDefinitionProvider": True,
    "implementationProvider": True,
    "referencesProvider": True,
    "hoverProvider": True,
    "signatureHelpProvider": {},
    "documentSymbolProvider": True,
    "workspaceSymbolProvider": True,
    "callHierarchyProvider": True,
    "typeHierarchyProvider": True,
    "renameProvider": True,
    "codeActionProvider": True,
    "diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False},
    "workspace": {"fileOperations": {"willRename": {"filters": [{"pattern": {"glob": "**/*"}}]}}},
}


@dataclass
class ScriptedShell:
    """`root` holds `a.toy`; what the server is asked is in `servers`."""

    root: Path
    system: System
    servers: list[ScriptedServer] = field(default_factory=list[ScriptedServer])

    def methods(self) -> list[str]:
        """The questions that the server got, in order."""
        asked = [message for server in self.servers for message in server.received if message.id is not None]
        return [message.method for message in asked if message.method not in {"initialize", "shutdown"}]

    def params(self, method: str) -> Any:
        """What the last question of a kind said."""
        found = [message for server in self.servers for message in server.received if message.method == method]
        return found[-1].params


def scripted_shell(folder: Path, config: dict[str, Any] | None = None) -> ScriptedShell:
    """A user, a workspace, and the server's program, which is never run."""
    root, home = Path(folder.resolve()) / "workspace", Path(folder.resolve()) / "home"
    root.mkdir()
    (root / "a.toy").write_text("let greet = 1\ngreet\n")
    program = home / "toy-server"
    file = home / ".config" / "pilotfish" / "lsp.json"
    file.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    servers = {"toy": {"command": [str(program)], "extensions": [".toy"], "languageId": {".toy": "toy"}}}
    file.write_text(json.dumps(listing_every_error({"lsp": servers, **(config or {})})))
    environment = {"HOME": str(home), "PATH": str(home / "nothing"), "PILOTFISH_HOME": str(home / "pilotfish")}
    started: list[ScriptedServer] = []
    spawner = spawning(lambda script: _scenario(script, f"file://{root}/a.toy"), servers=started)
    system = System(spawner, DiskFiles(), WallClock(), FakeVitals(), user_places(environment), environment)
    return ScriptedShell(root, system, started)


def _scenario(script: Script, uri: str) -> None:
    location = {"uri": uri, "range": PLACE}
    item = {"name": "greet", "kind": 12, "uri": uri, "range": PLACE, "selectionRange": PLACE, "data": [7]}
    edit = {"changes": {uri: [{"range": PLACE, "newText": "hello"}]}}
    script.capabilities = CAPABILITIES
    script.ignore("textDocument/didOpen", "textDocument/didChange", "textDocument/didSave", "textDocument/didClose")
    answers: dict[str, Any] = {
        "textDocument/definition": [location],
        "textDocument/declaration": [location],
        "textDocument/typeDefinition": [location],
        "textDocument/implementation": [location],
        "textDocument/references": [location],
        "textDocument/hover": {"contents": "a number"},
        "textDocument/signatureHelp": {"signatures": [{"label": "greet()"}]},
        "textDocument/documentSymbol": [{"name": "greet", "kind": 13, "range": PLACE, "selectionRange": PLACE}],
        "workspace/symbol": [{"name": "greet", "kind": 13, "location": location}],
        "textDocument/prepareCallHierarchy": [item],
        "callHierarchy/incomingCalls": [{"from": item, "fromRanges": [PLACE]}],
        "callHierarchy/outgoingCalls": [{"to": item, "fromRanges": [PLACE]}],
        "textDocument/prepareTypeHierarchy": [item],
        "typeHierarchy/supertypes": [item],
        "typeHierarchy/subtypes": [item],
        "textDocument/rename": edit,
        "workspace/willRenameFiles": edit,
        "textDocument/codeAction": [{"title": "Fix", "kind": "quickfix", "edit": edit}],
    }
    for method, answer in answers.items():
        script.on(method, lambda params, answer=answer: answer)
    script.on("textDocument/diagnostic", lambda params: _report(script))


def _report(script: Script) -> dict[str, Any]:
    """An error wherever the text that was sent last says `bad`."""
    sent = [message.params for message in script.received if message.method.startswith("textDocument/did")]
    texts = [
        params["textDocument"].get("text") or params["contentChanges"][-1]["text"]
        for params in sent
        if _has_text(params)
    ]
    lines = texts[-1].split("\n")
    items = [
        {
            "range": {"start": {"line": number, "character": 0}, "end": {"line": number, "character": 3}},
            "severity": 1,
            "message": "bad word",
        }
        for number, line in enumerate(lines)
        if line.startswith("bad")
    ]
    return {"kind": "full", "items": items}


def _has_text(params: dict[str, Any]) -> bool:
    return "text" in params["textDocument"] or bool(params.get("contentChanges"))
