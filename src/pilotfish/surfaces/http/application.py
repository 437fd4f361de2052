"""The HTTP surface put together. Only `http_serving` imports this module, when somebody asks to be served."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pilotfish.errors import Code, Unavailable
from pilotfish.ipc.upgrades import Upgraded
from pilotfish.surfaces.http.admission import own_names
from pilotfish.surfaces.http.conversations import Conversations
from pilotfish.surfaces.http.guard import Guard
from pilotfish.surfaces.http.keys import Keys
from pilotfish.surfaces.http.listen import bound, listening
from pilotfish.surfaces.http.mcp import Mcp, home_of
from pilotfish.surfaces.http.metrics import Facts, metrics_text
from pilotfish.surfaces.http.overview import Observatory
from pilotfish.surfaces.http.routes import Parts, application
from pilotfish.surfaces.http.serve import Daemon, Served, token_file
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks


@asynccontextmanager
async def serving(upgraded: Upgraded, daemon: Daemon, port: int) -> AsyncGenerator[Served]:
    """Listen for as long as the block lasts. Raises `Refused` for a port that is taken, `Unavailable`."""
    service, sessions = upgraded.service, upgraded.sessions
    listener = bound(port)
    names = own_names(listener.getsockname()[1])
    keys = Keys(token_file(daemon.folder))
    conversations = Conversations(service, sessions, daemon.store)

    def metrics() -> str:
        facts = Facts(daemon.about().seconds, len(sessions.all()), service.pool.entries())
        return metrics_text(service.pool.counters, facts)

    try:
        _publish(keys)
        async with owned_tasks() as tasks:
            mcp = Mcp(service, sessions, home_of(conversations, upgraded.session(None).cwd), names, tasks)
            observatory = Observatory(service, sessions, daemon.store, daemon.about, daemon.clock)
            guard = Guard(application(Parts(conversations, observatory, keys, metrics, mcp)), keys, names)
            async with listening(listener, guard):
                address = f"http://{names[0]}"
                page = f"{address}/#{keys.ticket(current_time())}"
                yield Served(address, keys.path, page)
            tasks.cancel_scope.cancel()
    finally:
        listener.close()
        keys.withdraw()


def _publish(keys: Keys) -> None:
    try:
        keys.publish()
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"the token cannot be kept in {keys.path}: {error}") from None
