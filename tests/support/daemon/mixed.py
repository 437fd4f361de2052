"""Requests of every kind that clients of the daemon make, and whether an answer to one is right.

The workspace has `a.x`, in which `daemon_scenarios.answering` finds a bad word, and `b.x`, in which it does not.
"""

from pathlib import Path
from typing import Any

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("touched", {"paths": ["a.x"], "kind": "edit"}),
    ("ask", {"operation": "hover", "filePath": "a.x", "line": 1, "character": 1}),
    ("ask", {"operation": "goToDefinition", "filePath": "b.x", "line": 1, "character": 1}),
    ("check", {"paths": ["a.x", "b.x"]}),
    ("about", {}),
    ("ask", {"operation": "hover", "filePath": "gone.x", "line": 1, "character": 1}),
]


def make_workspace(root: Path) -> None:
    (root / "a.x").write_text("bad\n")
    (root / "b.x").write_text("good\n")


def is_right(method: str, params: dict[str, Any], answer: Any) -> bool:
    match method:
        case "touched":
            return answer["state"] == "fresh" and "bad word" in answer["text"]
        case "check":
            return [len(found) for found in answer["data"].values()] == [1, 0]
        case "ask" if params["filePath"] == "gone.x":
            return not answer["ok"] and answer["errors"][0]["code"] == "file_missing"
        case "ask":
            return answer["meta"]["state"] == "fresh" and bool(answer["data"])
        case _:
            return bool(answer)
