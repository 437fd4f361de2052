"""Where conversations work and what they ask, over real sockets."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.clients.http import HttpServed, http_served
from support.daemon.homes import DaemonHome, daemon_home, ended

pytestmark = pytest.mark.proves("HTTP-1")

CWD, LSP = "/conversations/{}/cwd", "/conversations/{}/lsp"


def test_a_conversation_that_nobody_named_works_nowhere(served: HttpServed) -> None:
    assert served.ask("GET", CWD.format("unseen")).json == {"conversationId": "unseen", "cwd": None}
    assert served.ask("GET", LSP.format("unseen")).json == {
        "conversationId": "unseen",
        "cwd": None,
        "servers": [],
        "connected": False,
    }


def test_where_a_conversation_works_is_kept(served: HttpServed) -> None:
    here = str(served.home.root)
    put = served.ask("PUT", CWD.format("kept"), {"cwd": f"{here}/."})
    assert (put.status, put.json) == (200, {"conversationId": "kept", "cwd": here})
    assert served.ask("GET", CWD.format("kept")).json == {"conversationId": "kept", "cwd": here}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param({"cwd": ""}, 400, id="empty"),
        pytest.param({"cwd": "relative"}, 400, id="relative"),
        pytest.param({"cwd": "/a\0b"}, 400, id="a zero byte"),
        pytest.param({"cwd": None}, 400, id="null"),
        pytest.param({}, 400, id="nothing"),
        pytest.param({"cwd": "/", "more": 1}, 400, id="more"),
        pytest.param([], 400, id="a list"),
        pytest.param({"cwd": "/no/such/folder"}, 409, id="no folder"),
        pytest.param({"cwd": "/" + "a" * 5000}, 400, id="too long"),
    ],
)
def test_what_is_no_folder_is_refused_and_changes_nothing(served: HttpServed, body: object, status: int) -> None:
    refused = served.ask("PUT", CWD.format("refused"), body)
    assert refused.status == status
    assert {"error", "code"} <= set(refused.json)
    assert served.ask("GET", CWD.format("refused")).json["cwd"] is None


@pytest.mark.parametrize("name", ["a%2Fb", "%20", "%00", ".hidden", "a" * 201, "%ff"])
def test_a_name_that_is_none_is_refused(served: HttpServed, name: str) -> None:
    assert served.ask("GET", CWD.format(name)).status in {400, 404}


def test_where_a_conversation_works_outlives_a_killed_daemon(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home:
        with http_served(home) as before:
            assert before.ask("PUT", CWD.format("long"), {"cwd": str(home.root)}).status == 200
            [daemon] = home.daemons()
            os.kill(daemon, signal.SIGKILL)
            assert ended(daemon)
        with http_served(home) as after:
            assert home.daemons() != [daemon]
            assert after.token != ""
            assert after.ask("GET", CWD.format("long")).json["cwd"] == str(home.root)


def question(**fields: Any) -> dict[str, Any]:
    return {"operation": "goToDefinition", "filePath": "good.x", "line": 1, "character": 1, **fields}


def test_a_question_needs_a_place_to_work_once(served: HttpServed) -> None:
    assert served.ask("POST", LSP.format("asks"), question()).status == 409
    given = served.ask("POST", LSP.format("asks"), question(cwd=str(served.home.root)))
    assert (given.status, given.json["ok"]) == (200, True)
    assert given.json["data"][0]["path"] == "good.x"
    again = served.ask("POST", LSP.format("asks"), question())
    assert again.json["meta"]["state"] == "fresh"
    assert served.ask("GET", CWD.format("asks")).json["cwd"] == str(served.home.root)


def test_errors_and_the_whole_project_are_asked_for_the_same_way(served: HttpServed) -> None:
    served.ask("PUT", CWD.format("errors"), {"cwd": str(served.home.root)})
    one = served.ask("POST", LSP.format("errors"), {"operation": "diagnostics", "filePath": "wrong.x"}).json
    assert [found["message"] for found in one["data"]["wrong.x"]] == ["bad word"]
    everything = served.ask("POST", LSP.format("errors"), {"operation": "diagnostics"}).json
    assert list(everything["data"]) == ["wrong.x"]


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        pytest.param({"operation": "nothing"}, 422, "no operation", id="no such operation"),
        pytest.param({"operation": "goToDefinition"}, 422, "missing", id="no place"),
        pytest.param({"operation": "hover", "filePath": "good.x", "line": "one"}, 422, "line", id="a wrong type"),
        pytest.param({"operation": "hover", "symbol": "a" * 70_000}, 413, "longer", id="too long"),
        pytest.param([1], 400, "body", id="no object"),
        pytest.param({"operation": "hover", "cwd": "here"}, 400, "body", id="a relative folder"),
        pytest.param({"operation": "hover", "symbol": "a", "cwd": "/no/such"}, 409, "not a folder", id="no folder"),
    ],
)
def test_a_body_that_makes_no_question_is_refused_with_the_reason(
    served: HttpServed, body: object, status: int, word: str
) -> None:
    refused = served.ask("POST", LSP.format("wrong"), body)
    assert refused.status == status
    assert word in refused.json["error"]


def test_servers_are_listed_as_they_come_and_go(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served:
        home.write("good.x", "fine\n")
        served.ask("PUT", CWD.format("tab"), {"cwd": str(home.root)})
        [idle] = served.ask("GET", LSP.format("tab")).json["servers"]
        expected = {"id": "toy", "name": "toy", "root": str(home.root), "extensions": [".x"], "state": "not-started"}
        assert idle == expected
        assert not any("fakels" in command for command in home.processes().values()), "looking starts nothing"
        served.ask("POST", LSP.format("tab"), question())
        assert served.ask("GET", LSP.format("tab")).json["servers"] == [{**expected, "state": "connected"}]


def test_a_server_that_cannot_start_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home:
        config = Path(home.environment["HOME"]) / ".config" / "pilotfish" / "lsp.json"
        config.write_text('{"lsp": {"toy": {"command": ["/bin/false"], "extensions": [".x"]}}}')
        home.write("good.x", "fine\n")
        with http_served(home) as served:
            asked = served.ask("POST", LSP.format("tab"), question(cwd=str(home.root)))
            assert (asked.status, asked.json["ok"]) == (200, False)
            [failed] = served.ask("GET", LSP.format("tab")).json["servers"]
            assert failed["state"] == "error"
            assert failed["error"]


def test_a_relative_folder_is_refused_in_words(served: HttpServed) -> None:
    refused = served.ask("PUT", CWD.format("words"), {"cwd": "src"})
    assert (refused.status, refused.json["error"]) == (400, "cwd in the body must be an absolute path")
    assert refused.json["hint"] == "Name the whole path, such as /home/me/project."


def test_every_configured_server_is_listed_also_one_that_may_not_run_here(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home, http_served(home) as served:
        home.write("good.x", "fine\n")
        own = {"command": ["./run"], "extensions": [".own"]}
        (home.root / ".dispatch").mkdir()
        home.write(".dispatch/lsp.json", json.dumps({"servers": {"own": own, "gopls": {"disabled": True}}}))
        served.ask("PUT", CWD.format("tab"), {"cwd": str(home.root)})
        told = served.ask("GET", LSP.format("tab")).json
        states = {one["id"]: (one["state"], one.get("error", "")) for one in told["servers"]}
        assert told["connected"] is False
        assert states["toy"] == ("not-started", "")
        assert states["gopls"] == ("not-started", "disabled by configuration")
        assert (states["own"][0], "needs trust" in states["own"][1]) == ("error", True)
        served.ask("POST", LSP.format("tab"), question())
        assert served.ask("GET", LSP.format("tab")).json["connected"] is True


def test_a_conversation_that_moves_leaves_its_servers(served: HttpServed, home: DaemonHome) -> None:
    (home.root / "inner").mkdir()
    served.ask("POST", LSP.format("moves"), question(cwd=str(home.root)))
    assert _sessions(served, "moves") == [str(home.root)]
    served.ask("PUT", CWD.format("moves"), {"cwd": str(home.root / "inner")})
    assert _sessions(served, "moves") == []


def _sessions(served: HttpServed, conversation: str) -> list[str]:
    workspaces = served.ask("GET", "/status").json["workspaces"]
    return [
        workspace["root"]
        for workspace in workspaces
        for known in workspace["conversations"]
        if known.get("conversation") == conversation
    ]
