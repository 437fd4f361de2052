"""A daemon that records what plugins send to it, in place of the real one."""

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, BufferedWriter
from typing import Any

from pilotfish.daemon.claim import listen, listen_here, make_private
from pilotfish.ipc.loopback import SIZE, Endpoint
from pilotfish.ipc.rendezvous import PROTOCOL, DaemonPlace
from support.daemon.homes import DaemonHome

REFUSED = {"code": -32602, "message": "malformed parameters", "data": {"kind": "refused", "code": "invalid_input"}}
FEEDBACK = {"text": "", "state": "fresh", "durationMs": 0}


@dataclass
class RecordingDaemon:
    """One that knows no old texts refuses them, as earlier versions do."""

    knows_old_texts: bool
    endpoint: Endpoint | None = None
    """Where it listens at a port."""
    touches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] != "touched":
            return {"result": {"protocol": PROTOCOL, "build": 0, "pid": 1}}
        params: dict[str, Any] = message["params"]
        self.touches.append(params)
        return {"result": FEEDBACK} if self.knows_old_texts or "before" not in params else {"error": REFUSED}

    def serve(self, listener: socket.socket) -> None:
        """Serve one connection after the other until the listener is shut down."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as heard, connection.makefile("wb") as said:
                if self.endpoint is not None:
                    if heard.read(SIZE) != self.endpoint.word:
                        continue
                    connection.sendall(self.endpoint.answer)
                while (message := _read(heard)) is not None:
                    if "id" in message:
                        _write(said, {"jsonrpc": "2.0", "id": message["id"], **self.answer(message)})


@contextmanager
def recording_daemon(
    home: DaemonHome, *, knows_old_texts: bool = True, at_port: bool = False
) -> Generator[RecordingDaemon]:
    place = DaemonPlace(home.environment)
    make_private(place.folder)
    listener, endpoint = listen_here(place) if at_port else (listen(place), None)
    listener.setblocking(True)
    daemon = RecordingDaemon(knows_old_texts, endpoint)
    with listener:
        thread = threading.Thread(target=daemon.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield daemon
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _read(stream: BufferedReader) -> dict[str, Any] | None:
    header = stream.readline()
    if not header:
        return None
    stream.readline()
    return json.loads(stream.read(int(header.partition(b":")[2])))


def _write(stream: BufferedWriter, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    stream.flush()
