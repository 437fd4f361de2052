"""Which symbols of an outline, or of the workspace, are worth reading.

By default everything but what is local to a function: parameters and variables are most of what some servers list.
`depth` keeps that many levels, `kinds` only these kinds, and `all` among them keeps locals too.
"""

import re
from collections.abc import Sequence

from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.operations.outlines.enclosing import FUNCTIONS
from pilotfish.operations.results import ServerResult
from pilotfish.operations.symbols import KINDS, FoundSymbol, kind_word

ALL = "all"

_LOCAL = frozenset({"variable", "constant", "property", "field", "type-parameter", "symbol"})
"""Kinds that mean nothing outside the function in which they stand."""

_SEPARATOR = re.compile(r"[,\s]+")


def kinds_of(question: Question) -> frozenset[str] | None:
    """The kinds that are asked for; None for all but locals. Raises `Refused` for one that does not exist."""
    words = frozenset(word.lower() for word in _SEPARATOR.split(question.kinds or "") if word)
    unknown = sorted(words - set(KINDS) - {ALL})
    if unknown:
        known = f"One of: {', '.join(KINDS[1:])}; or all."
        raise Refused(Code.INVALID_INPUT, f"There is no kind {unknown[0]}.", hint=known)
    return words or None


def outline(question: Question, found: Sequence[ServerResult]) -> Sequence[ServerResult]:
    """The symbols of a file that a question asks for; parents stand before their children."""
    kinds, around, kept = kinds_of(question), list[FoundSymbol](), list[ServerResult]()
    for symbol in found:
        if not isinstance(symbol, FoundSymbol):
            continue
        del around[symbol.depth :]
        kind = kind_word(symbol.kind)
        is_local = kind in _LOCAL and any(kind_word(outer.kind) in FUNCTIONS for outer in around)
        around.append(symbol)
        is_asked_for = not is_local if kinds is None else ALL in kinds or kind in kinds
        if is_asked_for and (question.depth is None or symbol.depth < question.depth):
            kept.append(symbol)
    return kept


def of_kinds(question: Question, found: Sequence[ServerResult]) -> Sequence[ServerResult]:
    """The symbols of the workspace that a question asks for."""
    kinds = kinds_of(question)
    if kinds is None or ALL in kinds:
        return found
    return [symbol for symbol in found if isinstance(symbol, FoundSymbol) and kind_word(symbol.kind) in kinds]
