"""A server whose verdicts follow from all files of the project, so that a test knows what an edit breaks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pilotfish.api.answers import Feedback
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of, uri_of
from support.servers.script import SILENCE, Script


def linker(
    script: Script,
    silent_about: str = "nothing",
    *,
    publishes: bool = False,
    speaks_up: bool = False,
    judges_all: bool = False,
    own: str = "",
    is_silent: Callable[[], bool] = lambda: False,
    holds_back: Callable[[], bool] = lambda: False,
) -> None:
    """`use NAME` is an error unless some file, as it is open here or else on disk, has a line `def NAME`.

    `ask 5` is an error, too, unless there is a `def name5`: no word of the file tells.
    `publishes`: it cannot be asked, and speaks of a file when that is opened or changed, and then only, as work.
    `speaks_up`: when a file is opened, it speaks of every open one of which it has something else to say.
    `judges_all`: it can be asked about its whole project, by a pull and by the command of gopls: of files that end so
    (`own`).
    `is_silent`: asked before each answer; `holds_back`: before each about the whole project.
    """
    texts: dict[str, str] = {}
    said: dict[str, list[Any]] = {}
    roots: list[str] = []

    def everything() -> dict[str, str]:
        return _everything(roots[0], texts)

    def reported() -> dict[str, str]:
        return {path: text for path, text in everything().items() if path.endswith(own)}

    def items(text: str) -> list[dict[str, Any]]:
        return _items(text, everything())

    def diagnostics(params: Any) -> Any:
        if params["textDocument"]["uri"].endswith(silent_about) or is_silent():
            return SILENCE
        return {"kind": "full", "items": items(texts[path_of(params["textDocument"]["uri"]) or ""])}

    def initialized(params: Any) -> dict[str, Any]:
        roots.append(path_of(params["rootUri"]) or "")
        return {"capabilities": script.capabilities}

    def keep(params: Any) -> None:
        document = params["textDocument"]
        text = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
        texts[path_of(document["uri"]) or ""] = text
        if speaks_up and "text" in document:
            _tell_news(script, said, {path: items(text) for path, text in texts.items()})
        if publishes:
            found = {
                "uri": document["uri"],
                "version": document["version"],
                "diagnostics": diagnostics(params)["items"],
            }
            script.notify("$/progress", {"token": "check", "value": {"kind": "begin", "title": "checking"}})
            script.notify("textDocument/publishDiagnostics", found)
            script.notify("$/progress", {"token": "check", "value": {"kind": "end"}})

    offers: dict[str, Any] = {} if publishes else {"diagnosticProvider": {"interFileDependencies": True}}
    if judges_all:
        offers["diagnosticProvider"]["workspaceDiagnostics"] = True
        offers["executeCommandProvider"] = {"commands": ["gopls.diagnose_files"]}
        _judge_all(script, everything, reported, lambda: is_silent() or holds_back())
    script.capabilities.update({"textDocumentSync": 1, **offers})
    script.on("initialize", initialized)
    script.on("textDocument/didOpen", keep)
    script.on("textDocument/didChange", keep)
    script.on(
        "textDocument/didClose", lambda params: texts.pop(path_of(params["textDocument"]["uri"]) or "", None) and None
    )
    script.ignore("textDocument/didSave", "initialized", "workspace/didChangeConfiguration")
    script.on("textDocument/diagnostic", diagnostics)


def _judge_all(
    script: Script,
    everything: Callable[[], dict[str, str]],
    reported: Callable[[], dict[str, str]],
    is_silent: Callable[[], bool],
) -> None:
    published: dict[str, list[Any]] = {}

    def report(path: str, text: str) -> dict[str, Any]:
        return {"uri": uri_of(AbsPath(path)), "version": None, "kind": "full", "items": _items(text, everything())}

    def project(_params: Any) -> Any:
        return SILENCE if is_silent() else {"items": [report(path, text) for path, text in reported().items()]}

    def command(_params: Any) -> Any:
        if is_silent():
            return SILENCE
        _tell_news(script, published, {path: _items(text, everything()) for path, text in reported().items()})
        return None

    script.on("workspace/diagnostic", project)
    script.on("workspace/executeCommand", command)


def _tell_news(script: Script, said: dict[str, list[Any]], now: dict[str, list[Any]]) -> None:
    for path, found in now.items():
        if said.get(path, []) != found:
            script.notify("textDocument/publishDiagnostics", {"uri": uri_of(AbsPath(path)), "diagnostics": found})
    said.update(now)


def _everything(root: str, texts: dict[str, str]) -> dict[str, str]:
    """All files but git's, as they are open or else on disk."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    paths = [path for path in paths if f"{os.sep}.git{os.sep}" not in path]
    return {path: texts[path] if path in texts else Path(path).read_text() for path in paths}


def _items(text: str, everything: dict[str, str]) -> list[dict[str, Any]]:
    lines = [line for one in everything.values() for line in one.splitlines()]
    defined = {line.split()[1] for line in lines if line.startswith("def ")}
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    missing = [name for name in used(text) if name not in defined]
    return [{"range": place, "severity": 1, "message": f"no {name}"} for name in missing]


def used(text: str) -> list[str]:
    """The names that a file needs."""
    words = [line.split() for line in text.splitlines() if line.startswith(("use ", "ask "))]
    return [name if verb == "use" else f"name{name}" for verb, name in words]


def told(feedback: Feedback) -> dict[str, list[str]]:
    """The messages by file."""
    found: dict[str, list[str]] = {}
    for line in feedback.text.splitlines():
        if line.startswith("<diagnostics"):
            found[line.split('"')[1]] = []
        elif line.startswith(("ERROR", "OPEN")):
            found[next(reversed(found))].append(line.partition("] ")[2])
    return found
