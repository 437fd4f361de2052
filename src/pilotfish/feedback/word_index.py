"""Which files of a project mention which words. Pure: files and their bytes are handed in.

Per file one sorted array of the checksums of its words: 1.4 MB for 2,900 files of Python, and a question costs a
binary search per file. Two words with the same checksum make a file a candidate for nothing: it is then checked in
vain, and never missed.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from unicodedata import normalize
from zlib import crc32

from pilotfish.model import AbsPath

_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][A-Za-z0-9_$\x80-\xff]*")
"""As an identifier of most languages for ASCII; of other letters every run counts as one word."""

MAX_FILE_BYTES = 2 * 1024 * 1024
"""A file that is larger mentions everything: it is a candidate for every question."""

MAX_WORDS = 65_536
"""Different ones in a file; one with more is taken for larger."""

MAX_WORD_BYTES = 4096
"""Of letters that are not ASCII. To bring accents into order takes the square of their number: 15 s for 200,000."""

_STRETCH = re.compile(rb"[\s\S]{1,65536}[A-Za-z0-9_$\x80-\xff]*")
"""What is searched at once: the search lets nothing else run meanwhile."""

MAX_SEARCHED = 20
"""Words that are looked for one by one; more are compared with all words of a file at once."""


class WordIndex:
    def __init__(self) -> None:
        self._words: dict[AbsPath, array[int] | None] = {}

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[AbsPath]:
        return iter(tuple(self._words))

    def __contains__(self, path: object) -> bool:
        return path in self._words

    def copy(self) -> "WordIndex":
        """As it is now, whatever is put into this one later."""
        made = WordIndex()
        made._words = dict(self._words)
        return made

    def put(self, path: AbsPath, content: bytes) -> None:
        self._words[path] = checksums(content)

    def put_words(self, path: AbsPath, words: "array[int] | None") -> None:
        """The same with what `checksums` said, in another thread perhaps."""
        self._words[path] = words

    def remove(self, path: AbsPath) -> None:
        self._words.pop(path, None)

    def mentions(self, words: Iterable[str]) -> dict[AbsPath, int]:
        """The files with any of these words, and with how many of them."""
        return self.holding({checksum(word) for word in words})

    def holding(self, words: Iterable[int]) -> dict[AbsPath, int]:
        """The same by the checksums of words."""
        wanted = frozenset(words)
        few = sorted(wanted) if len(wanted) <= MAX_SEARCHED else None
        found: dict[AbsPath, int] = {}
        for path, known in self._words.items():
            if known is None:
                count = len(wanted)
            elif few is None:
                count = len(wanted.intersection(known))
            else:
                count = sum(_holds(known, one) for one in few)
            if count:
                found[path] = count
        return found

    def holders(self, words: Iterable[int]) -> dict[int, set[AbsPath]]:
        """For each of these checksums, the files that have it. One walk over all words: for many questions at once."""
        wanted = frozenset(words)
        found: dict[int, set[AbsPath]] = {one: set() for one in wanted}
        for path, known in self._words.items() if wanted else ():
            for one in wanted if known is None else wanted.intersection(known):
                found[one].add(path)
        return found


def checksum(word: str) -> int:
    return crc32(word.encode(errors="surrogateescape"))


def checksums(content: bytes) -> "array[int] | None":
    """The distinct words of a text, each as its checksum, in order; None where these are too many or too long."""
    if len(content) > MAX_FILE_BYTES:
        return None
    found = set[bytes]()
    for part in _STRETCH.finditer(content):
        found.update(_WORD.findall(part[0]))
        if len(found) > MAX_WORDS:
            # Everybody waits while a set of many more is made larger, or is given back.
            return None
    others = [word for word in found if not word.isascii()]
    if max(map(len, others), default=0) > MAX_WORD_BYTES:
        return None
    for word in others:
        # A name may be spelt in several ways, and a language may take them for the same.
        normal = normalize("NFKC", word.decode(errors="surrogateescape"))
        found.update(_WORD.findall(normal.encode(errors="surrogateescape")))
    return array("I", sorted({crc32(word) for word in found}))


def _holds(known: "array[int]", wanted: int) -> bool:
    place = bisect_left(known, wanted)
    return place < len(known) and known[place] == wanted
