"""Places as people write them: `FILE:LINE:COL`, `FILE SYMBOL`, `FILE:LINE SYMBOL`, `SYMBOL`."""

import os
import re
from collections.abc import Callable, Sequence

from pilotfish.errors import Code, Refused

NUMBERED = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<character>\d+))?:?", re.DOTALL)
"""A compiler's own spelling may have a colon behind it."""

USAGE = "A place is FILE:LINE:COL, or FILE SYMBOL, or SYMBOL alone, such as src/a.py:10:5 or Class.method."


def place_of(words: Sequence[str], is_file: Callable[[str], bool] = os.path.isfile) -> dict[str, object]:
    """The fields of a question that give the place; raises `Refused` for what is none."""
    if len(words) == 2:
        return {**numbered(words[0], is_file), "symbol": words[1]}
    if len(words) != 1:
        raise Refused(Code.INVALID_INPUT, f"{len(words)} words do not make a place.", hint=USAGE)
    word = words[0]
    if is_file(word):
        raise Refused(Code.INVALID_INPUT, f"{word} is a file, and not a place in it.", hint=USAGE)
    return numbered(word, is_file) if NUMBERED.fullmatch(word) else {"symbol": word}


def numbered(word: str, is_file: Callable[[str], bool] = os.path.isfile) -> dict[str, object]:
    """`FILE`, `FILE:LINE` or `FILE:LINE:COL`, as fields; a file may have such a name itself."""
    found = None if is_file(word) else NUMBERED.fullmatch(word)
    if found is None:
        return {"filePath": word}
    numbers = {name: int(found[name]) for name in ("line", "character") if found[name]}
    return {"filePath": found["file"], **numbers}
