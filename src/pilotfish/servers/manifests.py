"""Manifests and configuration files of a repository as values, within bounds: a hostile one costs itself alone. Pure.

`tomllib` keeps every prefix of a dotted key: one of 20,000 parts takes 1.6 GB and half a minute. So a text is looked at
before it is parsed, in linear time, and one that is too long, too deep, or has such a key is not parsed at all.
"""

import json
import re
import tomllib
from functools import lru_cache

from pilotfish.config.jsonc import BadJson, without_comments

MAX_CHARACTERS = 96 * 1024
"""Of TOML, which is parsed at 1 MB/s: the longest manifests of public repositories have two thirds of that."""

MAX_MARKS = 8_000
"""Lines, parts of keys, and values of lists and tables, of TOML: these cost more than characters, and the event loop
waits for all of them. The longest manifests have two thirds of that."""

MAX_JSON_CHARACTERS = 256 * 1024

MAX_COMMENTED_CHARACTERS = 32 * 1024
"""Of JSON with comments, which takes fifty times as long; `tsc --init` writes 12 KB."""

MAX_DEPTH = 64  # Lists and tables in each other; people write five
MAX_KEY_PARTS = 16  # Of a key such as `tool.ruff.lint`
REMEMBERED = 32  # Texts whose value is kept. The text is the key, so a value is never stale.

_APART = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\')?'
    r'|"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|#[^\n]*+',
    re.DOTALL,
)
"""Strings and comments of TOML. In what is left, dots are those of keys and numbers, and brackets are brackets."""

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BETWEEN_KEYS = re.compile(r"[^\w\-. \t]+")
_BRACKETS = re.compile(r"[\[\]{}]")


@lru_cache(maxsize=REMEMBERED)
def toml_table(text: str) -> dict[str, object] | None:
    """The table of a TOML file; None for one that is none, or is out of bounds."""
    if len(text) > MAX_CHARACTERS:
        return None
    plain = _APART.sub(lambda found: "" if found[0].startswith("#") else "s", text)
    if sum(map(plain.count, "\n,.")) > MAX_MARKS or _is_deep(plain):
        return None
    if any(part.count(".") >= MAX_KEY_PARTS for part in _BETWEEN_KEYS.split(plain)):
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # also an integer with more digits than Python reads
        return None


def json_value(text: str) -> object:
    """The value of a JSON file, comments and trailing commas allowed; None for none, or out of bounds."""
    if len(text) > MAX_JSON_CHARACTERS or _is_deep(_JSON_STRING.sub("s", text)):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return without_comments(text) if len(text) <= MAX_COMMENTED_CHARACTERS else None
    except (BadJson, ValueError, RecursionError):
        return None


def _is_deep(plain: str) -> bool:
    depth = 0
    for found in _BRACKETS.finditer(plain):
        depth += 1 if found[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False
