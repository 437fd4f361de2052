"""Globs as regular expressions that cannot run away.

`globs` reads a pattern into tokens; here the choices are expanded into routes, and the routes become one regular
expression.
Rules that keep matching cheap, whatever the pattern:
- The expansion is bounded by `MAX_TOKENS`; what would grow beyond it is a `BadGlob`.
- Between two stars of a segment, and between two `**` of a route, the leftmost fit is as good as any other, since what
  follows takes anything; so it is an atomic group, never tried again.
- Nothing inside a segment matches a slash, so where a segment ends is certain, and it is an atomic group too.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

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
    """The tokens without content."""

    SLASH = auto()
    STAR = auto()
    ANY_FOLDERS = auto()
    """A whole segment: any number of folders, also none."""


class One(Struct, frozen=True):
    """A regular expression of fixed width inside a segment; `text` where it can match nothing but itself."""

    source: str
    text: str | None = None


class Choice(Struct, frozen=True):
    """One of several sequences."""

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
    """`text`, character by character."""
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


def folder_source(found: Iterable[Route]) -> str:
    """What a whole folder must match so that a path below it can match."""
    return "|".join(dict.fromkeys(map(_folder_source, found)))


def literal_names(found: Iterable[Route]) -> frozenset[str]:
    """The segments that are spelled out."""
    texts = (_text(name) for route in found for stretch in route for name in stretch.names)
    return frozenset(filter(None, texts))


def endings(found: Iterable[Route]) -> tuple[str, ...]:
    """What a path must end with to match, as far as it is spelled out: one of these."""
    return tuple(dict.fromkeys(map(_ending, found)))


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
        tails = _expansions(token) if isinstance(token, Choice) else [(token,)]
        # Counted before it is built; an empty sequence counts as well, or `{,a}{,a}{,a}…` would be half free.
        if _size(found) * len(tails) + _size(tails) * len(found) > MAX_TOKENS:
            raise BadGlob(f"more than {MAX_TOKENS} tokens after expansion")
        found = [head + tail for head in found for tail in tails]
    return found


def _expansions(choice: Choice) -> list[tuple[Piece, ...]]:
    return list(dict.fromkeys(pieces for option in choice.options for pieces in _expand(option)))


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
    return source + (_last_source(slash, names) if last.walk else "/".join(names))


def _last_source(slash: str, names: Sequence[str]) -> str:
    if not names:
        return f"(?:{slash}.*)?"
    # A single name can only be the last segment: the walk there is possessive. Several are found by stepping back.
    possessive = "+" if len(names) == 1 else ""
    return f"{slash}{_WALK}{possessive}{'/'.join(names)}"


def _folder_source(route: Route) -> str:
    first, *rest = route
    names = [*map(_segment_source, first.names)]
    source = ""
    if rest:
        source = "(?:/.*)?" if names else ".*"
    else:
        names.pop()
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
