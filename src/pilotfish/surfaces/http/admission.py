"""Whether a request may come in: one pure decision over its head, made before anything else looks at it.

A page in the user's own browser is the attacker here: it can send requests to this address, under a name of its own
(DNS rebinding) or with a form. So the name must be ours to the letter (T18), no other origin may ask (T17), bodies are
JSON and nothing that a form can send (T19), and every answer but the sign-in page needs a key.
"""

from collections.abc import Iterable

from msgspec import Struct

from pilotfish.surfaces.http.keys import AccessKeys, KeyScope

MAX_BODY = 4 * 1024 * 1024
"""Bytes: a file's proposed text is the largest that anybody sends."""

SIGN_IN = "/"
EXCHANGE = "/page-key"
"""Where a ticket is exchanged: the one call without a key, and its body is the secret."""

READABLE_BY_PAGES = frozenset({("GET", "/status"), ("GET", "/events")})

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

OWN_SITES = frozenset({"none", "same-origin"})
"""What a browser says of a request that a person made, or our own page."""


class Head(Struct, frozen=True):
    """A request before its body. Header names are in lower case."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    def only(self, name: str) -> str | None:
        """The header that must not be given twice: empty when it is, which fits nothing; None when it is not there."""
        values = [value for given, value in self.headers if given == name]
        return (values[0] if len(values) == 1 else "") if values else None


class Objection(Struct, frozen=True):
    """Why a request does not come in."""

    status: int
    error: str
    hint: str | None = None


def head_of(method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Head:
    """The head as text; bytes that are no ASCII stay themselves, and match nothing."""
    return Head(
        method, path, tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
    )


def own_names(port: int) -> tuple[str, ...]:
    """What we are called, as a browser writes it."""
    return f"127.0.0.1:{port}", f"localhost:{port}"


def objection(head: Head, names: tuple[str, ...], keys: AccessKeys) -> Objection | None:
    """What speaks against a request; None lets it in."""
    return _stranger(head, names) or _without_key(head, keys) or _not_json(head) or _too_large(head)


def _stranger(head: Head, names: tuple[str, ...]) -> Objection | None:
    host = head.only("host")
    if host not in names:
        return Objection(421, "this is not the host that you asked for")
    origin = head.only("origin")
    if origin is not None and origin != f"http://{host}":
        return Objection(403, "requests of other origins are refused")
    if head.only("sec-fetch-site") not in {None, *OWN_SITES}:
        return Objection(403, "requests of other sites are refused")
    return None


def _without_key(head: Head, keys: AccessKeys) -> Objection | None:
    if is_open(head):
        return None
    scheme, _, given = (head.only("authorization") or "").partition(" ")
    grant = keys.grant(given.strip()) if scheme.lower() == "bearer" else None
    if grant is None:
        return Objection(401, "a bearer token is needed", f"It is in {keys.path}")
    if grant is KeyScope.PAGE and (head.method, head.path) not in READABLE_BY_PAGES:
        return Objection(403, "the key of a page does not open this")
    return None


def is_open(head: Head) -> bool:
    """Whether a request needs no key: neither of these gives anything away."""
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
    return Objection(413, f"a body has at most {MAX_BODY} bytes")
