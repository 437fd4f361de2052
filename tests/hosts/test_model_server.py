"""The scripted model itself: which turn it takes, and that a stream says the same as an answer in one piece."""

import json
from urllib.request import Request, urlopen

import pytest

from support.hosts.model_script import DONE, Answer, Heard, Json, Script
from support.hosts.model_server import Call, ModelServer, Say

TURNS = [Call("write", {}), [Call("edit", {}), Call("edit", {})], Say("So."), Call("read", {})]
TOOLS = ("write", "edit", "read")


@pytest.mark.parametrize(
    ("heard", "answer"),
    [
        pytest.param(Heard(TOOLS), (Call("write", {}),), id="at the beginning"),
        pytest.param(Heard(), DONE, id="somebody who offers no tools, for a title"),
        pytest.param(Heard(TOOLS, ("ok",)), (Call("edit", {}), Call("edit", {})), id="after a result"),
        pytest.param(Heard(TOOLS, ("ok", "ok", "ok")), Say("So."), id="after two results at once"),
        pytest.param(Heard(TOOLS, ("ok", "ok", "ok"), ("So.\n",)), (Call("read", {}),), id="after what it said"),
        pytest.param(Heard(TOOLS, ("ok",), ("An example.",)), (Call("edit", {}), Call("edit", {})), id="not its words"),
        pytest.param(Heard(TOOLS, ("ok",) * 4, ("So.",)), DONE, id="at the end"),
    ],
)
def test_the_turn_is_read_from_the_request_alone(heard: Heard, answer: Answer) -> None:
    assert Script(TURNS).answer(heard) == answer


TOOL: Json = {"name": "write", "input_schema": {}}
BODIES: dict[str, Json] = {
    "/v1/messages": {"messages": [{"role": "user", "content": "go"}], "tools": [TOOL]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "go"}], "tools": [{"function": TOOL}]},
    "/v1/responses": {"input": "go", "tools": [{"type": "function", **TOOL}]},
    "/v1beta/models/m:generateContent": {"contents": [], "tools": [{"functionDeclarations": [TOOL]}]},
}


def asked(url: str, body: Json) -> str:
    with urlopen(Request(url, json.dumps(body).encode())) as response:
        return response.read().decode()


@pytest.mark.parametrize("path", BODIES)
def test_a_stream_holds_the_call_that_an_answer_in_one_piece_does(path: str) -> None:
    call = Call("write", {"path": "a.py"})
    with ModelServer([call]) as model:
        whole = asked(model.url + path, BODIES[path])
        streamed = asked(model.url + path.replace(":g", ":streamG"), BODIES[path] | {"stream": True})
        said = asked(model.url + path, {**BODIES[path], "tools": []})
    assert all('"write"' in text and "a.py" in text for text in (whole, streamed))
    assert streamed.count("data: ") >= 1
    assert "write" not in said
    assert DONE.text in said
    assert [request.position for request in model.requests] == [0, 0, 0]
    assert model.after(0).heard.tools == ("write",)


def test_a_path_that_is_not_there_is_kept_as_unknown() -> None:
    with ModelServer([]) as model:
        with pytest.raises(OSError, match="404"):
            asked(f"{model.url}/elsewhere", {})
        assert model.unknown == ["/elsewhere"]
