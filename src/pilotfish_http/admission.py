"""Whether a request is admitted: one pure decision on its head, made before anything else reads it; and the keys.

The attacker here is a page in the user's own browser: it can send requests to this address, under its own host name
(DNS rebinding) or with a form. So the Host header must be ours exactly (T18), no other origin is admitted (T17), bodies
must be JSON, which a form cannot send (T19), and everything but the sign-in page needs a key.

A key is a token in a private file of the user: it has 256 bits, is made anew each time the server starts, written to a
file that only the user can read, and removed at the end. It is sent in a header, never in a URL, an argument or an
environment variable (T21). The page gets a key of its own, which gives access only to what the page shows, in exchange
for a ticket that works once. Imports no HTTP package.
"""

import hmac
import os
import secrets
from collections.abc import Iterable
from enum import Enum, auto

from msgspec import Struct

from pilotfish.errors import Code, Unavailable
from pilotfish.system.regular_files import replace_file

MAX_BODY = 4 * 1024 * 1024
"""Bytes: the largest body is the proposed text of a file."""

SIGN_IN = "/"
EXCHANGE = "/page-key"
"""Where a ticket is exchanged: the one call without a key; its body is the secret."""

RESTART = "/servers/restart"
LOG = "/servers/log"

OPEN_TO_PAGES = frozenset({("GET", "/status"), ("GET", "/events"), ("GET", LOG), ("POST", RESTART)})
"""What the key of the page gives access to: reading, and the restart of a server that is there."""

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

OWN_SITES = frozenset({"none", "same-origin"})
"""`Sec-Fetch-Site` of a request that a person made, or our own page."""


class Head(Struct, frozen=True):
    """A request before its body. Header names are in lower case."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    def only(self, name: str) -> str | None:
        """A header that must not be repeated: empty when it is, which matches nothing; None when it is absent."""
        values = [value for given, value in self.headers if given == name]
        return (values[0] if len(values) == 1 else "") if values else None


class Objection(Struct, frozen=True):
    status: int
    error: str


def head_of(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Head:
    """The head as text, decoded as Latin-1."""
    return Head(
        method, path, tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
    )


def own_names(port: int) -> tuple[str, ...]:
    """Our own host names, as a browser writes them."""
    return f"127.0.0.1:{port}", f"localhost:{port}"


def objection(head: Head, names: tuple[str, ...], keys: "AccessKeys") -> Objection | None:
    return _stranger(head, names) or _without_key(head, keys) or _not_json(head) or _too_large(head)


def _stranger(head: Head, names: tuple[str, ...]) -> Objection | None:
    host = head.only("host")
    if host not in names:
        return Objection(421, "the Host header names another host")
    origin = head.only("origin")
    if origin is not None and origin != f"http://{host}":
        return Objection(403, "cross-origin requests are refused")
    if head.only("sec-fetch-site") not in {None, *OWN_SITES} and not _is_visit(head):
        return Objection(403, "cross-site requests are refused")
    return None


def _is_visit(head: Head) -> bool:
    """Whether a browser goes to the sign-in page as a whole, as it does from the file that `serve --open` opens.

    That page is the same for all and needs a ticket for everything else; no other origin can frame or read it.
    """
    whole = (head.only("sec-fetch-mode"), head.only("sec-fetch-dest")) == ("navigate", "document")
    return whole and (head.method, head.path) == ("GET", SIGN_IN)


def _without_key(head: Head, keys: "AccessKeys") -> Objection | None:
    if is_open(head):
        return None
    scheme, _, given = (head.only("authorization") or "").partition(" ")
    grant = keys.grant(given.strip()) if scheme.lower() == "bearer" else None
    if grant is None:
        # Nothing about places: whoever may have the token was told by `pilotfish serve` where it is (T54).
        return Objection(401, "the bearer token is missing or wrong")
    if grant is KeyScope.PAGE and (head.method, head.path) not in OPEN_TO_PAGES:
        return Objection(403, "the key of the page does not give access to this")
    return None


def is_open(head: Head) -> bool:
    """Whether a request needs no key: these two disclose nothing."""
    return (head.path == SIGN_IN and head.method == "GET") or (head.path == EXCHANGE and head.method == "POST")


def _not_json(head: Head) -> Objection | None:
    if head.method not in WITH_BODY:
        return None
    kind, _, parameter = (head.only("content-type") or "").partition(";")
    if kind.strip().lower() != "application/json":
        return Objection(415, "the body must be application/json")
    if parameter.strip().lower().replace('"', "") not in {"", "charset=utf-8"}:
        return Objection(415, "the body must be in UTF-8")
    if (head.only("content-encoding") or "identity") != "identity":
        return Objection(415, "the body must not be compressed")
    return None


def _too_large(head: Head) -> Objection | None:
    length = head.only("content-length")
    if length is None or (length.isascii() and length.isdecimal() and int(length[:12]) <= MAX_BODY):
        return None
    return Objection(413, f"the body has more than {MAX_BODY} bytes")


# --- Keys -------------------------------------------------------------------------------------------------------------

BYTES = 32

TICKET_SECONDS = 300.0
"""From printing the link to the browser's first request: a person may have to copy it."""


class KeyScope(Enum):
    EVERYTHING = auto()
    PAGE = auto()
    """Only what the live page reads, and the restart of servers."""


class AccessKeys:
    def __init__(self, path: str) -> None:
        self.path = path
        """The file with the token."""
        self._token = secrets.token_urlsafe(BYTES)
        self._page = secrets.token_urlsafe(BYTES)
        self._tickets: dict[str, float] = {}

    def publish(self) -> None:
        """Write the token to its file; raises `Unavailable`."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            replace_file(self.path, f"{self._token}\n".encode(), 0o600)
        except OSError as error:
            message = f"the token cannot be kept in {self.path}: {error}"
            raise Unavailable(Code.FILE_UNREADABLE, message) from None

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


class HttpAddress(Struct, frozen=True):
    """Where it listens. `page` works once."""

    address: str
    token_file: str
    page: str
