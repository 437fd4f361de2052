"""The bytes of a server: any chunking gives the same messages and the same fault, and nothing else is raised."""

from fuzz.pieces import Pieces
from pilotfish.protocol.frames import MAX_MESSAGE, FrameDecoder, FrameError, frame

WORDS = (b"Content-Length: ", b"content-type", b"\r\n\r\n", b"charset=utf-8", b"\n", b"99999999999999999999", b"-1")
SEEDS = (
    b"\x03" + frame(b"{}") + frame(b'{"id":1}'),
    b"\x01Starting...\nContent-Length: 2\r\n\r\n{}",
    b"\x05Content-Type: application/vscode-jsonrpc; charset=utf8\r\ncontent-length : 3\r\n\r\n[1]",
    b"\x02Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    step = pieces.number() + 1
    stream = pieces.rest()
    at_once = _fed([stream])
    in_steps = _fed([stream[at : at + step] for at in range(0, len(stream), step)])
    assert at_once == in_steps, (at_once, in_steps)


def _fed(chunks: list[bytes]) -> tuple[list[bytes], str | None]:
    """All messages, and the fault that ended them."""
    decoder, bodies = FrameDecoder(), list[bytes]()
    for chunk in chunks:
        try:
            bodies += decoder.feed(chunk)
        except FrameError as error:
            return [*bodies, *error.bodies], f"{error.code} {error}"
    assert all(len(body) <= MAX_MESSAGE for body in bodies)
    return bodies, None
