"""Snippets as plain text: what stands in the file when every default is accepted.

Tab stops vanish, placeholders leave their default, choices their first option, a tab stop that is named again repeats
the default it was given. We define no variables, so a variable leaves its default, or else its name.
What has no plain form (a transformation, a placeholder without end) is `Malformed`: an edit that is refused harms
nobody, half a snippet in a source file does.
"""

import re

from pilotfish.protocol.codec import Malformed

MAX_LENGTH = 1 << 14
"""Characters. Snippets are written by people and stay far below; the bound keeps repeated defaults from multiplying
into more than some ten megabytes."""

_TOKEN = re.compile(
    r"""
      \\ (?P<escaped> [\\$}] )
    | \$ (?P<stop> \d+ )
    | \$\{ (?P<braced_stop> \d+ ) \}
    | \$\{ (?P<choice> \d+ ) \| (?P<first> (?: \\. | [^\\|,] )* ) (?: , (?: \\. | [^\\|] )* )? \|\}
    | \$\{ (?P<opened> \d+ | [A-Za-z_]\w* ) :
    | \$\{ (?: \d+ | [A-Za-z_]\w* ) (?P<transformed> / )
    | \$ (?P<variable> [A-Za-z_]\w* )
    | \$\{ (?P<braced_variable> [A-Za-z_]\w* ) \}
    | (?P<closed> \} )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPED_IN_CHOICE = re.compile(r"\\([\\$},|])")


def plain_text(snippet: str) -> str:
    """The text that `snippet` stands for, or `Malformed`."""
    if len(snippet) > MAX_LENGTH:
        raise Malformed(f"a snippet has more than {MAX_LENGTH} characters")
    expansion = _Expansion()
    end = 0
    for token in _TOKEN.finditer(snippet):
        expansion.add_text(snippet[end : token.start()])
        expansion.add_token(token)
        end = token.end()
    expansion.add_text(snippet[end:])
    return expansion.finished()


class _Expansion:
    """The text so far. A piece is (text, None), or ("", number) where a tab stop repeats its default."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, str | None]] = []
        self._open: list[tuple[str, int]] = []
        self._defaults: dict[str, str] = {}

    def add_text(self, text: str) -> None:
        self._pieces.append((text, None))

    def add_token(self, token: re.Match[str]) -> None:
        if stop := token["stop"] or token["braced_stop"]:
            self._pieces.append(("", stop))
        elif choice := token["choice"]:
            first = _ESCAPED_IN_CHOICE.sub(r"\1", token["first"])
            self._defaults.setdefault(choice, first)
            self.add_text(first)
        elif opened := token["opened"]:
            self._open.append((opened, len(self._pieces)))
        elif token["transformed"]:
            raise Malformed("a snippet with a transformation has no plain text")
        elif token["closed"] and self._open:
            self._close()
        else:
            self.add_text(token["escaped"] or token["variable"] or token["braced_variable"] or token["closed"])

    def finished(self) -> str:
        if self._open:
            raise Malformed("a placeholder of a snippet has no end")
        return "".join(text if stop is None else self._defaults.get(stop, "") for text, stop in self._pieces)

    def _close(self) -> None:
        number, start = self._open.pop()
        # Repeats inside a default are left out of it: otherwise defaults made of defaults would grow without bound.
        self._defaults.setdefault(number, "".join(text for text, _ in self._pieces[start:]))
