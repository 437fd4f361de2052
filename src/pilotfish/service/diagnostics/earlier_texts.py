"""What a file was before an edit: what the host says, what was read before, what git has committed.

An edit is judged by what it changed. Where the file was not checked before the edit, its old text is checked for it,
and this is where that text comes from, the surest source first.
"""

from collections.abc import Callable, Mapping

import anyio.to_thread

from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent
from pilotfish.service.texts import old_text_to_send

MAX_TEXTS = 200
"""Texts that are kept because a host read the file: some read many more files than they edit."""

MAX_CHARACTERS = 2 * 1024 * 1024
"""Of one text that is kept."""

Committed = Callable[[AbsPath], bytes | None]
"""What the last commit has of a file. Blocking."""


class EarlierTexts:
    def __init__(self) -> None:
        self._seen: Recent[AbsPath, str] = Recent(MAX_TEXTS)
        self._gone: Recent[AbsPath, str] = Recent(MAX_TEXTS)
        """The last texts of files that were deleted."""

    def saw(self, path: AbsPath, text: str) -> None:
        """A host is reading the file, or about to change it: this is what it has. Empty: there is no such file."""
        if len(text) <= MAX_CHARACTERS:
            self._seen.put(path, text)

    def saw_first(self, path: AbsPath, text: str) -> None:
        """The same, unless something is known already."""
        if self._seen.get(path) is None:
            self.saw(path, text)

    def deleted(self, path: AbsPath, text: str) -> None:
        """The file is gone, and this is what it had: should it come back, its old errors are not new."""
        if len(text) <= MAX_CHARACTERS:
            self._gone.put(path, text)

    def with_deleted(self, before: Mapping[AbsPath, str | None]) -> dict[AbsPath, str | None]:
        """The texts before an edit; of a file that had been deleted, the one before that."""
        return {path: self._gone.get(path) or text if text == "" else text for path, text in before.items()}

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep the texts of these files no longer."""
        self._seen.drop(is_meant)
        self._gone.drop(is_meant)

    async def before(self, path: AbsPath, now: str, said: str | None, committed: Committed | None) -> str | None:
        """The text before the edit that made it `now`; None where nobody knows. Empty for a file that is new."""
        if said is not None:
            return said
        seen = self._seen.get(path)
        if seen is not None and (seen != now or not now):
            return seen
        if committed is None:
            return None
        content = await anyio.to_thread.run_sync(committed, path)
        text = None if content is None else _decoded(content, now)
        return None if text is None else old_text_to_send(path, text)


def _decoded(content: bytes, now: str) -> str | None:
    """A committed text with the line ends that the file has: git may convert them."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\r\n" in now and "\r\n" not in text:
        return text.replace("\n", "\r\n")
    return text
