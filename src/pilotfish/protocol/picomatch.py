r"""The globs of `trustedProjectRoots` and of root markers: picomatch's dialect, with its option `dot: true`.

They decide what is trusted, so the rule is: never match what picomatch would not.
What picomatch reads in a surprising way (`(a)` is a regular expression to it, `\d` a digit, `{01..10}` one character),
and what has no use in a path, is a `BadGlob` here; a bad glob trusts nothing.
Paths are what `realpath` gives, with `/` between segments. One that has an empty, `.` or `..` segment or a line break,
and the root of the file system, match nothing, not even a negated pattern.
JavaScript counts in UTF-16 units, so a `?` is one unit.
"""

import re

from msgspec import Struct

from pilotfish.protocol.glob_regex import (
    MAX_PATTERN,
    BadGlob,
    Choice,
    Mark,
    One,
    Span,
    Token,
    character_class,
    literal,
    match_source,
    routes,
)

MAX_DEPTH = 4
"""Braces inside braces: more than that is no list of folders."""

_AWRY = re.compile(r"[\n\r\u2028\u2029]|/(?=/|\Z)|(?:\A|/)\.{1,2}(?=/|\Z)|\A\Z|[^/]{256}")
"""What a real path never has. No file system has longer names, and `MAX_SPANS` counts on it."""

_REWRITTEN = {"*.*": "*.?*", "**/*.*": "**/*.?*"}
"""Patterns that picomatch treats apart: here, and nowhere else, something must follow the dot."""


class PathGlob(Struct, frozen=True):
    """A compiled pattern."""

    pattern: str
    _paths: re.Pattern[str]
    _negated: bool

    def matches(self, path: str) -> bool:
        if _AWRY.search(path):
            return False
        return path == self.pattern or (self._paths.fullmatch(_units(path)) is None) == self._negated


def path_glob(pattern: str, *, ignore_case: bool = False) -> PathGlob:
    """Compile `pattern`, or raise `BadGlob`."""
    text = pattern.removeprefix("./")
    if not text or len(text) > MAX_PATTERN:
        raise BadGlob(f"a pattern has 1 to {MAX_PATTERN} characters")
    negated = text.startswith("!") and not text.startswith("!(")
    text = _units(_REWRITTEN.get(text, text[negated:]))
    _refuse_combinations(text, negated=negated, ignore_case=ignore_case)
    source = match_source(routes(_Reader(text).tokens()))
    flags = re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)
    return PathGlob(pattern, re.compile(source, flags), negated)


def _refuse_combinations(text: str, *, negated: bool, ignore_case: bool) -> None:
    if odd := _ODD.search(text):
        raise BadGlob(f"{odd[0]!r} is not supported in {text!r}")
    if negated and re.search(r"[({]|\A!", text):
        # Where groups differ from picomatch they match less; negated, that would be more.
        raise BadGlob(f"a leading ! together with a group or another ! in {text!r}")
    if "!(" in text and ".." in text:
        # To picomatch a range turns every dot of the pattern into any character.
        raise BadGlob(f"a negated group together with a range in {text!r}")
    if ignore_case and not text.isascii() and (negated or re.search(r"!\(|\[\^", text)):
        # We fold ASCII letters, JavaScript all: harmless in a positive pattern, which matches less, but not in these.
        raise BadGlob(f"a negation with letters beyond ASCII, ignoring case, in {text!r}")


def _units(text: str) -> str:
    """`text` with surrogate pairs for what is beyond 16 bits, as JavaScript has it."""
    return _ASTRAL.sub(lambda found: _surrogates(ord(found[0]) - 0x10000), text)


def _surrogates(offset: int) -> str:
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


_ASTRAL = re.compile(r"[\U00010000-\U0010FFFF]")
_ODD = re.compile(r'["\0]|\A\./|\$\$|\^\^|\+\+')
_ENDS = {"": ")|]}", "{": ",}"}
_WALK = re.compile(r"\*\*(?:/\*\*)*(?=/|\Z)")
_BRACKETS = re.compile(r"\[(?P<not>\^?)(?P<body>[^]\[\\/^:]+)\]")
_RANGE = re.compile(r"(.)-(.)")
_REGEX_CHARACTERS = re.compile(r"[-*+?.^${}(|)]")
_BRACE_RANGE = re.compile(r"\{(?:([0-9])\.\.([0-9])|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))\}")
_SOMETHING = One("(?=.)")
_NOT_DOTS = One(r"(?!\.?(?:/|\Z))")


class _Reader:
    """Reads a pattern from left to right; `open` names the groups around the current place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open = ""

    def tokens(self) -> tuple[Token, ...]:
        found = self.sequence()
        if self.at < len(self.text):
            raise self.bad(self.peek())
        return found

    def bad(self, part: str) -> BadGlob:
        return BadGlob(f"{part!r} is not supported, at character {self.at} of {self.text!r}")

    def peek(self, offset: int = 0) -> str:
        return self.text[self.at + offset : self.at + offset + 1] if self.at + offset >= 0 else ""

    def sequence(self) -> tuple[Token, ...]:
        """Up to the end, or up to what separates or ends the innermost group."""
        found: list[Token] = []
        while (character := self.peek()) and character not in _ENDS.get(self.open[-1:], "|)"):
            if self.peek(1) == "(" and character in "?*+@!":
                found.append(self.extended(character))
            elif character in "()|]}":
                raise self.bad(character)
            else:
                found.extend(_READERS.get(character, _Reader.plain)(self, found))
        return tuple(found)

    def plain(self, _found: list[Token]) -> tuple[Token, ...]:
        self.at += 1
        return literal(self.peek(-1))

    def escape(self, found: list[Token]) -> tuple[Token, ...]:
        self.at += 1
        escaped = self.peek()
        if not escaped or escaped.isalnum() or not escaped.isascii() or escaped in "\\_":
            raise self.bad("\\" + escaped)
        read = {"/": self.slash, ".": self.dot}.get(escaped, self.plain)
        return read(found)

    def slash(self, _found: list[Token]) -> tuple[Token, ...]:
        if self.open.strip("{"):
            raise self.bad("/")
        self.at += 1
        return (Mark.SLASH,)

    def dot(self, found: list[Token]) -> tuple[Token, ...]:
        if "{" in self.open and self.text.startswith((".", "\\."), self.at + 1):
            raise self.bad("..")
        return self.plain(found)

    def plus(self, found: list[Token]) -> tuple[Token, ...]:
        if self.peek(-1) in ("{", "}", "]", ")") or self.open.strip("{"):
            raise self.bad("+")
        return self.plain(found)

    def question(self, _found: list[Token]) -> tuple[Token, ...]:
        if self.peek(-1) in ("(", ")"):
            raise self.bad("?")
        self.at += 1
        return (One("[^/]"),)

    def stars(self, found: list[Token]) -> tuple[Token, ...]:
        leads = found[-1] is Mark.SLASH if found else not self.open
        if self.peek(1) == "*":
            return (self.folders(found, leads=leads),)
        after_dot = self.open and self.peek(-1) == "."
        self.at += 1
        if after_dot:
            return (_NOT_DOTS, Mark.STAR)
        return (_SOMETHING, Mark.STAR) if leads else (Mark.STAR,)

    def folders(self, found: list[Token], *, leads: bool) -> Mark:
        walk = _WALK.match(self.text, self.at)
        if walk is None or not leads or self.open:
            raise self.bad("**")
        self.at = walk.end()
        # `**/` after the leading slash is one folder or more, and so is `/**` at the end after a star.
        some = found == [Mark.SLASH] if self.peek() else found[-2:-1] == [Mark.STAR]
        return Mark.SOME_FOLDERS if some else Mark.ANY_FOLDERS

    def brackets(self, _found: list[Token]) -> tuple[Token, ...]:
        bracket = _BRACKETS.match(self.text, self.at)
        if bracket is None or any(first <= "/" <= last for first, last in _RANGE.findall(bracket["body"])):
            raise self.bad("[")
        self.at = bracket.end()
        one = character_class(bracket["body"], negated=bool(bracket["not"]))
        # Without a range or the like picomatch takes the brackets for literal ones as well.
        return (one,) if _REGEX_CHARACTERS.search(bracket[0][1:-1]) else (Choice(((one,), literal(bracket[0]))),)

    def braces(self, _found: list[Token]) -> tuple[Token, ...]:
        if ends := _BRACE_RANGE.match(self.text, self.at):
            self.at = ends.end()
            return (character_class("-".join(sorted(filter(None, ends.groups()))), negated=False),)
        options = self.options("{", ",", "}")
        if len(options) == 1:
            raise self.bad("{")
        return (Choice(options),)

    def extended(self, kind: str) -> Token:
        self.at += 1
        start = self.at
        options = self.options(kind, "|", ")")
        if kind in "@?":
            return Choice(options if kind == "@" else (*options, ()))
        if kind == "!":
            return self.negation(options, self.text[start : self.at])
        return Span(f"(?:{self.repetition(options)}){kind}")

    def options(self, kind: str, separator: str, end: str) -> tuple[tuple[Token, ...], ...]:
        if len(self.open) == MAX_DEPTH or self.open.strip("{"):
            raise self.bad(kind)
        self.open += kind
        options: list[tuple[Token, ...]] = []
        while not options or self.peek() == separator:
            self.at += 1
            options.append(self.sequence())
        if self.peek() != end:
            raise self.bad(kind)
        self.at += 1
        self.open = self.open[:-1]
        return tuple(options)

    def repetition(self, options: tuple[tuple[Token, ...], ...]) -> str:
        """Options of which one at most fits at each place, so that there is one way to repeat them."""
        ones = [[token for token in option if isinstance(token, One) and token.text != " "] for option in options]
        starts = {option[0].text and option[0].text.lower() for option in ones if option}
        complete = all(len(kept) == len(option) for kept, option in zip(ones, options, strict=True))
        if not complete or len(starts) < len(options) or (None in starts and len(options) > 1):
            raise self.bad("a repeated group like this")
        return "|".join("".join(one.source for one in option) for option in ones)

    def negation(self, options: tuple[tuple[Token, ...], ...], inner: str) -> Token:
        """picomatch looks ahead: at the end of the pattern for a whole name, elsewhere for the start of one."""
        rest = self.text[self.at :]
        end = "" if rest else r"\Z"
        if "*" in inner and re.fullmatch(r"\.[^\\/.]+", rest):
            end = re.escape(rest)
        if self.open or "\\" in inner or (end not in ("", r"\Z") and not re.fullmatch(r"\.[\w-]+", rest)):
            raise self.bad("a negated group like this")
        return Span(f"(?!(?:{'|'.join(map(self.alternative, options))}){end})[^/]*")

    def alternative(self, option: tuple[Token, ...]) -> str:
        sources = [token.source if isinstance(token, One) else "[^/]*" for token in option]
        if option.count(Mark.STAR) > 1 or any(isinstance(token, Choice) for token in option):
            raise self.bad("several stars, or a class, in a negated group")
        return "".join(sources)


_READERS = {
    "\\": _Reader.escape,
    "/": _Reader.slash,
    ".": _Reader.dot,
    "+": _Reader.plus,
    "?": _Reader.question,
    "*": _Reader.stars,
    "[": _Reader.brackets,
    "{": _Reader.braces,
}
