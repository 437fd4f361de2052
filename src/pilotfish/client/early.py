"""A request that leaves before anybody knows whether it is the right one.

Nothing rests on it. Whoever would ask the same thing takes it over, if the server was told nothing in between that
could make another answer right; else it is cancelled, and the question asked anew.
"""

from msgspec import Struct

from pilotfish.client.calls import Call
from pilotfish.client.connection import Connection


class Early(Struct, frozen=True):
    connection: Connection
    call: Call
    params: object
    told: int
    """How many notifications the server had been sent when it left."""

    def taken(self, method: str, params: object) -> Call | None:
        """The call, when it is the very request that is wanted now."""
        is_same = method == self.call.method and params == self.params and self.told == self.connection.told
        return self.call if is_same else None

    def drop(self) -> None:
        """Give it up, unless it has ended."""
        self.connection.give_up(self.call)
