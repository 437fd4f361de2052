"""Globs of servers and of users: refused, or a match that is quick and that pruning never contradicts."""

from fuzz.pieces import Pieces
from pilotfish.config.trusted_roots import covers, fault
from pilotfish.model import AbsPath
from pilotfish.protocol.globs import BadGlob, lsp_glob

WORDS = (b"**/", b"{a,b}", b"[!a-z]", b"?", b"*.{ts,tsx}", b"!(", b"+(", b"@(", b"{1..3}", b"\\", b"/../", b"[^")
SEEDS = (
    b"\x0e**/*.{ts,js}xy\x0bsrc/a/b.tsx",
    b"\x06[a-c]?\x02bz",
    b"\x0a/w/!(a|b)/\x05/w/c/",
    b"\x12{{{a,b},{c,d}},e}/**\x03d/x",
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    pattern, path = pieces.text(), pieces.text()
    ignore_case = bool(pieces.number(1))
    try:
        glob = lsp_glob(pattern, ignore_case=ignore_case)
    except BadGlob:
        pass
    else:
        if glob.matches(path):
            assert all(glob.may_match_below(folder) for folder in _folders(path)), (pattern, path)
    if fault(pattern) is None:
        covers(pattern, AbsPath("/" + path), AbsPath("/home/me"))


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts)) if all(parts[: count + 1])]
