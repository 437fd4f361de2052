"""Frames of a wire, made and read by hand, so that both ends cannot be wrong alike."""

import json
from typing import Any


class Frames:
    """Takes bytes, gives messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Any]:
        self._rest += data
        messages: list[Any] = []
        while b"\r\n\r\n" in self._rest:
            header, _, rest = self._rest.partition(b"\r\n\r\n")
            name, _, length = header.partition(b": ")
            assert name == b"Content-Length"
            if len(rest) < int(length):
                break
            messages.append(json.loads(rest[: int(length)]))
            self._rest = rest[int(length) :]
        return messages


def framed(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
