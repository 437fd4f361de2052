"""Answers of a server to every operation: malformed, or an answer whose text and envelope are clean."""

from msgspec import Raw

from fuzz.pieces import Pieces
from pilotfish.api.questions import Question
from pilotfish.model import Encoding
from pilotfish.operations.results import RequestContext
from pilotfish.operations.rows import ROWS
from pilotfish.operations.selection import Backdrop, resolved, selected
from pilotfish.protocol.codec import Malformed, encode
from pilotfish.protocol.positions import Text
from support.values.questions import WORKSPACE, path, uri

WORDS = (
    b'"uri":"file:///w/a.py"',
    b'"range":{"start":{"line":0,"character":0},"end":{"line":1,"character":9}}',
    b'"targetUri":',
    b'"name":"n"',
    b'"kind":12',
    b'"selectionRange":',
    b'"children":[',
    b'"contents":',
    b'"location":{',
    b'"from":{',
    b'"fromRanges":[',
    b'"signatures":[',
    b'"label":',
    b'"title":',
    b'"edit":{"changes":{}}',
    b'"command":{"title":"t","command":"c"}',
    b"null",
    b"\\u001b[31m",
    b"\\u202e",
    b"\\ud800",
)
HERE = b'{"start":{"line":0,"character":1},"end":{"line":0,"character":2}}'
SEEDS = (
    b'\x00[{"uri":"file:///w/a.py","range":%b}]' % HERE,
    b'\x01{"targetUri":"file:///etc/passwd","targetRange":%b,"targetSelectionRange":%b}' % (HERE, HERE),
    b'\x05{"contents":[{"language":"x","value":"y"},"z"],"range":%b}' % HERE,
    b'\x07[{"name":"n","kind":12,"range":%b,"selectionRange":%b,"children":[{"name":"m"}]}]' % (HERE, HERE),
    b'\x0f{"changes":{"file:///w/a.py":[{"range":%b,"newText":"x"}]}}' % HERE,
)
REQUESTS = [operation for operation, row in ROWS.items() if row.request is not None and row.request.read is not None]
TEXTS = {path("a.py"): Text("a😀b\r\ncd")}
BACKDROP = Backdrop(WORKSPACE, TEXTS, {"s": Encoding.UTF16})


def run(data: bytes) -> None:
    pieces = Pieces(data)
    operation = pieces.choice(REQUESTS)
    row, question = ROWS[operation], Question(operation=operation, query="q", new_name="n")
    assert row.request is not None
    assert row.request.read is not None
    try:
        reading = row.request.read(Raw(pieces.rest()), RequestContext(question, uri=uri("a.py"), item=Raw(b"{}")))
        selection = selected(row, question, {"s": reading}, WORKSPACE)
        found = resolved(row, selection, BACKDROP)
    except Malformed:
        return
    encode(found)
    assert set(selection.paths) <= {spot.path for found in reading.found for spot in found.spots}
