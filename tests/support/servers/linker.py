"""A server whose verdicts follow from all files of the project, so that a test knows what an edit breaks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pilotfish.api.answers import Feedback
from pilotfish.protocol.uris import path_of
from support.servers.script import SILENCE, Script


def linker(
    script: Script,
    silent_about: str = "nothing",
    *,
    publishes: bool = False,
    is_silent: Callable[[], bool] = lambda: False,
) -> None:
    """`use NAME` is an error unless some file, as it is open here or else on disk, has a line `def NAME`.

    `publishes`: it cannot be asked, and speaks of a file when that is opened or changed, and then only.
    `is_silent`: asked before each answer.
    """
    texts: dict[str, str] = {}
    roots: list[str] = []

    def defined() -> set[str]:
        found = set[str]()
        for folder, _, names in os.walk(roots[0]):
            for name in names:
                path = os.path.join(folder, name)
                text = texts.get(path) or Path(path).read_text()
                found |= {line.split()[1] for line in text.splitlines() if line.startswith("def ")}
        return found

    def diagnostics(params: Any) -> Any:
        if params["textDocument"]["uri"].endswith(silent_about) or is_silent():
            return SILENCE
        lines = texts[path_of(params["textDocument"]["uri"]) or ""].splitlines()
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        missing = [line.split()[1] for line in lines if line.startswith("use ")]
        items = [{"range": place, "severity": 1, "message": f"no {name}"} for name in missing if name not in defined()]
        return {"kind": "full", "items": items}

    def initialized(params: Any) -> dict[str, Any]:
        roots.append(path_of(params["rootUri"]) or "")
        return {"capabilities": script.capabilities}

    def keep(params: Any) -> None:
        document = params["textDocument"]
        text = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
        texts[path_of(document["uri"]) or ""] = text
        if publishes:
            found = {
                "uri": document["uri"],
                "version": document["version"],
                "diagnostics": diagnostics(params)["items"],
            }
            script.notify("textDocument/publishDiagnostics", found)

    offers: dict[str, Any] = {} if publishes else {"diagnosticProvider": {"interFileDependencies": True}}
    script.capabilities.update({"textDocumentSync": 1, **offers})
    script.on("initialize", initialized)
    script.on("textDocument/didOpen", keep)
    script.on("textDocument/didChange", keep)
    script.on(
        "textDocument/didClose", lambda params: texts.pop(path_of(params["textDocument"]["uri"]) or "", None) and None
    )
    script.ignore("textDocument/didSave", "initialized", "workspace/didChangeConfiguration")
    script.on("textDocument/diagnostic", diagnostics)


def told(feedback: Feedback) -> dict[str, list[str]]:
    """The messages by file."""
    found: dict[str, list[str]] = {}
    for line in feedback.text.splitlines():
        if line.startswith("<diagnostics"):
            found[line.split('"')[1]] = []
        elif line.startswith("ERROR"):
            found[next(reversed(found))].append(line.partition("] ")[2])
    return found
