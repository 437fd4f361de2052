"""`GET /events`: the state of the daemon as it changes, as server-sent events, while the client reads.

A client that takes nothing is disconnected, and one that disconnects is noticed at once; nothing is queued for either.
"""

import anyio

from pilotfish.operations.cleaning import structured
from pilotfish.protocol.codec import encode
from pilotfish.surfaces.http.guard import AsgiReceive, AsgiScope, AsgiSend
from pilotfish.surfaces.http.overview import Observatory
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks

STALL_SECONDS = 30.0
"""For one event to be taken; after that the client is stuck or suspended, and reconnects by itself."""

HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
}


class Events:
    """An ASGI application."""

    def __init__(self, observatory: Observatory) -> None:
        self._observatory = observatory

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        await send(HEAD)
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        async with owned_tasks() as tasks:
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            with anyio.CancelScope() as patience:
                await self._tell(send, patience)
            if patience.cancelled_caught:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()

    async def _tell(self, send: AsgiSend, patience: anyio.CancelScope) -> None:
        async with self._observatory.watching() as watch:
            while True:
                watch.looked()
                picture = encode(structured(await self._observatory.look()))
                patience.deadline = current_time() + STALL_SECONDS
                await send({"type": "http.response.body", "body": _event(picture), "more_body": True})
                patience.deadline = float("inf")
                await watch.news()


def _event(data: bytes) -> bytes:
    """JSON has no line breaks of its own, so one line holds it."""
    return b"event: everything\ndata: " + data + b"\n\n"


async def _until_gone(receive: AsgiReceive, everything: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    everything.cancel()
