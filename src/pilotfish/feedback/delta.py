"""Which diagnostics an edit introduced, which are older, and which it fixed.

Two snapshots of one file are compared, each a text and its diagnostics. Old places are carried through the edit by a
line map, so an old error that merely moved is not new; every old one accounts for at most one of the new ones, so a
second identical error is.
The comparison goes from the surest sign of sameness to the weakest (`_old_signs`, `_new_signs`), and each sign is used
up before the next is tried.

Without a baseline nothing is claimed: the answer is `NoBaseline`, not "all new" and not "all old".
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar
from zlib import crc32

from msgspec import Struct

from pilotfish.feedback.linemap import LineMap, line_map, lines_of
from pilotfish.model import AbsPath, Diagnostic, Position, Severity

_LINE_NUMBER = re.compile(r"\b([Ll]ines?) \d+")
"""Messages such as "redefinition of `f` from line 3" change when lines move, and mean the same."""

_EXPLANATION = re.compile(r"\n\s*info:.*", re.DOTALL)
"""What is explained below a message may change with other files, and the error is the same."""

_WORD = re.compile(r"\w+|[^\w\s]+")

_LEFT_OUT = re.compile(r"'[^']*\.\.\. \d+ more \.\.\.[^']*'")
"""A type of which TypeScript shows some members and counts the others: which ones, changes with the order of work."""

_LAYOUT = re.compile(r"[\s;,'\"`()]+")
"""What formatters add, take away and exchange."""

_FIX_OFFERED = re.compile(r" \(fix(?:es)? available\)")
"""Said once an index is loaded that knows of one, and the error is the same."""


class CheckedText(Struct, frozen=True):
    """A text and its diagnostics."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


class Delta(Struct, frozen=True):
    """`introduced` and `older` together are all diagnostics after the edit; `fixed` are those that went away.

    `reworded`: of what is older, what says something else than before. The place was broken, and still is.
    """

    introduced: tuple[Diagnostic, ...]
    older: tuple[Diagnostic, ...]
    fixed: tuple[Diagnostic, ...]
    reworded: tuple[Diagnostic, ...] = ()

    def undated(self, wanted: frozenset[Severity]) -> tuple[Diagnostic, ...]:  # noqa: ARG002 -- as of `NoBaseline`
        return ()


class NoBaseline(Struct, frozen=True):
    """The diagnostics after the edit, with nothing fresh from before it to compare them with."""

    diagnostics: tuple[Diagnostic, ...]
    introduced: ClassVar[tuple[Diagnostic, ...]] = ()
    fixed: ClassVar[tuple[Diagnostic, ...]] = ()
    """As far as anybody knows."""

    def undated(self, wanted: frozenset[Severity]) -> tuple[Diagnostic, ...]:
        """What may be older than the edit, or not: a file without such findings needs no past."""
        return tuple(one for one in self.diagnostics if one.severity in wanted)


Comparison = Delta | NoBaseline

Signs = tuple[Hashable | None, ...]


def delta(before: CheckedText | None, after: CheckedText) -> Comparison:
    """All lists come out by place. A file that the edit created has the baseline `CheckedText("", ())`."""
    new = sorted(after.diagnostics, key=place)
    if before is None:
        return NoBaseline(tuple(new))
    if before == after:
        return Delta(introduced=(), older=tuple(new), fixed=())
    old = sorted(before.diagnostics, key=place)
    if not old or not new:
        # Nothing to pair, so no line map is needed.
        return Delta(introduced=tuple(new), older=(), fixed=tuple(old))
    old_lines, new_lines, lines = _lines_of_both(before.text, after.text)
    if lines is None:
        signs = _code_signs(old, old_lines), _code_signs(new, new_lines)
    else:
        signs = [_old_signs(one, lines, old_lines) for one in old], [_new_signs(one, lines, new_lines) for one in new]
    pairs = {
        index: old_index for index, old_index in _paired(*signs).items() if not _is_worse(new[index], old[old_index])
    }
    same_old = set(pairs.values())
    return Delta(
        introduced=tuple(diagnostic for index, diagnostic in enumerate(new) if index not in pairs),
        older=tuple(new[index] for index in sorted(pairs)),
        fixed=tuple(diagnostic for index, diagnostic in enumerate(old) if index not in same_old),
        reworded=tuple(new[index] for index in sorted(pairs) if _headline(new[index]) != _headline(old[pairs[index]])),
    )


def _is_worse(now: Diagnostic, before: Diagnostic) -> bool:
    """Whether settings have made an error of what the same server called a warning: the error was not there before."""
    return now.server == before.server and now.severity < before.severity


@lru_cache(maxsize=4)
def _lines_of_both(old: str, new: str) -> tuple[list[str], list[str], LineMap | None]:
    """Kept, because one edit is compared with the state before it, with what was told, and with what is owed.

    Without a map only the layout has changed, and with it the lines: what is the same is at the same place of the code.
    """
    lines = lines_of(old), lines_of(new)
    if old != new and _code(old) == _code(new):
        return *lines, None
    return *lines, line_map(*lines)


def in_either(first: Comparison, second: Comparison, told: Collection[Diagnostic] = ()) -> Comparison:
    """Two comparisons of one state with different ones before it: new is what is new to either of them.

    `told`: of what is new only to the second, this was told already.
    """
    if isinstance(first, NoBaseline) or isinstance(second, NoBaseline):
        return second if isinstance(first, NoBaseline) else first
    introduced = {*first.introduced, *(one for one in second.introduced if one not in told)}
    return Delta(
        introduced=tuple(sorted(introduced, key=place)),
        older=tuple(one for one in first.older if one not in introduced),
        fixed=second.fixed,
        reworded=tuple(one for one in first.reworded if one not in introduced),
    )


def lasting_words(message: str) -> str:
    """What stays of a message while lines move and what explains it changes, in no order of words.

    TypeScript names the members of a union in the order in which it has met them: `0 | 1 | 2`, later `0 | 2 | 1`.
    """
    words = _LEFT_OUT.sub("''", _FIX_OFFERED.sub("", _EXPLANATION.sub("", _LINE_NUMBER.sub(r"\1", message))))
    return " ".join(sorted(_WORD.findall(words)))


def place(diagnostic: Diagnostic) -> tuple[int, int, Severity, str]:
    """Sort key: line, column, severity, message."""
    start = diagnostic.range.start
    return start.line, start.character, diagnostic.severity, diagnostic.message


def _paired(old: Sequence[Signs], new: Sequence[Signs]) -> dict[int, int]:
    """The indices of the new ones that are paired, each with that of its old one: sign by sign, in their own order."""
    pairs: dict[int, int] = {}
    for number in range(max(map(len, old), default=0)):
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        taken = set(pairs.values())
        for index, signs in enumerate(old):
            if index not in taken and signs[number] is not None:
                waiting[signs[number]].append(index)
        for index, signs in enumerate(new):
            if index not in pairs and waiting.get(signs[number]):
                pairs[index] = waiting[signs[number]].popleft()
    return pairs


def _old_signs(diagnostic: Diagnostic, lines: LineMap, texts: Sequence[str]) -> Signs:
    """Where an old diagnostic should be now, in the order of `_new_signs`."""
    start = diagnostic.range.start
    gap = lines.old_gaps[start.line] if start.line < len(texts) else None
    return _signs(diagnostic, lines.new_line(start.line), gap, texts)


def _new_signs(diagnostic: Diagnostic, lines: LineMap, texts: Sequence[str]) -> Signs:
    """Where a diagnostic is now."""
    start = diagnostic.range.start
    gap = lines.new_gaps[start.line] if start.line < len(texts) else None
    return _signs(diagnostic, start.line, gap, texts)


def _signs(diagnostic: Diagnostic, line: int | None, gap: int | None, texts: Sequence[str]) -> Signs:
    start = diagnostic.range.start
    message = lasting_words(diagnostic.message)
    same = (message, diagnostic.code, diagnostic.source, diagnostic.severity, diagnostic.server)
    headline = _headline(diagnostic)
    return (
        None if line is None else (headline, line, start.character, *same[1:]),
        # The same headline in the same place, of any server: of two servers that agree only one is kept, and not always
        # the same one. What TypeScript explains below it names the member of a union that it has met first.
        None if line is None else (headline, line, start.character),
        None if line is None else (same, line),
        # About the whole file: it stays at the top whatever is inserted there.
        same if start == Position(0, 0) else None,
        # On a line that was moved or indented. A line that stayed does not match an equal line elsewhere.
        None if gap is None else (same, texts[start.line].strip()),
        # On a changed line.
        None if gap is None else (same, gap),
        # Broken in the same way at a place that nobody touched, in other words: what it names has changed once more.
        None if line is None or diagnostic.code is None else (same[1:], line, start.character),
    )


def _headline(diagnostic: Diagnostic) -> str:
    return lasting_words(diagnostic.message.partition("\n")[0])


def _code_signs(diagnostics: Sequence[Diagnostic], texts: Sequence[str]) -> list[Signs]:
    """Of each, the message and how much of the code is before it."""
    above = [0, *accumulate(len(_code(text)) for text in texts)]

    def before(place: Position) -> int:
        if place.line >= len(texts):
            return above[-1]
        return above[place.line] + len(_code(texts[place.line][: place.character]))

    return [((lasting_words(one.message), before(one.range.start)),) for one in diagnostics]


def _code(text: str) -> str:
    return _LAYOUT.sub("", text)


# --- What a server says of its whole project --------------------------------------------------------------------------
# Messages count without their positions, each as often as it is there: an edit of another file moves nothing here.

FileAccount = Counter[int]
"""What is said of one file, as checksums of codes and messages."""

Account = Mapping[AbsPath, FileAccount]
"""A file that is not in it has nothing."""


def said(words: Iterable[tuple[str | None, str]]) -> FileAccount:
    """Of codes and messages."""
    return Counter(crc32(f"{code}\0{lasting_words(message)}".encode(errors="replace")) for code, message in words)


def said_of(diagnostics: Iterable[Diagnostic], server: str) -> FileAccount:
    """What this server says in a list that may be of several."""
    return said((one.code, one.message) for one in diagnostics if one.server == server)


def changed_files(before: Account, now: Account) -> tuple[AbsPath, ...]:
    """The files of which something new is said, then those of which something is not said any more."""
    nothing = FileAccount()
    gained = [path for path, found in now.items() if found - before.get(path, nothing)]
    lost = [path for path, found in before.items() if found - now.get(path, nothing)]
    return tuple(dict.fromkeys((*gained, *lost)))


def since_said(before: FileAccount, diagnostics: Iterable[Diagnostic], server: str) -> Delta:
    """What is new of this server's. What others say is not known to be, so it counts as older."""
    left, introduced, older = Counter(before), list[Diagnostic](), list[Diagnostic]()
    for one in sorted(diagnostics, key=place):
        (key,) = said([(one.code, one.message)])
        if one.server == server and left[key] <= 0:
            introduced.append(one)
        else:
            left[key] -= one.server == server
            older.append(one)
    return Delta(tuple(introduced), tuple(older), ())
