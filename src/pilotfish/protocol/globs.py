"""The globs of the Language Server Protocol, as VS Code's engine reads them.

`*` and `?` stay inside a path segment, `**` is any number of whole segments, `{a,b}` groups (nested too), `[a-z]` and
`[!a-z]` are one character of a segment. Nothing is escaped. A slash at the end is ignored.
Paths are matched whole, with `/` between segments, relative to a base or absolute.
Where we differ from VS Code on purpose, the tests list the pattern with the reason.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import fields, member
from pilotfish.protocol.glob_regex import (
    MAX_PATTERN,
    BadGlob,
    Choice,
    Mark,
    One,
    Route,
    Token,
    anchor,
    character_class,
    endings,
    folder_source,
    literal,
    literal_names,
    match_source,
    routes,
)
from pilotfish.protocol.uris import path_of

MAX_DEPTH = 16
"""Braces inside braces. Servers send two at most; the bound keeps a hostile pattern off our stack."""


class Glob(Struct, frozen=True):
    """A compiled pattern."""

    pattern: str
    names: frozenset[str]
    """The segments that the pattern spells out."""
    anchors: frozenset[AbsPath | None]
    """Where it begins: absolute folders, as far as they are spelled out; None for wherever it is applied."""
    relative: bool
    """Whether it can begin with a name: then it is meant for paths relative to a folder."""
    deep: bool
    """Whether it has `**`."""
    _endings: tuple[str, ...]
    _paths: re.Pattern[str]
    _folders: re.Pattern[str]

    def matches(self, path: str) -> bool:
        # Most paths that do not match end otherwise: this is ten times as fast as the regular expression.
        return path.endswith(self._endings) and self._paths.fullmatch(path) is not None

    def may_match_below(self, folder: str) -> bool:
        """Whether a path below `folder` can match; the base itself is the empty string."""
        return self._folders.fullmatch(folder.rstrip("/")) is not None


@lru_cache(maxsize=1_024)  # Servers register the same patterns again and again.
def lsp_glob(pattern: str, *, ignore_case: bool = False) -> Glob:
    """Compile `pattern`, or raise `BadGlob`."""
    text = pattern.strip()
    if not text or len(text) > MAX_PATTERN:
        raise BadGlob(f"a pattern has 1 to {MAX_PATTERN} characters")
    found = tuple(map(_without_last_slash, routes(_Reader(text).tokens())))
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG)
    absolute = {route: anchor(route) for route in found}
    return Glob(
        pattern,
        names=literal_names(found),
        anchors=frozenset(_absolute(folder) for folder in absolute.values()),
        relative=any(route[0].names for route, folder in absolute.items() if folder is None),
        deep=any(len(route) > 1 for route in found),
        _endings=("",) if ignore_case else endings(found),
        _paths=re.compile(match_source(found), flags),
        _folders=re.compile(folder_source(found), flags),
    )


class FileGlob(Struct, frozen=True):
    """A glob for absolute paths, or for paths relative to `base`."""

    glob: Glob
    base: AbsPath | None = None

    def matches(self, path: AbsPath, roots: Sequence[AbsPath] = ()) -> bool:
        """Whether `path` matches. A glob without a base may also be meant relative to one of `roots`."""
        if self.base is None and self.glob.matches(slashed(path)):
            return True
        return any(
            self.glob.matches(below) for base in self._bases(roots) if (below := path_below(path, base)) is not None
        )

    def may_match_below(self, folder: AbsPath, roots: Sequence[AbsPath] = ()) -> bool:
        """Whether a path below `folder` can match."""
        if self.base is None and self.glob.may_match_below(slashed(folder)):
            return True
        return any(self._reaches(folder, base) for base in self._bases(roots))

    def _bases(self, roots: Sequence[AbsPath]) -> Sequence[AbsPath]:
        if self.base is not None:
            return (self.base,)
        return roots if self.glob.relative else ()

    def _reaches(self, folder: AbsPath, base: AbsPath) -> bool:
        below = path_below(folder, base)
        return path_below(base, folder) is not None if below is None else self.glob.may_match_below(below)


def file_glob(value: object, *, ignore_case: bool = False) -> FileGlob:
    """Read a pattern or a `RelativePattern`, whose base is a URI or a workspace folder; raises `BadGlob`."""
    if isinstance(value, str):
        return FileGlob(lsp_glob(value, ignore_case=ignore_case))
    pattern, base = member(value, "pattern"), member(value, "baseUri")
    uri = fields(base).get("uri", base)
    folder = path_of(uri) if isinstance(uri, str) else None
    if not isinstance(pattern, str) or folder is None:
        raise BadGlob("neither a pattern nor a pattern relative to a folder")
    return FileGlob(lsp_glob(pattern, ignore_case=ignore_case), folder)


def slashed(path: str) -> str:
    """`path` as globs see it."""
    return path.replace(os.sep, "/")


def path_below(path: AbsPath, base: AbsPath) -> str | None:
    """The rest of `path` after `base`, by whole segments, as globs see it; None when it is elsewhere."""
    folder = base.rstrip(os.sep) + os.sep
    if path == base:
        return ""
    return slashed(path[len(folder) :]) if path.startswith(folder) else None


def _absolute(folder: str | None) -> AbsPath | None:
    return None if folder is None else AbsPath(folder.replace("/", os.sep))


def _without_last_slash(route: Route) -> Route:
    *front, last = route
    if len(last.names) > (not last.walk) and not last.names[-1]:
        return (*front, replace(last, names=last.names[:-1]))
    return route


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tokens(self) -> tuple[Token, ...]:
        found = self._sequence(depth=0)
        if self._at < len(self._text):
            raise BadGlob(f"a }} without its {{ in {self._text}")
        return found

    def _sequence(self, depth: int) -> tuple[Token, ...]:
        """Up to the end or, inside braces, up to the `,` or `}` that ends it."""
        found: list[Token] = []
        while (character := self._peek()) and not (character == "}" or (depth and character == ",")):
            if character == "*":
                found.append(self._stars(found))
            elif character == "{":
                found.append(self._braces(depth + 1))
            elif character == "[":
                found.append(self._brackets())
            else:
                self._at += 1
                found.extend(_SINGLE.get(character) or literal(character))
        return tuple(found)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _stars(self, before: list[Token]) -> Token:
        start = self._at
        while self._peek() == "*":
            self._at += 1
        alone = not before or before[-1] is Mark.SLASH
        ends = self._peek() in ("", "/", ",", "}")
        return Mark.ANY_FOLDERS if self._at - start == 2 and alone and ends else Mark.STAR

    def _braces(self, depth: int) -> Token:
        if depth > MAX_DEPTH:
            raise BadGlob(f"braces more than {MAX_DEPTH} deep")
        options: list[tuple[Token, ...]] = []
        while self._peek() != "}":
            self._at += 1
            options.append(self._sequence(depth))
            if not self._peek():
                raise BadGlob(f"a {{ without its }} in {self._text}")
        self._at += 1
        return Choice(tuple(options))

    def _brackets(self) -> Token:
        found = _BRACKETS.match(self._text, self._at)
        if found is None:
            raise BadGlob(f"a [ without its ] in {self._text}")
        self._at = found.end()
        return character_class(found["body"].replace("/", ""), negated=bool(found["not"]))


_SINGLE: dict[str, tuple[Token, ...]] = {"/": (Mark.SLASH,), "?": (One("[^/]"),)}
_BRACKETS = re.compile(r"\[(?P<not>[!^]?+)(?P<body>\]?[^\]]+|\])\]")
