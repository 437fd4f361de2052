"""`pilotfish service` as LLxprt runs it: a real process with five streams, and a real language server below it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.clients.frames import Frames, framed
from support.clients.mcp import text_of, transport
from support.process_tree import alive, below, ends


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


TESTS = Path(__file__).parents[1]

SERVICE = "from pilotfish_llxprt.verb import service; service()"

LAUNCH = """
import fcntl, os, sys
given = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[2].split(",") if number]
for place, number in enumerate(given, 3):
    os.dup2(number, place)
os.closerange(3 + len(given), 100)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
"""Puts the descriptors that it is given at 3 and 4, and becomes the service."""

FAKE = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
sys.argv = ["fakels", "support.servers.complaining:complaining"]
from support.servers.fakels import main
main()
"""

CONFIG = {
    "servers": [{"id": "fake", "command": sys.executable, "args": ["-c", FAKE], "extensions": [".fake"]}],
    "firstTouchTimeoutMs": 30_000,
    "diagnosticsTimeoutMs": 30_000,
}


@dataclass
class Service:
    process: "subprocess.Popen[bytes]"
    frames: Frames
    next_id: int = 0

    def hear(self) -> Any:
        assert self.process.stdout is not None
        while not (messages := self.frames.feed(os.read(self.process.stdout.fileno(), 65536))):
            pass
        (message,) = messages
        return message

    def ask(self, method: str, params: Any = None) -> Any:
        assert self.process.stdin is not None
        self.next_id += 1
        given = {} if params is None else {"params": params}
        self.process.stdin.write(framed({"jsonrpc": "2.0", "id": self.next_id, "method": method, **given}))
        self.process.stdin.flush()
        answer = self.hear()
        assert answer["id"] == self.next_id, answer
        return answer["result"]


def environment(base: Path, bootstrap: object) -> dict[str, str]:
    home = {"HOME": str(base / "home"), "PILOTFISH_HOME": str(base / "state"), "PATH": os.environ["PATH"]}
    given = bootstrap if isinstance(bootstrap, str) else json.dumps(bootstrap)
    return {**home, "LSP_BOOTSTRAP": given}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    (folder / "a.fake").write_text("fine\nwrong\n")
    return folder


@contextmanager
def started(workspace: Path, *descriptors: int) -> Generator[Service]:
    """The service, ready."""
    bootstrap = {"workspaceRoot": str(workspace), "config": CONFIG}
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, SERVICE, ",".join(map(str, descriptors))],
        env=environment(workspace.parent, bootstrap),
        pass_fds=descriptors,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    service = Service(process, Frames())
    try:
        assert service.hear() == {"jsonrpc": "2.0", "method": "lsp/ready"}
        yield service
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.proves("SVC-1")
def test_every_method_answers(workspace: Path) -> None:
    with started(workspace) as service:
        (found,) = service.ask("lsp/checkFile", {"filePath": str(workspace / "a.fake")})
        assert (found["line"], found["severity"], found["message"]) == (2, "error", "wrong")
        assert list(service.ask("lsp/diagnostics")) == ["a.fake"]
        assert service.ask("lsp/getDiagnosticEpoch") == 1
        assert list(service.ask("lsp/getAllDiagnosticsAfter", {"afterEpoch": 0, "waitMs": 1000})) == ["a.fake"]
        (row,) = [row for row in service.ask("lsp/status") if row["serverId"] == "fake"]
        assert (row["state"], row["status"], row["healthy"]) == ("ok", "active", True)
        assert alive(row["serverPid"])
        assert service.ask("lsp/shutdown") is None
        assert service.process.wait() == 0
        assert not alive(row["serverPid"])


@pytest.mark.proves("SVC-1", "POOL-5", "F65")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_it_ends_with_its_host_and_takes_its_servers_with_it(workspace: Path, how: str) -> None:
    with started(workspace) as service:
        service.ask("lsp/checkFile", {"filePath": "a.fake"})
        children = [child.pid for child in below(service.process.pid)]
        assert children
        if how == "end of input":
            assert service.process.stdin is not None
            service.process.stdin.close()
        else:
            service.process.send_signal(getattr(signal, how))
        assert ends(service.process.pid)
        assert all(ends(child) for child in children)
        assert service.process.wait() == (-signal.SIGKILL if how == "SIGKILL" else 0)


PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
os.read(child.stdout.fileno(), 65536)
body = b'{"jsonrpc":"2.0","id":1,"method":"lsp/checkFile","params":{"filePath":"a.fake"}}'
os.write(child.stdin.fileno(), b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
os.read(child.stdout.fileno(), 65536)
print(child.pid, flush=True)
os.read(0, 1)
"""


@pytest.mark.proves("SVC-1", "POOL-5", "F65")
def test_a_host_that_is_killed_leaves_nothing_behind(workspace: Path) -> None:
    bootstrap = {"workspaceRoot": str(workspace), "config": CONFIG}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, SERVICE],
        env=environment(workspace.parent, bootstrap),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as host:
        assert host.stdout is not None
        service = int(host.stdout.readline())
        family = [service, *(child.pid for child in below(service))]
        assert len(family) >= 3, "the service, a supervisor and the server"
        host.kill()
        assert all(ends(pid) for pid in family)


@pytest.mark.proves("SVC-1")
@pytest.mark.parametrize(
    ("bootstrap", "line"),
    [
        pytest.param(
            "", b"LSP unavailable: LSP_BOOTSTRAP is not set; it must be {workspaceRoot, config}\n", id="unset"
        ),
        pytest.param("nonsense", b"LSP unavailable: LSP_BOOTSTRAP is not a JSON object\n", id="no JSON"),
        pytest.param(
            {"workspaceRoot": "/no/such/folder"},
            b"LSP unavailable: the workspace /no/such/folder cannot be opened: no such file or directory\n",
            id="no folder",
        ),
    ],
)
def test_when_it_cannot_run_it_says_why_on_one_line(tmp_path: Path, bootstrap: object, line: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVICE],
        env=environment(tmp_path, bootstrap),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", line)


# --- Descriptors 3 and 4 ---------------------------------------------------------------------------------------------


class DescriptorPeer:
    """The client's side of two descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink

    def say(self, data: bytes) -> None:
        assert os.write(self._sink, data) == len(data)

    async def hear(self) -> bytes:
        await anyio.wait_readable(self._source)
        return os.read(self._source, 65536)


@contextmanager
def wires(shape: str) -> Generator[tuple[tuple[int, int], tuple[int, int]]]:
    """The service's two descriptors, and where the client reads and writes."""
    with ExitStack() as stack:
        if shape.startswith("sockets"):
            pairs = [socket.socketpair() for _ in range(2)]
            for one in (end for pair in pairs for end in pair):
                stack.enter_context(one)
            (third, fourth), (its_third, its_fourth) = zip(*pairs, strict=True)
            ours = (its_third, its_fourth) if shape == "sockets, it reads 3 and writes 4" else (its_fourth, its_third)
            yield (third.fileno(), fourth.fileno()), (ours[0].fileno(), ours[1].fileno())
            return
        to_service, from_client = os.pipe()
        to_client, from_service = os.pipe()
        for number in (to_service, from_client, to_client, from_service):
            stack.callback(os.close, number)
        straight = shape == "pipes, 3 in and 4 out"
        yield (to_service, from_service) if straight else (from_service, to_service), (to_client, from_client)


@pytest.mark.anyio
@pytest.mark.proves("SVC-1", "MCP-1")
@pytest.mark.parametrize(
    "shape",
    [
        "sockets, it reads 3 and writes 4",
        "sockets, it reads 4 and writes 3",
        "pipes, 3 in and 4 out",
        "pipes, 4 in and 3 out",
    ],
)
async def test_mcp_is_served_on_the_other_two_descriptors(workspace: Path, shape: str) -> None:
    with wires(shape) as (theirs, ours), started(workspace, *theirs) as service:
        async with Client(transport(DescriptorPeer(*ours)), mode="legacy") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "lsp_goto_definition" in names
            found = await client.call_tool("lsp_diagnostics", {"filePath": "a.fake"})
            assert text_of(found).startswith("a.fake:2:")
            assert found.structured_content is None
        (one,) = service.ask("lsp/checkFile", {"filePath": "a.fake"})
        assert one["line"] == 2
        servers = [row for row in service.ask("lsp/status") if row["status"] == "active"]
        assert [row["id"] for row in servers] == ["fake"]
