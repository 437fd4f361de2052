"""The words of the code of files, without comments and documentation: who only speaks of a name does not use it."""

import os
import re
from collections.abc import Collection, Iterable

import anyio.to_thread
from msgspec import Struct

from pilotfish.feedback.changed_names import STYLES, WORD, without_remarks
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent

MAX_KEPT = 2_000
"""Files whose words are kept, some 10 KB for each."""

TYPED_BY_COMMENTS = (".js", ".jsx", ".mjs", ".cjs")
"""Files whose comments a checker reads as types."""

_TYPE_COMMENT = re.compile(r"#(?=\s*type:)")


class _Read(Struct, frozen=True):
    look: tuple[int, int, int]
    words: frozenset[str]


class CodeWords:
    def __init__(self) -> None:
        self._kept: Recent[AbsPath, _Read] = Recent(MAX_KEPT)

    async def using(self, paths: Collection[AbsPath], names: Collection[str]) -> list[AbsPath]:
        """Of these files, those with any of the names in their code; also those that cannot be read."""
        if not paths:
            return []
        return await anyio.to_thread.run_sync(self._using, paths, frozenset(names))

    def _using(self, paths: Iterable[AbsPath], names: frozenset[str]) -> list[AbsPath]:
        """Blocking: for a thread."""
        return [path for path in paths if (words := self._words(path)) is None or not names.isdisjoint(words)]

    def _words(self, path: AbsPath) -> frozenset[str] | None:
        try:
            status = os.stat(path)
            look, known = (status.st_ino, status.st_size, status.st_mtime_ns), self._kept.get(path)
            if known is not None and known.look == look:
                return known.words
            if status.st_size > MAX_FILE_BYTES:
                return None
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            return None
        words = frozenset(found[0] for found in WORD.finditer(_code(text, os.path.splitext(path)[1])))
        self._kept.put(path, _Read(look, words))
        return words


def _code(text: str, extension: str) -> str:
    if extension in TYPED_BY_COMMENTS or extension not in STYLES:
        return text
    return without_remarks(_TYPE_COMMENT.sub(" ", text), extension)
