"""`python -I -S stubborn.py PHASE MARK`: the smallest language server that does not want to end.

It ignores SIGTERM and the end of its input, and has a child and a grandchild in sessions of their own. At the moment
that PHASE names it writes its pid to the pipe MARK, once more than that where it must first have worked: `shutdown`.
What would end the moment it never answers.
"""

import json
import os
import signal
import sys

# `typing` would cost more than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

CAPABILITIES = {
    "textDocumentSync": 1,
    "hoverProvider": True,
    "renameProvider": True,
    "diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False},
}
SPOT = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}


def main(phase: str, mark: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    multiply()
    while (message := received()) is not None:
        serve(message, phase, mark)
    while True:
        signal.pause()


def multiply() -> None:
    """A child and a grandchild that have left our group."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
        while True:
            signal.pause()


def serve(message: "Json", phase: str, mark: str) -> None:
    method, identifier = message.get("method"), message.get("id")
    params: Json = message.get("params") or {}
    moment = {"initialize": "init", "shutdown": "shutdown", "textDocument/rename": "rename"}.get(str(method))
    if method in {"textDocument/diagnostic", "textDocument/hover"} and phase in {"running", "shutdown"}:
        moment = phase
    if method == "textDocument/didOpen" and phase == "indexing":
        # Nobody asks a server that says that it is indexing; its documents are opened.
        moment = phase
    if moment == phase:
        with open(mark, "wb", buffering=0) as pipe:
            pipe.write(b"%d\n" % os.getpid())
        if phase in {"init", "indexing"} or method == "shutdown":
            return
    if method == "initialized" and phase == "indexing":
        send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "begin", "title": "indexing"}}})
    if identifier is not None and method is not None:
        send({"id": identifier, "result": answer(str(method), params)})


def answer(method: str, params: "Json") -> object:
    match method:
        case "initialize":
            return {"capabilities": CAPABILITIES}
        case "textDocument/diagnostic":
            return {"kind": "full", "items": [{"range": SPOT, "severity": 1, "message": "bad word"}]}
        case "textDocument/hover":
            return {"contents": "a word"}
        case "textDocument/rename":
            return {"changes": {params["textDocument"]["uri"]: [{"range": SPOT, "newText": "new"}]}}
        case _:
            return None


def received() -> "Json | None":
    length = 0
    while (line := sys.stdin.buffer.readline()).strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if line else None


def send(message: "Json") -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:3])
