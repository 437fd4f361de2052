"""The edit of a host with other texts than its usual ones."""

from collections.abc import Callable
from typing import Any, cast

from support.daemon.homes import DaemonHome
from support.hosts.agents import MENDED, UPDATING
from support.hosts.model_server import Call, Say, Turn
from support.hosts.real import Agent


def editing(agent: Agent, home: DaemonHome, old: str, new: str) -> Turn:
    """The host's own edit of the file, with other texts."""
    patch = "".join([f"-{line}\n" for line in old.splitlines()] + [f"+{line}\n" for line in new.splitlines()])
    changed = f"*** Begin Patch\n*** Update File: a.py\n@@\n{patch}*** End Patch\n"
    exact = {'"x"': old.rstrip(), "1": new.rstrip(), UPDATING: changed}

    def text_of(text: str) -> str:
        return exact.get(text) or text.replace(MENDED, new)

    return with_texts(agent.mending(home.root / "a.py"), text_of)


def with_texts(turn: Turn, change: Callable[[str], str]) -> Turn:
    if isinstance(turn, Say):
        return Say(change(turn.text))
    assert isinstance(turn, Call)
    return Call(turn.tool, _changed(turn.arguments, change))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON with other texts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(each, change) for key, each in cast("dict[str, Any]", value).items()}
    return [_changed(each, change) for each in cast("list[Any]", value)] if isinstance(value, list) else value
