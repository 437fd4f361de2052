"""URIs: no file, or an absolute path without a zero whose own URI names it again."""

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of, uri_of

WORDS = (
    b"file:///",
    b"file://localhost/",
    b"%2e%2e",
    b"%2F",
    b"%00",
    b"%FF",
    b"c%3A",
    b"jdt://",
    b"\\\\",
    b"#",
    b"?",
    b"//",
)
SEEDS = (b"file:///w/a%20b.py", b"file:///c%3A/x", b"file://server/share/a", b"file:/w/../etc/passwd", b"untitled:1")


def run(data: bytes) -> None:
    uri = Pieces(data).rest().decode("utf-8", "surrogateescape")
    path = path_of(uri)
    if path is not None:
        assert "\0" not in path
        again = uri_of(path)
        assert path_of(again) == path, (uri, path, again)
        assert uri_of(AbsPath(path)) == again
        assert again.isascii()
