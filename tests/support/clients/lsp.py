"""A client of `pilotfish lsp` by hand: frames made and read here, so that both ends cannot be wrong alike."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from support.clients.frames import Frames, framed

LSP = (sys.executable, "-I", "-m", "pilotfish", "lsp")

PUBLISH = "textDocument/publishDiagnostics"


class LspClient:
    """Requests one after the other; what the server says meanwhile is kept."""

    def __init__(self, process: "subprocess.Popen[bytes]", root: Path) -> None:
        self.process = process
        self.root = root
        self.notified: list[Any] = []
        self._frames = Frames()
        self._next = 0

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    # --- Messages -----------------------------------------------------------------------------------------------------

    def say(self, method: str, params: Any = None, **more: Any) -> None:
        assert self.process.stdin is not None
        given = {} if params is None else {"params": params}
        self.process.stdin.write(framed({"jsonrpc": "2.0", "method": method, **given, **more}))
        self.process.stdin.flush()

    def answer(self, method: str, params: Any = None) -> Any:
        """The whole response to a request."""
        self._next += 1
        self.say(method, params, id=self._next)
        return self._until(lambda message: message.get("id") == self._next)

    def ask(self, method: str, params: Any = None) -> Any:
        answer = self.answer(method, params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _until(self, wanted: Callable[[Any], bool]) -> Any:
        assert self.process.stdout is not None
        while True:
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the server has ended"
            messages = self._frames.feed(data)
            # What asks the client something has both a method and an id, and must never come.
            assert not [one for one in messages if "method" in one and "id" in one]
            self.notified += [one for one in messages if "method" in one]
            for message in messages:
                if wanted(message):
                    return message

    # --- As hosts do it -----------------------------------------------------------------------------------------------

    def initialize(self, **params: Any) -> Any:
        given: dict[str, Any] = {"processId": os.getpid(), "rootUri": self.root.as_uri(), "capabilities": {}, **params}
        result = self.ask("initialize", given)
        self.say("initialized", {})
        return result

    def open(self, name: str, text: str | None = None) -> None:
        held = (self.root / name).read_text() if text is None else text
        document = {"uri": self.uri(name), "languageId": "python", "version": 1, "text": held}
        self.say("textDocument/didOpen", {"textDocument": document})

    def change(self, name: str, text: str, version: int = 2) -> None:
        document = {"uri": self.uri(name), "version": version}
        self.say("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def at(self, name: str, line: int, character: int, **more: Any) -> dict[str, Any]:
        """Parameters of a request about a place, counted from 0."""
        return {
            "textDocument": {"uri": self.uri(name)},
            "position": {"line": line, "character": character},
            **more,
        }

    def heard(self, method: str) -> list[Any]:
        """The parameters of all notifications of a method, once there is one."""
        if not any(one["method"] == method for one in self.notified):
            self._until(lambda message: message.get("method") == method)
        return [one["params"] for one in self.notified if one["method"] == method]

    # --- Diagnostics --------------------------------------------------------------------------------------------------

    def published(self, names: Mapping[str, int]) -> dict[str, list[Any]]:
        """The last publish of each file, once each of these has that many diagnostics."""

        def known() -> dict[str, list[Any]]:
            said = [one["params"] for one in self.notified if one["method"] == PUBLISH]
            return {os.path.relpath(one["uri"].removeprefix("file://"), self.root): one["diagnostics"] for one in said}

        def is_so(_: Any = None) -> bool:
            now = known()
            return all(name in now and len(now[name]) == count for name, count in names.items())

        if not is_so():
            self._until(is_so)
        return known()


def lsp_client(root: Path, environment: Mapping[str, str], *arguments: str) -> AbstractContextManager[LspClient]:
    return started_client(root, environment, [*LSP, *arguments])


@contextmanager
def started_client(root: Path, environment: Mapping[str, str], command: Sequence[str]) -> Generator[LspClient]:
    """The program as a host starts it."""
    process = subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield LspClient(process, root)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()
