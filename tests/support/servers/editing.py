"""A scripted server that has texts in mind: those that it was sent, and those that it once read from disk.

It renames words, follows moved files, offers actions, and finds fault with lines that start with `bad`, in the file
itself and in the files that it names in `use` lines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of, uri_of
from support.servers.script import SILENCE, Script

EVERYTHING = {"filters": [{"pattern": {"glob": "**/*"}}]}

CAPABILITIES: dict[str, Any] = {
    "textDocumentSync": {"openClose": True, "change": 1, "save": True},
    "renameProvider": True,
    "codeActionProvider": {"resolveProvider": True},
    "executeCommandProvider": {"commands": ["do"]},
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False},
    "workspace": {"fileOperations": {"willRename": EVERYTHING, "didRename": EVERYTHING}},
}


@dataclass
class EditingServer:
    """What it has in mind. Use it as a scenario."""

    root: Path
    capabilities: dict[str, Any] = field(default_factory=lambda: CAPABILITIES)
    remembered: dict[str, str] = field(default_factory=dict[str, str])
    """Files by name, as they were when it read them; the disk is not looked at again."""
    sent: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, int] = field(default_factory=dict[str, int])
    saved: list[str] = field(default_factory=list[str])
    actions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    resolved: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """By title: what resolving an action adds to it."""
    before_answer: Callable[[], object] = lambda: None
    """Happens while it thinks."""
    on_command: Callable[["EditingServer", Any], None] = lambda server, params: None
    versioned: bool = True
    script: Script | None = None

    def __call__(self, script: Script) -> None:
        self.script = script
        self.sent, self.versions = {}, {}
        script.capabilities = self.capabilities
        script.on("textDocument/didOpen", self._open)
        script.on("textDocument/didChange", self._change)
        script.on("textDocument/didClose", lambda params: self.sent.pop(params["textDocument"]["uri"]))
        script.on("textDocument/didSave", lambda params: self.saved.append(self.name(params["textDocument"]["uri"])))
        script.on("textDocument/rename", self._rename)
        script.on("workspace/willRenameFiles", self._will_rename)
        script.on("textDocument/codeAction", lambda params: self.actions)
        script.on("codeAction/resolve", lambda action: {**action, **self.resolved.get(action["title"], {})})
        script.on("workspace/executeCommand", self._command)
        script.on("textDocument/diagnostic", self.diagnose)
        script.ignore("workspace/didRenameFiles", "workspace/didChangeWatchedFiles")

    # --- What it has in mind -----------------------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        return uri_of(AbsPath(str(self.root / name)))

    def name(self, uri: str) -> str:
        return str(Path(path_of(uri) or "").relative_to(self.root))

    def texts(self) -> dict[str, str]:
        """By URI: what it was sent, and for the others what it once read."""
        return {**{self.uri(name): text for name, text in self.remembered.items()}, **self.sent}

    def open_texts(self) -> dict[str, str]:
        return {self.name(uri): text for uri, text in self.sent.items()}

    def _open(self, params: Any) -> None:
        document = params["textDocument"]
        self.sent[document["uri"]], self.versions[document["uri"]] = document["text"], document["version"]

    def _change(self, params: Any) -> None:
        document = params["textDocument"]
        self.sent[document["uri"]] = params["contentChanges"][-1]["text"]
        self.versions[document["uri"]] = document["version"]

    # --- What it wants -----------------------------------------------------------------------------------------------

    def edits(self, old: str, new: str) -> dict[str, Any]:
        """Replace a word wherever it has it in mind."""
        changes = [
            {"textDocument": {"uri": uri, "version": self._version(uri)}, "edits": found}
            for uri, text in sorted(self.texts().items())
            if (found := _replacements(text, old, new))
        ]
        return {"documentChanges": changes}

    def _version(self, uri: str) -> int | None:
        return self.versions.get(uri) if self.versioned and uri in self.sent else None

    def _rename(self, params: Any) -> Any:
        number: int = params["position"]["line"]
        start: int = params["position"]["character"]
        line = self.sent[params["textDocument"]["uri"]].splitlines()[number]
        after = line.encode("utf-16-le")[2 * start :].decode("utf-16-le")
        word = after.split()[0]
        answer = self.edits(word, params["newName"])
        self.before_answer()
        return answer

    def _will_rename(self, params: Any) -> Any:
        (move,) = params["files"]
        answer = self.edits(self.name(move["oldUri"]), self.name(move["newUri"]))
        self.before_answer()
        return answer

    def _command(self, params: Any) -> Any:
        self.on_command(self, params)
        return None

    def apply(self, edit: dict[str, Any]) -> int | str:
        """Ask the client to apply an edit; the answer lands in the script's `answers`."""
        assert self.script is not None
        return self.script.ask("workspace/applyEdit", {"edit": edit})

    def diagnose(self, params: Any) -> Any:
        uri = params["textDocument"]["uri"]
        lines = self.sent.get(uri, "").splitlines()
        items = [_item(number, line) for number, line in enumerate(lines) if line.startswith("bad")]
        for number, line in enumerate(lines):
            if line.startswith("use "):
                used = self.texts().get(self.uri(line.removeprefix("use ")), "")
                items += [_item(number, f"{line}: {other}") for other in used.splitlines() if other.startswith("bad")]
        return {"kind": "full", "items": items}


def never(params: Any) -> Any:
    """An answer that does not come."""
    return SILENCE


def _item(line: int, message: str) -> dict[str, Any]:
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 3}}
    return {"range": place, "severity": 1, "message": message}


def _replacements(text: str, old: str, new: str) -> list[dict[str, Any]]:
    """Characters count in UTF-16, as the server was not asked for anything else."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines()):
        start = line.find(old)
        while start >= 0:
            units = len(line[:start].encode("utf-16-le")) // 2
            end = units + len(old.encode("utf-16-le")) // 2
            place = {"start": {"line": number, "character": units}, "end": {"line": number, "character": end}}
            found.append({"range": place, "newText": new})
            start = line.find(old, start + len(old))
    return found
