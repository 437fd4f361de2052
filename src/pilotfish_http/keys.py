"""Access over HTTP: by a token in a private file of the user, or by a link that works once.

The token has 256 bits, is made anew each time the server starts, written to a file that only the user can read, and
removed at the end. It is sent in a header, never in a URL, an argument or an environment variable (T21). The page gets
a key of its own, which gives access only to what the page shows, in exchange for a ticket that works once.
Imports no HTTP package.
"""

import hmac
import os
import secrets
from enum import Enum, auto

from msgspec import Struct

from pilotfish.ipc.client_sessions import DaemonContext
from pilotfish.system.regular_files import replace_file

BYTES = 32

TICKET_SECONDS = 300.0
"""From printing the link to the browser's first request: a person may have to copy it."""


class KeyScope(Enum):
    """What a key gives access to."""

    EVERYTHING = auto()
    PAGE = auto()
    """Only what the live page reads, and the restart of servers."""


class AccessKeys:
    """The token, the page's key, and tickets for it."""

    def __init__(self, path: str) -> None:
        self.path = path
        """The file with the token."""
        self._token = secrets.token_urlsafe(BYTES)
        self._page = secrets.token_urlsafe(BYTES)
        self._tickets: dict[str, float] = {}

    def publish(self) -> None:
        """Write the token to its file; raises `OSError`."""
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        replace_file(self.path, f"{self._token}\n".encode(), 0o600)

    def withdraw(self) -> None:
        """Remove the file, unless it holds another server's token by now."""
        try:
            with open(self.path, encoding="ascii") as file:
                ours = file.read().strip() == self._token
        except (OSError, ValueError):
            return
        if ours:
            os.unlink(self.path)

    def grant(self, given: str) -> KeyScope | None:
        """What a key gives access to; None for one that is not ours."""
        # Both are compared, each in constant time, whatever the first says.
        whole, page = _same(given, self._token), _same(given, self._page)
        if whole:
            return KeyScope.EVERYTHING
        return KeyScope.PAGE if page else None

    def issue_ticket(self, now: float) -> str:
        """Issue a ticket for the key of the page."""
        made = secrets.token_urlsafe(BYTES)
        self._tickets = {ticket: until for ticket, until in self._tickets.items() if until > now}
        self._tickets[made] = now + TICKET_SECONDS
        return made

    def redeem(self, given: str, now: float) -> str | None:
        """Exchange a ticket for the key of the page; None when it was used, or has expired."""
        known = next((ticket for ticket in self._tickets if _same(given, ticket)), None)
        if known is None or self._tickets.pop(known) <= now:
            return None
        return self._page


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), known.encode())


TOKEN_FILE = "http-token"  # noqa: S105 -- its name


def token_file(context: DaemonContext) -> str:
    return os.path.join(context.folder, TOKEN_FILE)


class HttpAddress(Struct, frozen=True):
    """Where it listens. `page` works once."""

    address: str
    token_file: str
    page: str
