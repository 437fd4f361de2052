"""A daemon that records what plugins send to it, in place of the real one."""

import json
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, BufferedWriter
from typing import Any

from pilotfish.ipc.rendezvous import PROTOCOL, DaemonPlace
from support.daemon.homes import DaemonHome

REFUSED = {"code": -32602, "message": "malformed parameters", "data": {"kind": "refused", "code": "invalid_input"}}
FEEDBACK = {"text": "", "state": "fresh", "durationMs": 0}


@dataclass
class RecordingDaemon:
    """One that knows no old texts refuses them, as earlier versions do."""

    knows_old_texts: bool
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
                while (message := _read(heard)) is not None:
                    if "id" in message:
                        _write(said, {"jsonrpc": "2.0", "id": message["id"], **self.answer(message)})


@contextmanager
def recording_daemon(home: DaemonHome, *, knows_old_texts: bool = True) -> Generator[RecordingDaemon]:
    place = DaemonPlace(home.environment)
    daemon = RecordingDaemon(knows_old_texts)
    with socket.socket(socket.AF_UNIX) as listener:
        _make_folders(place)
        listener.bind(place.socket)
        listener.listen()
        thread = threading.Thread(target=daemon.serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield daemon
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _make_folders(place: DaemonPlace) -> None:
    for folder in (place.state, place.socket_folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)


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
