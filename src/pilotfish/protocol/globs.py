"""The globs of the Language Server Protocol, as VS Code's engine reads them.

`*` and `?` stay inside a path segment, `**` is any number of whole segments, `{a,b}` groups (nested too), `[a-z]` and
`[!a-z]` are one character of a segment. Nothing is escaped. A slash at the end is ignored.
Paths are matched whole, with `/` between segments, relative to a base or absolute.
Where we differ from VS Code on purpose, the tests list the pattern with the reason.
"""

import os
import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import fields, member
from pilotfish.protocol.uris import path_of

# --- Globs as regular expressions that cannot run away ----------------------------------------------------------------

# A pattern is read into tokens; the choices are expanded into routes, and the routes become one regular expression.
# Rules that keep matching cheap, whatever the pattern:
# - The expansion is bounded by `MAX_TOKENS`; what would grow beyond it is a `BadGlob`.
# - Between two stars of a segment, and between two `**` of a route, the leftmost fit is as good as any other, since
#   what follows takes anything; so it is an atomic group, never tried again.
# - Nothing inside a segment matches a slash, so where a segment ends is certain, and it is an atomic group too.

MAX_PATTERN = 4_096
"""Characters of a pattern: as long as a path may be. The longest seen from a server has some 300."""

MAX_TOKENS = 2_000
"""Tokens of a pattern after expansion: compiles in some 50 ms. The largest seen from a server has some 500."""

MAX_NAMES = 100
"""Segments of a route, `**` apart. No real path is deeper, and each is one level of nesting in a regular expression,
whose compiler recurses."""


class BadGlob(ValueError):
    """The pattern is malformed, too large, or uses what is not supported here."""


class Mark(Enum):
    SLASH = auto()
    STAR = auto()
    ANY_FOLDERS = auto()
    """A whole segment: any number of folders, also none."""


class One(Struct, frozen=True):
    """A regular expression of fixed width inside a segment; `text` where it can match nothing but itself."""

    source: str
    text: str | None = None


class Choice(Struct, frozen=True):
    options: tuple[tuple["Token", ...], ...]


class Stretch(Struct, frozen=True):
    """Segments one after the other; `walk` says that a `**` stands before them: only the first stretch has none."""

    walk: bool
    names: tuple["Segment", ...]


Token = Mark | One | Choice
Piece = Mark | One
Segment = tuple[Piece, ...]
Route = tuple[Stretch, ...]

_WALK = "(?:[^/]*/)*"
_END = r"(?=/|\Z)"


def literal(text: str) -> tuple[One, ...]:
    return tuple(One(re.escape(character), character) for character in text)


def character_class(body: str, *, negated: bool) -> One:
    """The `[…]` around `body`: single characters and ranges. Never a slash."""
    if not body:
        raise BadGlob("a class of nothing")
    items: list[str] = []
    index = 0
    while index < len(body):
        width = 3 if body[index + 1 : index + 2] == "-" and index + 2 < len(body) else 1
        first, last = body[index], body[index + width - 1]
        if first > last:
            raise BadGlob(f"the range {first}-{last} is upside down")
        items.append(f"{re.escape(first)}-{re.escape(last)}")
        index += width
    return One(f"(?!/)[{'^' if negated else ''}{''.join(items)}]")


def routes(tokens: Sequence[Token]) -> tuple[Route, ...]:
    """Every way through the choices; in order, without duplicates."""
    return tuple(dict.fromkeys(map(_route, _expand(tokens))))


def match_source(found: Iterable[Route]) -> str:
    """What a whole path must match. Routes that differ only in the name at their end share the rest."""
    shared: dict[tuple[Route, bool], list[str]] = {}
    for *front, last in found:
        stem = (*front, replace(last, names=last.names[:-1]))
        shared.setdefault((stem, bool(last.names)), []).extend(map(_segment_source, last.names[-1:]))
    return "|".join(_route_source(stem, ends) for (stem, _), ends in shared.items())


def anchor(route: Route) -> str | None:
    """The absolute folder at which a route begins, as far as it is spelled out; None for a relative route."""
    first, *rest = route
    spelled: list[str] = []
    for folder in first.names if rest else first.names[:-1]:
        text = _text(folder)
        if text is None:
            break
        spelled.append(text)
    absolute = spelled and (not spelled[0] or re.fullmatch("[A-Za-z]:", spelled[0]))
    return ("/".join(spelled) or "/") if absolute else None


def _text(segment: Segment) -> str | None:
    texts = [piece.text if isinstance(piece, One) else None for piece in segment]
    return None if None in texts else "".join(filter(None, texts))


def _ending(route: Route) -> str:
    text = ""
    for piece in reversed(route[-1].names[-1] if route[-1].names else ()):
        if not isinstance(piece, One) or piece.text is None:
            break
        text = piece.text + text
    return text


# --- Expansion ----------------------------------------------------------------------------------------------------


def _expand(tokens: Sequence[Token]) -> list[tuple[Piece, ...]]:
    found: list[tuple[Piece, ...]] = [()]
    for token in tokens:
        tails: list[tuple[Piece, ...]]
        if isinstance(token, Choice):
            tails = list(dict.fromkeys(pieces for option in token.options for pieces in _expand(option)))
        else:
            tails = [(token,)]
        # Counted before it is built; an empty sequence counts as well, or `{,a}{,a}{,a}…` would be half free.
        if _size(found) * len(tails) + _size(tails) * len(found) > MAX_TOKENS:
            raise BadGlob(f"more than {MAX_TOKENS} tokens after expansion")
        found = [head + tail for head in found for tail in tails]
    return found


def _size(sequences: Sequence[tuple[Piece, ...]]) -> int:
    return sum(len(sequence) + 1 for sequence in sequences)


def _route(pieces: tuple[Piece, ...]) -> Route:
    stretches = [Stretch(walk=False, names=())]
    segment: Segment = ()
    for piece in (*pieces, Mark.SLASH):
        if piece is not Mark.SLASH:
            segment = (*segment, piece)
            continue
        last = stretches[-1]
        if Mark.ANY_FOLDERS not in segment:
            stretches[-1] = replace(last, names=(*last.names, segment))
        elif len(segment) > 1:
            raise BadGlob("** beside other characters of its segment")
        elif not last.walk or last.names:
            stretches.append(Stretch(walk=True, names=()))
        segment = ()
    if sum(len(stretch.names) for stretch in stretches) > MAX_NAMES:
        raise BadGlob(f"more than {MAX_NAMES} segments")
    return tuple(stretches)


# --- Regular expressions ------------------------------------------------------------------------------------------


def _route_source(stem: Route, ends: Sequence[str]) -> str:
    """`stem`, then one of `ends` if there are any."""
    *front, last = stem
    source = slash = ""
    for stretch in front:
        names = "/".join(map(_segment_source, stretch.names))
        source += f"(?>{slash}{_WALK}?{names}{_END})" if stretch.walk else names
        slash = "/" if stretch.names else slash
    names = [*map(_segment_source, last.names), *([f"(?:{'|'.join(ends)})"] if ends else [])]
    if not last.walk:
        return source + "/".join(names)
    if not names:
        return f"{source}(?:{slash}.*)?"
    # A single name can only be the last segment: the walk there is possessive. Several are found by stepping back.
    possessive = "+" if len(names) == 1 else ""
    return f"{source}{slash}{_WALK}{possessive}{'/'.join(names)}"


def _folder_source(route: Route) -> str:
    first, *rest = route
    names = [*map(_segment_source, first.names if rest else first.names[:-1])]
    source = "" if not rest else "(?:/.*)?" if names else ".*"
    for index in reversed(range(len(names))):
        source = f"(?:{'/' if index else ''}{names[index]}{source})?"
    return source


def _segment_source(segment: Segment) -> str:
    chunks = [""]
    for piece in segment:
        if isinstance(piece, Mark):
            chunks.append("")
        else:
            chunks[-1] += piece.source
    if len(chunks) == 1:
        return chunks[0]
    first, *inner, last = chunks
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in inner if chunk)
    return f"(?>{first}{middle}[^/]*{last}{_END})"


# --- The globs of servers ---------------------------------------------------------------------------------------------

MAX_DEPTH = 16
"""Braces inside braces. Servers send two at most; the bound keeps a hostile pattern off our stack."""


class Glob(Struct, frozen=True):
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
    """What a path must end with to match, as far as it is spelled out: one of these."""
    _paths: re.Pattern[str]
    _folders: re.Pattern[str]
    """What a whole folder must match so that a path below it can match."""

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
    names = (_text(name) for route in found for stretch in route for name in stretch.names)
    return Glob(
        pattern,
        names=frozenset(filter(None, names)),
        anchors=frozenset(None if one is None else AbsPath(one.replace("/", os.sep)) for one in absolute.values()),
        relative=any(route[0].names for route, folder in absolute.items() if folder is None),
        deep=any(len(route) > 1 for route in found),
        _endings=("",) if ignore_case else tuple(dict.fromkeys(map(_ending, found))),
        _paths=re.compile(match_source(found), flags),
        _folders=re.compile("|".join(dict.fromkeys(map(_folder_source, found))), flags),
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
        if self.base is None and self.glob.may_match_below(slashed(folder)):
            return True
        for base in self._bases(roots):
            below = path_below(folder, base)
            if path_below(base, folder) is not None if below is None else self.glob.may_match_below(below):
                return True
        return False

    def _bases(self, roots: Sequence[AbsPath]) -> Sequence[AbsPath]:
        if self.base is not None:
            return (self.base,)
        return roots if self.glob.relative else ()


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
    return path.replace(os.sep, "/")


def path_below(path: AbsPath, base: AbsPath) -> str | None:
    """The rest of `path` after `base`, by whole segments, as globs see it; None when it is elsewhere."""
    folder = base.rstrip(os.sep) + os.sep
    if path == base:
        return ""
    return slashed(path[len(folder) :]) if path.startswith(folder) else None


def _without_last_slash(route: Route) -> Route:
    *front, last = route
    if len(last.names) > (not last.walk) and not last.names[-1]:
        return (*front, replace(last, names=last.names[:-1]))
    return route


class _Reader:
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
