"""`initialize`: what we say of ourselves, and what a server may answer."""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct, field, toml

from pilotfish.client.connection import Connection, Tap
from pilotfish.errors import Code, ServerFailed
from pilotfish.model import AbsPath
from pilotfish.protocol.capabilities import RETRY_ON_CONTENT_MODIFIED
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.rpc import ResponseError
from pilotfish.protocol.watching import WatchRegistration
from pilotfish.protocol.wire import InitializeResult, Json, JsonObject, WorkspaceFolder
from pilotfish.servers.inputs import InputEvidence
from pilotfish.servers.spec import Freshness, Relay
from pilotfish.servers.worktrees import Share
from pilotfish.system.ports import Launch
from pilotfish.version import VERSION


class SessionOptions(Struct, frozen=True):
    """All that is needed to run one server for one root."""

    server: str
    root: AbsPath
    launch: Launch
    initialization: Json = None
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    initialize_seconds: float = 15.0
    request_seconds: float = 10.0
    freshness: Freshness = Freshness()
    watches: tuple[WatchRegistration, ...] = ()
    """The files whose changes on disk it is told of as long as it registers nothing of its own."""
    watches_outside: tuple[WatchRegistration, ...] = ()
    """Files outside of its root, whatever it registers."""
    watches_packages: tuple[WatchRegistration, ...] = ()
    """The same inside of installed packages. There may be thousands of folders, which no first answer waits for."""
    death_signs: tuple[str, ...] = ()
    """Words in the server's log that mean: what does its work is dead, and its answers are worth nothing."""
    announcements: tuple[str, ...] = ()
    """Notifications of this server's own that it is sent after `initialized`."""
    relay: Relay | None = None
    """How it asks another server of its root."""
    relayed: Callable[[str, Json], Awaitable[Json]] | None = None
    """Asks that one: a request and its arguments; the answer, None where there is none."""
    inputs: InputEvidence | None = None
    """What it reads besides sources, as it is before the start; None: nothing is known of that."""
    share: Share | None = None
    """With which other worktrees it may share a process."""
    tap: Tap = field(default_factory=Tap)


async def handshake(connection: Connection, options: SessionOptions, folder: WorkspaceFolder) -> InitializeResult:
    """Ask once; whatever is not a good answer in time is a typed failure of the start."""
    limit = options.initialize_seconds
    try:
        answer = await connection.call("initialize", _params(options, folder), timeout=limit)
    except ServerFailed as failed:
        if failed.code is not Code.REQUEST_TIMEOUT:
            raise
        message = f"{options.server} did not answer initialize within {limit:.3g} s"
        busy = "It may be busy with a large project: raise timing.initializeTimeoutMs."
        hint = " ".join(filter(None, (busy, connection.confinement_hint())))
        raise ServerFailed(Code.INIT_TIMEOUT, message, hint=hint, scene=failed.scene) from failed
    if isinstance(answer, ResponseError):
        # An error that asks for a retry is for a person to decide: nothing here asks twice by itself.
        raise start_failed(connection, f"initialize failed: {answer.message}", rpc_code=answer.code)
    try:
        return decode(answer, InitializeResult)
    except Malformed as malformed:
        raise start_failed(connection, f"the answer to initialize is malformed: {malformed}") from malformed


def start_failed(connection: Connection, message: str, rpc_code: int | None = None) -> ServerFailed:
    scene = connection.scene()
    return ServerFailed(Code.SERVER_START_FAILED, f"{scene.server}: {message}", scene=scene, rpc_code=rpc_code)


@cache
def client_capabilities() -> JsonObject:
    """All that we claim, to be read only."""
    claims: JsonObject = toml.decode(Path(__file__).with_name("claims.toml").read_bytes())
    claims["general"]["staleRequestSupport"]["retryOnContentModified"] = sorted(RETRY_ON_CONTENT_MODIFIED)
    return claims


def _params(options: SessionOptions, folder: WorkspaceFolder) -> dict[str, object]:
    params: dict[str, object] = {
        # Servers watch this process and end with it, so it must be ours, never their own.
        "processId": os.getpid(),
        "clientInfo": {"name": "pilotfish", "version": VERSION},
        "rootPath": options.root,
        "rootUri": folder.uri,
        "capabilities": client_capabilities(),
        "workspaceFolders": [folder],
    }
    if options.initialization is not None:
        params["initializationOptions"] = options.initialization
    return params
