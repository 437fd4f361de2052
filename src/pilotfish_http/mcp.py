"""`/mcp`: MCP over HTTP. The SDK is imported when the first client connects.

A client's workspace: the roots that it names; else that of the conversation in its URL (`/mcp?conversation=ID`); else
the folder of `pilotfish serve`.
"""

from types import ModuleType
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus

from pilotfish.ipc.client_sessions import ClientSessions
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish_http.conversations import HttpConversations
from pilotfish_http.guard import AsgiReceive, AsgiScope, AsgiSend

if TYPE_CHECKING:
    from pilotfish_http.mcp_sessions import Home, McpOverHttp


class McpEndpoint:
    """An ASGI application; `tasks` owns what it starts."""

    def __init__(
        self, service: Service, sessions: ClientSessions, home: "Home", names: tuple[str, ...], tasks: TaskGroup
    ) -> None:
        self._service = service
        self._sessions = sessions
        self._home = home
        self._names = names
        self._tasks = tasks
        self._starting = anyio.Lock()
        self._served: McpOverHttp | None = None

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        served = self._served or await self._start()
        await served.handle(scope, receive, send)

    async def _start(self) -> "McpOverHttp":
        async with self._starting:
            served = self._served
            if served is None:
                sdk = await anyio.to_thread.run_sync(_sdk)
                served = self._served = await self._tasks.start(self._run, sdk)
            return served

    async def _run(self, sdk: ModuleType, *, task_status: TaskStatus["McpOverHttp"]) -> None:
        served: McpOverHttp = sdk.McpOverHttp(self._service, self._sessions, self._home, self._names)
        async with served.running():
            task_status.started(served)
            await anyio.sleep_forever()


def home_of(conversations: HttpConversations, here: AbsPath) -> "Home":
    """The workspace of clients without roots."""

    def home(conversation: str | None) -> AbsPath:
        return here if conversation is None else conversations.client(conversation).cwd

    return home


def _sdk() -> ModuleType:
    from pilotfish_http import mcp_sessions

    return mcp_sessions
