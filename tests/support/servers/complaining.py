"""Scenarios of a server that complains, light enough to be played by a real process, too (`support.servers.fakels`)."""

from typing import Any

from support.servers.script import Script


def silent(script: Script) -> None:
    """A server that offers nothing and minds nothing."""
    script.ignore("textDocument/didOpen", "textDocument/didChange", "textDocument/didSave", "textDocument/didClose")


def complaining(script: Script) -> None:
    """A server that, when it is asked, finds an error in every line that says `wrong` and a warning where `odd` is."""
    texts: dict[str, str] = {}
    silent(script)
    script.capabilities["textDocumentSync"] = 1
    script.capabilities["diagnosticProvider"] = {"interFileDependencies": False, "workspaceDiagnostics": False}
    script.on("textDocument/didOpen", lambda params: _keep(texts, params, params["textDocument"]["text"]))
    script.on("textDocument/didChange", lambda params: _keep(texts, params, params["contentChanges"][-1]["text"]))
    script.on("textDocument/diagnostic", lambda params: {"kind": "full", "items": _found(texts, params)})


def _keep(texts: dict[str, str], params: Any, text: str) -> None:
    texts[params["textDocument"]["uri"]] = text


def _found(texts: dict[str, str], params: Any) -> list[dict[str, Any]]:
    return [
        {
            "range": {"start": {"line": number, "character": 0}, "end": {"line": number, "character": 5}},
            "severity": 1 if "wrong" in line else 2,
            "message": line,
            "code": "E1",
        }
        for number, line in enumerate(texts[params["textDocument"]["uri"]].splitlines())
        if "wrong" in line or "odd" in line
    ]
