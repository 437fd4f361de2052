"""Documents: whatever texts follow each other, a server that applies our changes has our text."""

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath, Encoding
from pilotfish.protocol.documents import Documents, Notification, SyncKind, sync_options
from pilotfish.protocol.wire import DidChangeParams, DidOpenParams
from support.oracles import naive_text

WORDS = ("😀".encode(), "é".encode(), b"\r\n", b"\r", b"\n", "\u2028".encode(), b"\xff", b"\xed\xa0\x80")
SEEDS = (b"\x00\x02\x05a\nb\nc\x05a\nX\nc", b"\x01\x02\x06\xf0\x9f\x98\x80\r\n\x04\r\n\r\n", b"\x02\x01\x02ab")
FILE = AbsPath("/w/a.py")
MAX_STEPS = 8


def run(data: bytes) -> None:
    pieces = Pieces(data)
    encoding = pieces.choice(tuple(Encoding))
    documents = Documents(sync_options(pieces.choice((SyncKind.INCREMENTAL, SyncKind.FULL))), encoding)
    theirs, version = "", -1
    for _ in range(MAX_STEPS):
        ours = pieces.text()
        for notification in documents.sync(FILE, "python", ours):
            theirs = _applied(theirs, notification, encoding)
            assert documents.version(FILE) > version
            version = documents.version(FILE)
        assert theirs == ours, (theirs, ours)
        if not pieces.more:
            return


def _applied(text: str, notification: Notification, encoding: Encoding) -> str:
    """The server's text after a notification, by the second implementation."""
    params = notification.params
    if isinstance(params, DidOpenParams):
        return params.text_document.text
    assert isinstance(params, DidChangeParams)
    for change in params.content_changes:
        if change.range is None:
            text = change.text
            continue
        start, end = (
            naive_text.offset(text, *naive_text.place_from_units(text, place.line, place.character, encoding))
            for place in (change.range.start, change.range.end)
        )
        text = text[:start] + change.text + text[end:]
    return text
