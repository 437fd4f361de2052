"""A listener that hears whether anybody calls."""

import socket
from threading import Thread


class Ear:
    """A listener on loopback: what a server asks it for."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.heard: list[bytes] = []
        Thread(target=self._listen, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/schema.json"

    def close(self) -> None:
        # Closing alone leaves the thread in `accept`.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return
            with end:
                self.heard.append(end.recv(65536))
                end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
