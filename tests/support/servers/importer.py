"""A server that knows of files only what it was told: it lists its root once, and believes notifications from then on.

`import NAME` in a document is an error where there is no file of that name below the root. In memory by
`support.servers.scripted`, as a process by `python -m support.servers.fakels support.servers.importer:importer`.
"""

import os
from collections.abc import Sequence
from typing import Any

from pilotfish.protocol.uris import path_of
from support.servers.script import Script
from support.servers.scripted import Scenario

WATCHED_FILES = "workspace/didChangeWatchedFiles"
EVERYTHING: Sequence[Any] = ({"globPattern": "**/*"},)


def importer(script: Script) -> None:
    importing()(script)


def importing(watchers: Sequence[Any] = EVERYTHING) -> Scenario:
    """A server that registers these watchers, if any, as soon as it may."""

    def scenario(script: Script) -> None:
        server = _Importer(script)
        script.capabilities.update({"textDocumentSync": 1, "diagnosticProvider": {}})
        script.on("initialize", server.initialize)
        if watchers:
            script.on("initialized", lambda params: register(script, *watchers))
        script.on("textDocument/didOpen", server.opened)
        script.on("textDocument/didChange", server.changed)
        script.ignore("textDocument/didSave", "textDocument/didClose")
        script.on(WATCHED_FILES, server.told)
        script.on("textDocument/diagnostic", server.diagnostics)

    return scenario


def register(script: Script, *watchers: Any, identifier: str = "files") -> int | str:
    options = {"watchers": [*watchers]}
    registration = {"id": identifier, "method": WATCHED_FILES, "registerOptions": options}
    return script.ask("client/registerCapability", {"registrations": [registration]})


def unregister(script: Script, identifier: str = "files") -> int | str:
    return script.ask(
        "client/unregisterCapability", {"unregisterations": [{"id": identifier, "method": WATCHED_FILES}]}
    )


class _Importer:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._root = ""
        self._known: set[str] = set()
        self._texts: dict[str, str] = {}

    def initialize(self, params: Any) -> Any:
        self._root = str(path_of(params["rootUri"]))
        for folder, _, files in os.walk(self._root):
            self._known.update(os.path.relpath(os.path.join(folder, name), self._root) for name in files)
        return {"capabilities": self._script.capabilities}

    def opened(self, params: Any) -> None:
        self._texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]

    def changed(self, params: Any) -> None:
        self._texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]

    def told(self, params: Any) -> None:
        for change in params["changes"]:
            name = os.path.relpath(str(path_of(change["uri"])), self._root)
            if change["type"] == 3:
                self._known.discard(name)
            else:
                self._known.add(name)

    def diagnostics(self, params: Any) -> Any:
        lines = self._texts[params["textDocument"]["uri"]].splitlines()
        items = [
            {
                "range": {"start": {"line": number, "character": 7}, "end": {"line": number, "character": len(line)}},
                "message": f"there is no {line.removeprefix('import ')}",
                "severity": 1,
            }
            for number, line in enumerate(lines)
            if line.startswith("import ") and line.removeprefix("import ") not in self._known
        ]
        return {"kind": "full", "items": items}
