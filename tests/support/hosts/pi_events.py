"""What Pi tells its extensions, and what ours says to that: the sentences of the tests, for `pi_driver.mjs`."""

from typing import Any

import msgspec

from pilotfish.api.answers import Answer
from support.hosts.plugins import Driven

WROTE = {"type": "text", "text": "Successfully wrote 4 bytes"}
"""The host's own result of an edit."""


def result(tool: str, arguments: dict[str, Any], call: str = "1", **more: Any) -> dict[str, Any]:
    """What `fire` is given for the end of a tool."""
    data = {"toolName": tool, "toolCallId": call, "input": arguments, "content": [WROTE], "isError": False, **more}
    return {"event": "tool_result", "data": data}


def edited(pi: Driven, path: str = "a.x") -> Any:
    """What comes back for an edit of a file."""
    return pi("fire", **result("edit", {"path": path, "edits": []}))


def status_after(pi: Driven) -> str:
    """The status line once the tool has ended."""
    assert pi("fire", event="tool_execution_end", data={"toolCallId": "1"}) is None
    return pi("seen")["statuses"][-1][1]


def asked(pi: Driven, **question: Any) -> Answer[Any]:
    """The answer of the tool `lsp`, checked against the rules of every answer."""
    told = pi("tool", name="lsp", parameters=question)
    answer = msgspec.json.decode(told["content"][0]["text"], type=Answer[Any])
    assert msgspec.convert(told["details"], Answer[Any]) == answer
    return answer
