"""The HTTP surface put together. Only `serve` imports this module, when a client asks to serve."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.upgrades import DaemonContext, Upgraded
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks
from pilotfish_http.admission import own_names
from pilotfish_http.context import HttpAddress, token_file
from pilotfish_http.conversations import HttpConversations
from pilotfish_http.guard import Guard
from pilotfish_http.keys import AccessKeys
from pilotfish_http.listen import bound, listening
from pilotfish_http.mcp import McpEndpoint, home_of
from pilotfish_http.metrics import Gauges, metrics_text
from pilotfish_http.overview import Observatory
from pilotfish_http.routes import Parts, application


@asynccontextmanager
async def serving(upgraded: Upgraded, context: DaemonContext, port: int) -> AsyncGenerator[HttpAddress]:
    """Listen for as long as the block lasts. Raises `Refused` for a port that cannot be used, `Unavailable`."""
    service, sessions = upgraded.service, upgraded.sessions
    listener = bound(port)
    names = own_names(listener.getsockname()[1])
    keys = AccessKeys(token_file(context))
    conversations = HttpConversations(service, sessions, context.store)

    def metrics() -> str:
        facts = Gauges(context.about().seconds, len(sessions.all()), service.pool.entries())
        return metrics_text(service.pool.counters, facts)

    try:
        _publish(keys)
        async with owned_tasks() as tasks:
            mcp = McpEndpoint(service, sessions, home_of(conversations, upgraded.session(None).cwd), names, tasks)
            observatory = Observatory(service, sessions, context.store, context.about, context.clock)
            guard = Guard(application(Parts(conversations, observatory, keys, metrics, mcp)), keys, names)
            async with listening(listener, guard):
                address = f"http://{names[0]}"
                page = f"{address}/#{keys.issue_ticket(current_time())}"
                yield HttpAddress(address, keys.path, page)
            tasks.cancel_scope.cancel()
    finally:
        listener.close()
        keys.withdraw()


def _publish(keys: AccessKeys) -> None:
    try:
        keys.publish()
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"the token cannot be kept in {keys.path}: {error}") from None
