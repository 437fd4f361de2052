"""A real daemon that serves HTTP, and a client that says exactly what it is told to."""

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from pilotfish.ipc.client import Introduction, open_link
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.daemon.in_process import Alive

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class HttpServed:
    """Where a daemon listens, as it said so itself."""

    home: DaemonHome
    said: Mapping[str, str]

    @property
    def port(self) -> int:
        return int(self.said["address"].rpartition(":")[2])

    @property
    def token(self) -> str:
        return Path(self.said["token_file"]).read_text().strip()

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """A request with the token."""
        kind = {} if body is None else JSON
        data = b"" if body is None else json.dumps(body).encode()
        return self.bare(method, path, data, {**self.bearer, **kind, **headers})

    def bare(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """A request with these headers and no others, but for the host and the length."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Bytes there, and all that comes back until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT_SECONDS) as connection:
            connection.sendall(data)
            heard = b""
            while more := connection.recv(65536):
                heard += more
            return heard


@contextmanager
def http_served(home: DaemonHome, port: int = 0) -> Generator[HttpServed]:
    """A daemon that serves for as long as the block lasts; it is started when none runs."""
    link = open_link(Introduction(cwd=str(home.root), host="serve"), home.terms())
    with closing(link.upgraded("serve", {"port": port})) as connection:
        connection.settimeout(WAIT_SECONDS)
        connection.sendall(b"\n")
        line = b""
        while not line.endswith(b"\n"):
            line += connection.recv(65536) or b"\n"
        said: dict[str, str] = json.loads(line)
        assert "error" not in said, said
        yield HttpServed(home, said)
        # A daemon that was killed has hung up already.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


@asynccontextmanager
async def served_here(daemon: Alive) -> AsyncGenerator[tuple[str, dict[str, str]]]:
    """A daemon of this process that serves: its address, and what to send along."""
    connection = await daemon.in_thread(lambda: daemon.link("serve").upgraded("serve", {"port": 0}))
    try:
        connection.sendall(b"\n")
        said = json.loads(await daemon.in_thread(connection.recv, 65536))
        token = Path(said["token_file"]).read_text().strip()
        yield said["address"], {"Authorization": f"Bearer {token}"}
    finally:
        connection.close()
        # The library that the SDK streams with looks twice a second whether it is over.
        while any("_shutdown_watcher" in repr(task.get_coro()) for task in asyncio.all_tasks()):
            await anyio.sleep(0.05)
