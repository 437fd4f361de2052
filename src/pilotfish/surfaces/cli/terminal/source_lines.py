"""Source lines of files that an answer names, each file read once."""

import os
from collections.abc import Mapping

from pilotfish.protocol.positions import Text

MAX_BYTES = 4 * 1024 * 1024
"""Of a larger file, only what stands in its first part is shown."""


class Sources:
    def __init__(self, cwd: str, texts: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._read: dict[str, Text | None] = {path: Text(text) for path, text in texts.items()}

    def line(self, path: str, number: int) -> str | None:
        """A line, counted from 1; None when it cannot be had."""
        if path not in self._read:
            self._read[path] = self._text(path)
        text = self._read[path]
        return text.line(number - 1) if text is not None and 0 < number <= text.line_count else None

    def _text(self, path: str) -> Text | None:
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(os.path.join(self._cwd, path), flags), "rb") as file:
                return Text(file.read(MAX_BYTES).decode("utf-8-sig", "replace"))
        except OSError:
            return None
