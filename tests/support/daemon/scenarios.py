"""Servers for tests of the daemon; they run in memory, and as real processes by `support.servers.fakels`."""

import os
from collections.abc import Callable
from typing import Any

from support.servers.script import SILENCE, Script

PLACE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}


def answering(script: Script, before_verdict: Callable[[], None] = lambda: None) -> None:
    """Diagnoses the word `bad`, and knows one definition."""
    script.capabilities = {
        "textDocumentSync": 1,
        "definitionProvider": True,
        "hoverProvider": True,
        "diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False},
    }
    texts: dict[str, str] = {}

    def opened(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]

    def changed(params: Any) -> None:
        texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]

    def pulled(params: Any) -> Any:
        before_verdict()
        bad = "bad" in texts[params["textDocument"]["uri"]]
        return {"kind": "full", "items": [{"range": PLACE, "severity": 1, "message": "bad word"}] if bad else []}

    def defined(params: Any) -> Any:
        return [{"uri": params["textDocument"]["uri"], "range": PLACE}]

    script.on("textDocument/didOpen", opened)
    script.on("textDocument/didChange", changed)
    script.on("textDocument/diagnostic", pulled)
    script.on("textDocument/hover", lambda params: {"contents": "a word"})
    script.on("textDocument/definition", defined)
    script.ignore("textDocument/didSave", "textDocument/didClose", "workspace/didChangeWatchedFiles")


def wordless(script: Script) -> None:
    """As `answering`, but it knows nothing about any word."""
    answering(script)
    script.on("textDocument/hover", lambda params: None)


def mute(script: Script) -> None:
    """As `answering`, but it never says what a definition is."""
    answering(script)
    script.on("textDocument/definition", lambda params: SILENCE)


def undecided(script: Script) -> None:
    """As `answering`, but it never says whether a text is bad."""
    answering(script)
    script.on("textDocument/diagnostic", lambda params: SILENCE)


def gated(script: Script) -> None:
    """As `answering`, but it judges only once somebody opens the other end of the pipe `GATE`, and says that it works.

    Without the word that it works, a silent server would count as hung.
    """

    def wait() -> None:
        script.notify("$/progress", {"token": "gate", "value": {"kind": "begin", "title": "waiting"}})
        with open(os.environ["GATE"], "rb"):
            script.notify("$/progress", {"token": "gate", "value": {"kind": "end"}})

    answering(script, before_verdict=wait)


def prolific(script: Any) -> None:
    """As `answering`, with a child that left its session and ignores SIGTERM."""
    answering(script)
    script.ignore_sigterm()
    script.spawn_child(new_session=True)


def complaining(script: Any) -> None:
    """Writes why it cannot start, in red and over what was there, and exits."""
    script.say(b"\x1b[31m\rno licence\x1b]0;pwned\x07\n")

    def give_up(params: Any) -> Any:
        script.leave(7)

    script.on("initialize", give_up)


def hostile(script: Script) -> None:
    """As `answering`, but its words move the cursor, hide text and ring."""
    answering(script)
    message = "\x1b[31mwickedness\x1b[0m \u202ereversed\u202c \x07<img src=x onerror=alert(1)>"
    items = [{"range": PLACE, "severity": 1, "message": message}]
    script.on("textDocument/diagnostic", lambda params: {"kind": "full", "items": items})


def says_its_name(script: Script) -> None:
    """As `answering`, but what it says of a bad word begins with the name in its variable `NAME`."""
    answering(script)
    name = os.environ["NAME"]
    items = [{"range": PLACE, "severity": 1, "message": f"{name} found a bad word"}]
    script.on("textDocument/diagnostic", lambda params: {"kind": "full", "items": items})
