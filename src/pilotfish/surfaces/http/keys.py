"""Who may come in over HTTP: whoever can read a file of the user, or holds a link that works once.

The token is 256 bits, made anew each time that listening begins, written to a file for the user alone and removed at
the end. It travels in a header, never in an address, an argument or an environment (T21). A page gets a key of its own
that opens nothing but what it shows, by a ticket that is good for one exchange.
"""

import hmac
import os
import secrets
from enum import Enum, auto

BYTES = 32

TICKET_SECONDS = 300.0
"""From printing the link to the browser's first request: a person may have to copy it."""


class KeyScope(Enum):
    """What a key opens."""

    EVERYTHING = auto()
    PAGE = auto()
    """Only what the live page reads."""


class AccessKeys:
    """The only keeper of secrets."""

    def __init__(self, path: str) -> None:
        self.path = path
        """Where the token is, for the programs of the user."""
        self._token = secrets.token_urlsafe(BYTES)
        self._page = secrets.token_urlsafe(BYTES)
        self._tickets: dict[str, float] = {}

    def publish(self) -> None:
        """Write the token where the user's programs find it; raises `OSError`."""
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        beside = f"{self.path}.{secrets.token_hex(8)}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, f"{self._token}\n".encode())
        finally:
            os.close(descriptor)
        os.replace(beside, self.path)

    def withdraw(self) -> None:
        """The token opens nothing any more: remove its file, unless that is another one's by now."""
        try:
            with open(self.path, encoding="ascii") as file:
                ours = file.read().strip() == self._token
        except (OSError, ValueError):
            return
        if ours:
            os.unlink(self.path)

    def grant(self, given: str) -> KeyScope | None:
        """What a key that somebody shows opens; None for one that is not ours."""
        # Both are compared, each in constant time, whatever the first says.
        whole, page = _same(given, self._token), _same(given, self._page)
        if whole:
            return KeyScope.EVERYTHING
        return KeyScope.PAGE if page else None

    def ticket(self, now: float) -> str:
        """One exchange for the key of a page."""
        made = secrets.token_urlsafe(BYTES)
        self._tickets = {ticket: until for ticket, until in self._tickets.items() if until > now}
        self._tickets[made] = now + TICKET_SECONDS
        return made

    def redeemed(self, given: str, now: float) -> str | None:
        """The key of a page for a ticket, which is used up; None for one that is no ticket any more."""
        known = next((ticket for ticket in self._tickets if _same(given, ticket)), None)
        if known is None or self._tickets.pop(known) <= now:
            return None
        return self._page


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), known.encode())
