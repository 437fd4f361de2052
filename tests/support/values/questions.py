"""What tests of operations have in common: a workspace, texts in it, and answers as a server sends them."""

import json

from msgspec import Raw

from pilotfish.api.questions import Operation, Question
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.results import RequestContext, View
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WirePosition, WireRange

WORKSPACE = AbsPath("/w")
SERVER = "fakels"


def path(name: str) -> AbsPath:
    return AbsPath(f"{WORKSPACE}/{name}")


def uri(name: str) -> str:
    return uri_of(path(name))


def raw(value: object) -> Raw:
    """A server's answer."""
    return Raw(json.dumps(value).encode())


def wire_range(line: int, start: int, end: int, end_line: int | None = None) -> dict[str, dict[str, int]]:
    """A range as a server writes it."""
    last = line if end_line is None else end_line
    return {"start": {"line": line, "character": start}, "end": {"line": last, "character": end}}


def wire(line: int, start: int, end: int) -> WireRange:
    return WireRange(WirePosition(line, start), WirePosition(line, end))


def asked(operation: Operation = Operation.DEFINITION, name: str = "a.py", **fields: object) -> RequestContext:
    return RequestContext(Question(operation=operation), uri=uri(name), **fields)  # pyright: ignore[reportArgumentType] -- rows of tests


def view(encoding: Encoding = Encoding.UTF16, **texts: str) -> View:
    """A view with the texts of `a.py`, `b.py` and so on, given as `a`, `b`."""
    files = {path(f"{name}.py"): Text(text) for name, text in texts.items()}
    return View(WORKSPACE, SERVER, encoding, files)
