"""`POST /servers/restart` and `GET /servers/log` of a real daemon, as the live page uses them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.clients.http import JSON, HttpServed, http_served
from support.daemon.homes import daemon_home

pytestmark = pytest.mark.proves("HTTP-2")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[HttpServed]:
    with daemon_home(tmp_path) as home, http_served(home) as made:
        home.write("a.x", "fine\n")
        with home.link("agent") as link:
            link.request("touched", {"paths": ["a.x"], "kind": "edit"})
            yield made


def page_key(served: HttpServed) -> dict[str, str]:
    ticket = served.said["page"].partition("#")[2]
    answer = served.bare("POST", "/page-key", f'{{"ticket": "{ticket}"}}'.encode(), JSON)
    return {"Authorization": f"Bearer {answer.json['key']}"}


def body(root: object, server: str = "toy") -> bytes:
    return f'{{"root": "{root}", "server": "{server}"}}'.encode()


@pytest.mark.proves("T17", "T19")
def test_the_page_restarts_a_server_and_no_other_page_does(served: HttpServed) -> None:
    key, named = page_key(served), body(served.home.root)
    before = {pid for pid, command in served.home.processes().items() if "fakels" in command}
    evil = {**key, **JSON, "Origin": "http://evil.example"}
    for refused, headers in ((401, JSON), (403, evil), (415, {**key, "Content-Type": "text/plain"})):
        assert served.bare("POST", "/servers/restart", named, headers).status == refused
    assert served.bare("GET", "/servers/restart", b"", served.bearer).status == 405
    assert before <= set(served.home.processes())
    done = served.bare("POST", "/servers/restart", named, {**key, **JSON})
    assert (done.status, [one["root"] for one in done.json]) == (200, [str(served.home.root)])
    assert done.json[0]["pid"] not in before
    assert before.isdisjoint(served.home.processes())


def test_only_known_servers_of_a_workspace_in_use_are_reached(served: HttpServed, tmp_path: Path) -> None:
    key = {**page_key(served), **JSON}
    assert served.bare("POST", "/servers/restart", body(tmp_path), key).status == 409
    assert served.bare("POST", "/servers/restart", body(served.home.root, "unheard-of"), key).status == 404
    assert served.bare("POST", "/servers/restart", b'{"root": "relative", "server": "toy"}', key).status == 400
    assert served.bare("POST", "/servers/restart", b"{}", key).status == 400


def test_the_log_of_a_server_is_read(served: HttpServed) -> None:
    asked = urlencode({"root": str(served.home.root), "server": "toy"})
    answer = served.bare("GET", f"/servers/log?{asked}", b"", page_key(served))
    assert answer.status == 200
    assert isinstance(answer.json["lines"], list)
    assert served.bare("GET", "/servers/log", b"", served.bearer).status == 400
