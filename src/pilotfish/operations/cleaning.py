"""Foreign text made harmless on its way to a reader.

What a server says comes from the code that it reads. The two forms of an answer that models see, the
text and the structured one, are both sinks: everything in them goes through the sanitiser, each kind of text with a
limit of its own.
"""

from typing import cast

import msgspec

from pilotfish.api.answers import Api
from pilotfish.sanitise import sanitised, sanitised_lines

MAX_PATH = 500
MAX_NAME = 200
MAX_SOURCE = 160
MAX_MESSAGE = 1000

MAX_HOVER = 8000
"""Some servers answer with the whole documentation of a module."""

MAX_DIFF = 40_000
"""Of one file: a larger change is not read as a diff."""

_LIMITS = {"contents": MAX_HOVER, "documentation": MAX_HOVER, "text": MAX_HOVER, "diff": MAX_DIFF, "source": MAX_DIFF}
"""By field of the structured form; `MAX_MESSAGE` for the others."""

_WORD_FOR_WORD = frozenset({"data", "uri"})
"""Members of an item that go back to the server."""


def structured(answer: Api) -> dict[str, object]:
    """The answer as plain JSON values, every text in it clean; only what goes back to a server stays word for word."""
    plain = cast("dict[str, object]", msgspec.to_builtins(answer))
    return _members(plain)


def _members(plain: dict[str, object]) -> dict[str, object]:
    opaque = _WORD_FOR_WORD if "selectionRange" in plain else frozenset[str]()
    return {
        sanitised(name, MAX_PATH): value if name in opaque else _value(value, _LIMITS.get(name, MAX_MESSAGE))
        for name, value in plain.items()
    }


def _value(value: object, limit: int) -> object:
    if isinstance(value, str):
        return sanitised_lines(value, limit)
    if isinstance(value, list | tuple):
        return [_value(item, limit) for item in cast("list[object]", value)]
    return _members(cast("dict[str, object]", value)) if isinstance(value, dict) else value
