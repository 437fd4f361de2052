"""What reaches the model of a host after its turn, word by word, and the texts that are committed for it.

`PILOTFISH_UPDATE_GOLDEN=1` writes those anew, for a version of a host or of a server that says something else.
"""

import os
import re
from pathlib import Path
from typing import Any, cast

from support.daemon.homes import DaemonHome
from support.hosts.model_apis import text_of
from support.hosts.model_server import Request

UPDATE = "PILOTFISH_UPDATE_GOLDEN"
GOLDEN = Path(__file__).parents[2] / "hosts" / "golden"

NAMES = frozenset({"type", "role", "id", "call_id", "tool_call_id", "tool_use_id", "name", "status", "cache_control"})
"""What is no text in an item: it tells which call is answered, and how."""

OWN = frozenset({"assistant", "model", "function_call", "custom_tool_call"})
"""Whose item it is when the model itself has said it, by its role or its type."""

HOOK = re.compile(r"(?s)PostTool[\w:]+ hook additional context: .*? before you stop\.")
"""Of a system message: Claude Code announces other things in it, too, whenever they happen."""

UNSTEADY = {
    r"(?<=Wall time: )[\d.]+": "TIME",
    r"\b(call|toolu)_+\d+_+\d+\b": r"\1",
    r"(?<=## Running: ).*(?=/aider_lint.py)": "PROGRAMS",
    # Codex announces the tools of a server when that has started.
    r"(?s)\n?\[developer\]\n<tools>.*?</tools>\n?": "",
    # Aider repeats its instructions.
    r"(?s)\n+To suggest changes to a file you MUST.*": "",
}
"""What differs from run to run, or is none of ours."""


def reached(request: Request, home: DaemonHome) -> str:
    """The items that came after what the model itself has said last, each below its role, without this machine."""
    items = _items(request.body)
    own = [place for place, item in enumerate(items) if {item.get("role"), item.get("type")} & OWN]
    said = [(item.get("role") or item.get("type"), text_of(_texts(item))) for item in items[own[-1] + 1 :]]
    ours = [(whose, "".join(HOOK.findall(text)) if whose == "system" else text) for whose, text in said]
    return _steady("\n".join(f"[{whose}]\n{text}" for whose, text in ours if text), home)


def is_as_committed(name: str, text: str) -> None:
    """Fails when the text is not the one that is committed under this name."""
    file = GOLDEN / f"{name}.txt"
    text = text.rstrip("\n") + "\n"
    if os.environ.get(UPDATE):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:
    return next(body[name] for name in ("messages", "input", "contents") if name in body)


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in cast("dict[str, Any]", value).items() if name not in NAMES}
    return [_texts(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _steady(text: str, home: DaemonHome) -> str:
    for path, name in ((str(home.root), "/workspace"), (home.environment["HOME"], "/home")):
        text = text.replace(path, name)
    for pattern, name in UNSTEADY.items():
        text = re.sub(pattern, name, text)
    return text
