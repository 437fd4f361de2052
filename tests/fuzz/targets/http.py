"""Heads of HTTP requests: whoever comes in has our name, no foreign origin, and the key, each once."""

from fuzz.pieces import Pieces
from pilotfish_http.admission import AccessKeys, Head, KeyScope, head_of, is_open, objection, own_names

PORT = 8123
NAMES = own_names(PORT)
KEYS = AccessKeys("/nowhere")
HEADERS = (b"Host", b"Origin", b"Authorization", b"Content-Type", b"Sec-Fetch-Site", b"Content-Length", b"host", b"X")
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "get", "TRACE")

WORDS = (
    b"127.0.0.1:8123",
    b"localhost:8123",
    b"localhost:8123@evil.example",
    b"http://localhost:8123",
    b"http://evil.example",
    b"Bearer ",
    b"application/json",
    b"text/plain",
    b"same-origin",
    b"cross-site",
    b"/status",
    b"/../status",
    b"null",
)
SEEDS = (
    b"\x00\x07/status\x00\x0e127.0.0.1:8123\x02\x08Bearer x",
    b"\x01\x05/mcp/\x00\x0elocalhost:8123\x01\x13http://evil.example\x03\x10application/json",
    b"\x00\x01/\x00\x0b evil.example\x06\x0elocalhost:8123",
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    method, path = pieces.choice(METHODS), pieces.text()
    given: list[tuple[bytes, bytes]] = []
    while pieces.more:
        given.append((pieces.choice(HEADERS), pieces.text().encode("utf-8", "surrogateescape")))
    head = head_of(method, path, given)
    against = objection(head, NAMES, KEYS)
    if against is None:
        _check(head)
    else:
        assert 400 <= against.status < 500


def _check(head: Head) -> None:
    hosts = [value for name, value in head.headers if name == "host"]
    assert len(hosts) == 1
    assert hosts[0] in NAMES
    assert {value for name, value in head.headers if name == "origin"} <= {f"http://{hosts[0]}"}
    keys = [value for name, value in head.headers if name == "authorization"]
    assert is_open(head) or [KEYS.grant(key.partition(" ")[2].strip()) for key in keys] == [KeyScope.EVERYTHING]
