"""What a server says, on its way to a terminal or a model: bounded, printable, and the same when cleaned again."""

from fuzz.pieces import Pieces
from pilotfish.sanitise import sanitised, sanitised_lines

WORDS = (
    b"\x1b[31m",
    b"\x1b]8;;http://x\x07",
    b"\xe2\x80\xae",
    b"\xf3\xa0\x81\x81",
    b"\xe2\x80\x8d",
    b"\xc2\x9b",
    b"\r\n",
    b"\xff",
)
SEEDS = (
    b"\x20\x1b[31mred\x1b[0m",
    b"\x05a\xe2\x80\xaeb\xe2\x80\xac",
    "\x30👩‍👩‍👧 é\u0301".encode(),
    b"\x02\x1b]52;c;x",
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    limit = pieces.number() + 1
    text = pieces.rest().decode("utf-8", "surrogateescape")
    for clean in (sanitised, sanitised_lines):
        cleaned = clean(text, limit)
        assert len(cleaned) <= limit
        cleaned.encode()
        assert clean(cleaned, limit) == cleaned
        assert not any(ord(character) < 32 and character not in "\n\t" for character in cleaned)
        assert "\x1b" not in cleaned
