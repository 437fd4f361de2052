"""How clients and the daemon meet where sockets have no place in a folder: a port of this machine, and two secrets.

Anybody may connect to a port, also a page in a browser; and anybody may listen at one whose owner has ended. So each
end first shows that it can read a file in the daemon's private folder: the client sends one secret, and only then the
daemon the other. Before that nothing is read and nothing is told. Each daemon has its own, and its port alone.

Imports next to nothing, as `rendezvous`.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from pilotfish.system.ports import ByteStream
else:
    import _socket as socket

SIZE = 64
"""Of a secret, in hexadecimal digits."""

HERE = "127.0.0.1"

MOST = 2 * SIZE + 16
"""Bytes of the file: the port, the client's secret and the daemon's."""


class Endpoint:
    """What the file says."""

    __slots__ = ("answer", "port", "word")

    def __init__(self, port: int, word: bytes, answer: bytes) -> None:
        self.port = port
        self.word = word
        self.answer = answer


def new_endpoint(port: int) -> Endpoint:
    return Endpoint(port, os.urandom(SIZE // 2).hex().encode(), os.urandom(SIZE // 2).hex().encode())


def written(endpoint: Endpoint) -> bytes:
    return b"%d %b %b" % (endpoint.port, endpoint.word, endpoint.answer)


def read_endpoint(content: bytes) -> Endpoint | None:
    """None for what no daemon has written."""
    port, word, answer, *more = (*content.split(b" "), b"", b"")[:4]
    plain = port.isdigit() and len(content) <= MOST and len(word) == len(answer) == SIZE and not any(more)
    return Endpoint(int(port), word, answer) if plain and int(port) < 1 << 16 else None


def meet(endpoint: Endpoint, seconds: float) -> "socket.socket | None":
    """Connect to the daemon; None when another program listens there. Raises `OSError`."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        end.settimeout(seconds)
        end.connect((HERE, endpoint.port))
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.sendall(endpoint.word)
        heard = b""
        while len(heard) < SIZE and (part := end.recv(SIZE - len(heard))):
            heard += part
    except BaseException:
        end.close()
        raise
    if heard == endpoint.answer:
        return end
    end.close()
    return None


class KnownStream:
    """The daemon's end: the `ByteStream` of a client that has said the secret. For any other it ends."""

    def __init__(self, stream: "ByteStream", endpoint: Endpoint) -> None:
        self._stream = stream
        self._endpoint = endpoint
        self._known = False

    async def receive(self) -> bytes:
        if self._known:
            return await self._stream.receive()
        heard = b""
        while len(heard) < SIZE:
            part = await self._stream.receive()
            heard += part
            if not part:
                return b""
        from hmac import compare_digest  # clients do without

        # All of it at once: who is told after how many digits it went wrong has guessed the rest soon.
        self._known = compare_digest(heard[:SIZE], self._endpoint.word)
        if not self._known:
            return b""
        await self._stream.send(self._endpoint.answer)
        return heard[SIZE:] or await self._stream.receive()

    async def send(self, data: bytes) -> None:
        if self._known:
            await self._stream.send(data)

    def close(self) -> None:
        self._stream.close()
