"""Who comes in over HTTP: the decision itself, and real requests as a browser under attack would send them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish_http.admission import EXCHANGE, MAX_BODY, SIGN_IN, AccessKeys, head_of, objection, own_names
from pilotfish_http.routes import document
from support.clients.http import JSON, HttpServed, Reply

pytestmark = pytest.mark.proves("T17", "T18", "T19", "T20", "T21", "HTTP-1")

NAMES = own_names(1234)
OURS = "127.0.0.1:1234"


def refused(keys: AccessKeys, method: str, path: str, **headers: str) -> int | None:
    given = {"host": OURS} | {name.replace("_", "-"): value for name, value in headers.items()}
    against = objection(
        head_of(method, path, ((n.encode(), v.encode("latin-1")) for n, v in given.items())), NAMES, keys
    )
    return None if against is None else against.status


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessKeys]:
    made = AccessKeys(str(tmp_path_factory.mktemp("keys") / "token"))
    made.publish()
    yield made
    made.withdraw()


def bearer(keys: AccessKeys) -> str:
    with open(keys.path) as file:
        return f"Bearer {file.read().strip()}"


@pytest.mark.parametrize("host", ["127.0.0.1:1234", "localhost:1234"])
def test_our_own_names_are_known(keys: AccessKeys, host: str) -> None:
    assert refused(keys, "GET", "/status", host=host, authorization=bearer(keys)) is None


@pytest.mark.proves("A17.14")
@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "evil.com:1234",
        "localhost.evil.com:1234",
        "127.0.0.1:1234@evil.com",
        "127.0.0.1",
        "127.0.0.1:12345",
        "LOCALHOST:1234",
        "[::1]:1234",
        "0.0.0.0:1234",
        "127.1:1234",
        "",
    ],
)
def test_any_other_host_is_misdirected_even_with_the_token(keys: AccessKeys, host: str) -> None:
    assert refused(keys, "GET", "/status", host=host, authorization=bearer(keys)) == 421


def test_no_host_and_two_hosts_are_misdirected(keys: AccessKeys) -> None:
    authorization = (b"authorization", bearer(keys).encode())
    twice = [(b"host", OURS.encode()), (b"host", OURS.encode()), authorization]
    for headers in ([authorization], twice):
        against = objection(head_of("GET", "/status", headers), NAMES, keys)
        assert against is not None
        assert against.status == 421


@pytest.mark.proves("A17.14")
@pytest.mark.parametrize("origin", ["http://evil.com", "null", "https://127.0.0.1:1234", "http://localhost:1234", ""])
def test_another_origin_is_refused_even_with_the_token(keys: AccessKeys, origin: str) -> None:
    assert refused(keys, "GET", "/status", origin=origin, authorization=bearer(keys)) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_another_site_is_refused_even_with_the_token(keys: AccessKeys, site: str) -> None:
    assert refused(keys, "GET", "/status", sec_fetch_site=site, authorization=bearer(keys)) == 403


@pytest.mark.proves("A18.24")
def test_only_the_sign_in_page_may_be_visited_from_elsewhere_and_only_as_a_whole(keys: AccessKeys) -> None:
    visit = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert refused(keys, "GET", "/", **visit) is None
    assert refused(keys, "GET", "/status", **visit, authorization=bearer(keys)) == 403
    assert refused(keys, "POST", "/", **visit) == 403
    assert refused(keys, "POST", "/page-key", **visit) == 403
    assert refused(keys, "GET", "/", **visit, origin="http://evil.com") == 403
    for name, value in (("sec_fetch_dest", "iframe"), ("sec_fetch_mode", "no-cors"), ("sec_fetch_dest", "empty")):
        assert refused(keys, "GET", "/", **{**visit, name: value}) == 403


def test_our_own_page_is_let_in(keys: AccessKeys) -> None:
    own = {"origin": f"http://{OURS}", "sec_fetch_site": "same-origin", "authorization": bearer(keys)}
    assert refused(keys, "GET", "/events", **own) is None


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {}", "Bearer {}x", "Bearer x{}", "{}", "Bearer \xff"],
)
def test_without_the_very_token_nothing_is_answered(keys: AccessKeys, given: str) -> None:
    token = bearer(keys).removeprefix("Bearer ")
    assert refused(keys, "GET", "/status", authorization=given.format(token)) == 401


def test_the_token_in_an_address_opens_nothing(keys: AccessKeys) -> None:
    token = bearer(keys).removeprefix("Bearer ")
    assert refused(keys, "GET", f"/status?token={token}&access_token={token}") == 401


def test_a_page_reads_what_it_shows_restarts_servers_and_does_nothing_else(keys: AccessKeys) -> None:
    key = keys.redeem(keys.issue_ticket(0.0), 1.0)
    page = {"authorization": f"Bearer {key}"}
    assert refused(keys, "GET", "/status", **page) is None
    assert refused(keys, "GET", "/events", **page) is None
    assert refused(keys, "GET", "/servers/log", **page) is None
    assert refused(keys, "POST", "/servers/restart", content_type="application/json", **page) is None
    for method, path in (("GET", "/metrics"), ("POST", "/conversations/a/lsp"), ("POST", "/mcp"), ("PUT", "/status")):
        assert refused(keys, method, path, content_type="application/json", **page) == 403


def test_a_ticket_works_once_and_not_for_ever(keys: AccessKeys) -> None:
    ticket, late = keys.issue_ticket(0.0), keys.issue_ticket(0.0)
    assert keys.redeem(ticket, 1.0) is not None
    assert keys.redeem(ticket, 1.0) is None
    assert keys.redeem(late, 301.0) is None
    assert keys.redeem("", 1.0) is None


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/json; charset=latin-1",
        "application/jsonp",
        "",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_what_a_form_can_send_is_refused(keys: AccessKeys, method: str, kind: str) -> None:
    assert refused(keys, method, "/conversations/a/cwd", authorization=bearer(keys), content_type=kind) == 415


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "9" * 5000, "-1", "x", "1e3", "١"])
def test_a_body_too_large_is_refused_by_its_head(keys: AccessKeys, length: str) -> None:
    headers = [
        (b"host", OURS.encode()),
        (b"authorization", bearer(keys).encode()),
        (b"content-type", b"application/json"),
        (b"content-length", length.encode()),
    ]
    against = objection(head_of("PUT", "/conversations/a/cwd", headers), NAMES, keys)
    assert against is not None
    assert against.status == 413


# --- Over real sockets ----------------------------------------------------------------------------------------------


def routes() -> list[tuple[str, str]]:
    """Every route that there is, documented or not."""
    known = [
        (method.upper(), path.replace("{id}", "a"))
        for path, methods in document()["paths"].items()
        for method in methods
        if method != "parameters"
    ]
    return [*known, ("GET", "/mcp"), ("POST", "/mcp"), ("DELETE", "/mcp"), ("GET", SIGN_IN), ("POST", EXCHANGE)]


@pytest.mark.proves("P33", "A17.14")
@pytest.mark.parametrize(("method", "path"), [pytest.param(*route, id=" ".join(route)) for route in routes()])
def test_no_route_answers_anything_without_a_token(served: HttpServed, method: str, path: str) -> None:
    answered = served.bare(method, path, b"{}" if method in {"POST", "PUT"} else b"", JSON)
    assert answered.status == 401
    assert served.token.encode() not in answered.body


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "HEAD", "DELETE", "PATCH"])
def test_no_method_answers_anything_without_a_token(served: HttpServed, method: str) -> None:
    for path in ("/", "/status", "/conversations/a/cwd", "/mcp", "/nowhere"):
        assert served.bare(method, path, b"", JSON).status in {401, 404, 405}


def test_a_rebound_name_is_refused_with_and_without_the_token(served: HttpServed) -> None:
    for headers in ({}, served.bearer):
        assert served.bare("GET", "/status", b"", {"Host": f"evil.com:{served.port}", **headers}).status == 421
        assert served.bare("GET", "/", b"", {"Host": f"evil.com:{served.port}", **headers}).status == 421


def test_a_form_of_another_site_changes_nothing(served: HttpServed) -> None:
    form = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": "http://evil.com",
        "Sec-Fetch-Site": "cross-site",
    }
    body = b'{"cwd": "/"}'
    assert served.bare("PUT", "/conversations/form/cwd", body, form).status == 403
    plain = {"Content-Type": "text/plain", **served.bearer}
    assert served.bare("PUT", "/conversations/form/cwd", body, plain).status == 415
    assert served.ask("GET", "/conversations/form/cwd").json["cwd"] is None


def test_no_answer_lets_another_origin_read_it(served: HttpServed) -> None:
    answers: list[Reply] = [
        served.ask("GET", "/status"),
        served.ask("GET", "/nowhere"),
        served.bare("GET", "/", b"", {}),
        served.bare("OPTIONS", "/status", b"", {"Origin": "http://evil.com", "Access-Control-Request-Method": "GET"}),
    ]
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"


def test_only_loopback_is_listened_on(served: HttpServed) -> None:
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {fields[1] for fields in sockets if fields[3] == "0A"}
    hexadecimal = f"{served.port:04X}"
    assert {place for place in listening if place.endswith(f":{hexadecimal}")} == {f"0100007F:{hexadecimal}"}


def test_a_link_to_the_page_works_once(served: HttpServed) -> None:
    ticket = served.said["page"].partition("#")[2]
    given = served.bare("POST", EXCHANGE, f'{{"ticket": "{ticket}"}}'.encode(), JSON)
    assert given.status == 200
    page = {"Authorization": f"Bearer {given.json['key']}"}
    assert served.bare("GET", "/status", b"", page).status == 200
    assert served.bare("GET", "/metrics", b"", page).status == 403
    assert served.bare("POST", EXCHANGE, f'{{"ticket": "{ticket}"}}'.encode(), JSON).status == 401
    assert given.json["key"] != served.token
