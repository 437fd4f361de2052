"""The words of the code of files, without comments and documentation: who only speaks of a name does not use it."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable

import anyio.to_thread
from msgspec import Struct

from pilotfish.feedback.changed_names import STYLES, WORD, without_remarks
from pilotfish.feedback.outside_names import outside_names
from pilotfish.feedback.visible_names import PYTHON
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath
from pilotfish.service.recent import Recent

MAX_KEPT = 2_000
"""Files whose words are kept, some 10 KB for each."""

TYPED_BY_COMMENTS = (".js", ".jsx", ".mjs", ".cjs")
"""Files whose comments a checker reads as types."""

_TYPE_COMMENT = re.compile(r"#(?=\s*type:)")


class _Words(Struct, frozen=True):
    every: frozenset[str]
    outside: frozenset[str]
    """Those that may mean something of another file."""


class _Read(Struct, frozen=True):
    look: tuple[int, int, int]
    words: _Words


class CodeWords:
    def __init__(self) -> None:
        self._kept: Recent[AbsPath, _Read] = Recent(MAX_KEPT)
        self._known: Recent[bytes, _Words] = Recent(MAX_KEPT)
        """By text: a file often comes back to an earlier one."""

    async def using(
        self, paths: Collection[AbsPath], names: Collection[str], *, from_outside: bool = False
    ) -> list[AbsPath]:
        """Of these files, those with any of the names in their code; also those that cannot be read.

        `from_outside`: the names are another file's, so that a variable of the same name is not meant.
        """
        if not paths:
            return []
        wanted = frozenset(names)

        def is_used(words: _Words) -> bool:
            return not wanted.isdisjoint(words.outside if from_outside else words.every)

        return await anyio.to_thread.run_sync(self._using, paths, is_used)

    def _using(self, paths: Iterable[AbsPath], is_used: Callable[[_Words], bool]) -> list[AbsPath]:
        """Blocking: for a thread."""
        return [path for path in paths if (words := self._words(path)) is None or is_used(words)]

    def _words(self, path: AbsPath) -> _Words | None:
        try:
            status = os.stat(path)
            look, known = (status.st_ino, status.st_size, status.st_mtime_ns), self._kept.get(path)
            if known is not None and known.look == look:
                return known.words
            if status.st_size > MAX_FILE_BYTES:
                return None
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            return None
        words = self._words_of(content, os.path.splitext(path)[1])
        self._kept.put(path, _Read(look, words))
        return words

    def _words_of(self, content: bytes, extension: str) -> _Words:
        key = hashlib.blake2b(content, digest_size=16, person=extension.encode()[:16]).digest()
        known = self._known.get(key)
        if known is None:
            text = content.decode(errors="replace")
            every = frozenset(found[0] for found in WORD.finditer(_code(text, extension)))
            outside = outside_names(text) if extension in PYTHON else None
            known = _Words(every, every if outside is None else every & outside)
            self._known.put(key, known)
        return known


def _code(text: str, extension: str) -> str:
    if extension in TYPED_BY_COMMENTS or extension not in STYLES:
        return text
    return without_remarks(_TYPE_COMMENT.sub(" ", text), extension)
