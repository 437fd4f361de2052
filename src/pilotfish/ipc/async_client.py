"""A workspace at the daemon: what `pilotfish.open` returns, over the socket.

    async with open_remote("/project", "/project/src") as workspace:
        found = await workspace.definition("a.py", 3, 7)

Questions run in parallel over one connection; cancelling one cancels it at the language server too.
"""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from pilotfish.api.answers import Answer, DiagnosticsAnswer, Error, Feedback
from pilotfish.api.questions import Operation, Touch
from pilotfish.api.status import Snapshot
from pilotfish.client.calls import Call, Calls
from pilotfish.config.schema import TouchKind
from pilotfish.errors import Code, Failure, Unavailable
from pilotfish.ipc.client import ANSWER_SECONDS, Link, Terms, failure_of, introduction, open_link
from pilotfish.ipc.messages import ServedFile
from pilotfish.library.questions import FilePath, Questions
from pilotfish.model import AbsPath
from pilotfish.operations.answers import read_answer
from pilotfish.protocol.frames import FrameDecoder, FrameError
from pilotfish.protocol.rpc import Answered, Failed, Notified, Peer, RequestId, ResponseError
from pilotfish.system.clock import current_time
from pilotfish.system.pipes import End
from pilotfish.system.ports import BrokenPipe, ByteStream, Stalled
from pilotfish.system.real_path import real_path
from pilotfish.system.send_queue import SendQueue
from pilotfish.system.tasks import owned_tasks

PATHS_AT_ONCE = 100
"""Files in one request: it takes the daemon some milliseconds, and others wait no longer."""


@asynccontextmanager
async def open_remote(
    root: str, cwd: str, host: str | None = None, terms: Terms | None = None
) -> AsyncGenerator["RemoteWorkspace"]:
    """Open a workspace at the daemon, which is started when none runs. Raises `Failure`."""
    said = introduction(root, cwd, host)
    link = await anyio.to_thread.run_sync(open_link, said, terms)
    async with remote_workspace(link) as workspace:
        yield workspace


@asynccontextmanager
async def remote_workspace(link: Link) -> AsyncGenerator["RemoteWorkspace"]:
    """The workspace of a link that has a session; the link is used up."""
    client = DaemonClient(End(link.released()))
    async with owned_tasks() as tasks:
        tasks.start_soon(client.run)
        try:
            yield RemoteWorkspace(client, str(link.welcome["root"]))
        finally:
            tasks.cancel_scope.cancel()


class RemoteWorkspace(Questions):
    """Has the methods of `library.workspace.Workspace` that a command line needs: an `inside.OpenWorkspace`."""

    def __init__(self, client: "DaemonClient", root: str) -> None:
        self._client = client
        self._root = root

    @property
    def root(self) -> AbsPath:
        """The folder itself, symbolic links resolved."""
        return AbsPath(real_path(self._root))

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation, its fields named as on the wire (`filePath`, `newName`); what is None counts as absent."""
        return read_answer(bytes(await self._client.call("ask", {"operation": operation, **arguments})))

    async def after_edit(
        self, *paths: FilePath, kind: TouchKind = "edit", texts: Mapping[str, str] | None = None, only_new: bool = False
    ) -> Feedback:
        """What to append to the result of the tool that changed these files: often nothing."""
        touch = Touch(tuple(os.fspath(path) for path in paths), kind, dict(texts) if texts else None, only_new)
        return msgspec.json.decode(await self._client.call("touched", touch), type=Feedback)

    async def check(self, *paths: FilePath, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        """The verdict on files, by path; a text in `texts` is judged instead of what is on disk."""
        params = {"paths": [os.fspath(path) for path in paths], "texts": dict(texts or {})}
        return read_answer(bytes(await self._client.call("check", params)))

    async def warm(self, *paths: FilePath) -> None:
        """Start the servers of these files and wait until each has answered once, whatever it says."""
        await self.check(*paths)

    async def snapshot(self) -> Snapshot:
        """Every server of this workspace at this moment, those in trouble first."""
        return msgspec.json.decode(await self._client.call("status", None), type=Snapshot)

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        """Which of these files cannot be checked: why their server is not there, or None where nobody serves such."""
        found: dict[str, Error | None] = {}
        for first in range(0, len(paths), PATHS_AT_ONCE):
            some = paths[first : first + PATHS_AT_ONCE]
            said = msgspec.json.decode(await self._client.call("served", {"paths": some}), type=list[ServedFile])
            found |= {path: one.error for path, one in zip(some, said, strict=True) if one.error or not one.served}
        return found


class DaemonClient:
    """The client's end of a connection that has said hello. `run` owns its tasks; everybody else calls."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._peer = Peer()
        self._decoder = FrameDecoder()
        self._queue = SendQueue()
        self._calls = Calls()
        self._failure: Failure | None = None

    async def run(self) -> None:
        """Read and write until the connection ends; calls that wait then fail with the reason."""
        try:
            async with owned_tasks() as tasks:
                tasks.start_soon(self._write)
                await self._read()
                tasks.cancel_scope.cancel()
        finally:
            self._end(Unavailable(Code.SHUTTING_DOWN, "the connection to the daemon has ended"))
            self._stream.close()

    async def call(self, method: str, params: object) -> Raw:
        """The result; raises the `Failure` that the daemon answered with, or `Unavailable`."""
        if self._failure is not None:
            raise self._failure
        outgoing = self._peer.request(method, params)
        call = self._calls.begin(outgoing.id, method, current_time())
        self._queue.post(outgoing.data)
        with anyio.move_on_after(ANSWER_SECONDS):
            await self._outcome(outgoing.id, call)
        match call.outcome:
            case None:
                raise Unavailable(Code.REQUEST_TIMEOUT, f"the daemon did not answer {method} in {ANSWER_SECONDS:g} s")
            case ResponseError(_, message, data):
                raise failure_of(message, {} if data is None else msgspec.json.decode(data))
            case Raw() as result:
                return result
            case failure:
                raise failure

    async def _outcome(self, identifier: RequestId, call: Call) -> None:
        call.ended = anyio.Event()
        try:
            await call.ended.wait()
        finally:
            if call.outcome is None and (cancel := self._peer.cancel(identifier)) is not None:
                self._calls.give_up(identifier)
                self._queue.post(cancel)

    async def _read(self) -> None:
        try:
            while data := await self._stream.receive():
                for body in self._decoder.feed(data):
                    self._take(self._peer.receive(body))
        except FrameError as error:
            self._end(Unavailable(Code.PROTOCOL_ERROR, f"malformed message from the daemon: {error.message}"))

    def _take(self, event: object) -> None:
        match event:
            case Answered(identifier, _, result):
                self._calls.end(identifier, result)
            case Failed(identifier, _, error):
                self._calls.end(identifier, error)
            case Notified("closing", params):
                said: Mapping[str, Any] = msgspec.json.decode(params)
                self._end(failure_of(said["message"], said))
            case _:
                # The late answer to a call that was cancelled.
                pass

    async def _write(self) -> None:
        try:
            await self._queue.run(self._stream.send)
        except (BrokenPipe, Stalled):
            # The reader still gets what the daemon sent last, and then the end of the stream.
            return

    def _end(self, failure: Failure) -> None:
        if self._failure is None:
            self._failure = failure
            self._calls.end_all(failure)
            self._peer.close()
