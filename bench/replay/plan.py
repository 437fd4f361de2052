"""A real change as the edits of an agent, in three orders, and what the world does around them. Pure.

- `diff`: the files as git lists them.
- `callee`: the files first whose changed lines define what the others' changed lines mention.
- `caller`: those last.

A file that is moved is moved by a command first and edited after that.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from told.edits import MAKERS, Change, Edit, Texts, Tool
from told.makers import Source

from replay.history import RealChange, uses

ORDERS = ("diff", "callee", "caller")
DISORDERS = ("stash", "switch", "format", "stash-outside", "switch-outside", "second")
"""What happens in the middle of a change, one of them each time; `second` is another conversation, at its begin."""

REWRITTEN = 0.5
"""A file that keeps less of its lines is written as a whole."""


@dataclass(frozen=True)
class Step:
    """One thing that happens; `edits` are made at once."""

    kind: Literal["edit", "harmless", "disorder"]
    edits: tuple[Edit, ...] = ()
    what: str = ""


def ordered(change: RealChange, order: str) -> list[Change]:
    """The changes of single files, in this order; a file that moves is where its new path is."""
    gone = set(change.moves)
    several = [one for one in change.changes if one.path not in gone]
    if order == "diff":
        return several
    counted = uses(several)

    def rank(one: Change) -> int:
        """How much it uses of the others, less what they use of it."""
        return sum(number * ((path == one.path) - (other == one.path)) for (path, other), number in counted.items())

    return sorted(several, key=rank, reverse=order == "caller")


def edits(change: RealChange, order: str) -> list[Edit]:
    """What the agent does, one call of a tool after the other."""
    before = {one.path: one.before for one in change.changes}
    came_from = {new: old for old, new in change.moves.items()}
    found = list[Edit]()

    def add(tool: Tool, change: Change, *more: Change) -> None:
        kind = "move" if more else "delete" if change.after is None else tool
        found.append(Edit(len(found) + 1, kind, "others", tool, (change, *more), change.path))

    for one in ordered(change, order):
        text = one.before
        if one.path in came_from:
            text = before[came_from[one.path]]
            add("patch", Change(came_from[one.path], text, None), Change(one.path, None, text))
        if one.after is None:
            add("patch", Change(one.path, text, None))
        elif text != one.after:
            add(tool_for(text, one.after, len(found)), Change(one.path, text, one.after))
    return found


def tool_for(before: str | None, after: str, number: int) -> Tool:
    """What an agent would take: `Write` for what is new or mostly new, else an edit of one or of several places."""
    if not before or not after:
        return "write"
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    if matcher.ratio() < REWRITTEN:
        return "write"
    return "multiedit" if number % 2 and len(list(matcher.get_grouped_opcodes(3))) > 1 else "edit"


def steps(change: RealChange, order: str, texts: Texts, language: str) -> list[Step]:
    """The edits, n at a time in `ORDER*n`, and what the world does between them: the same for every order."""
    chance = random.Random(change.name.partition(" ")[2])
    disorder = chance.choice(DISORDERS)
    touched = {one.path for one in change.changes} | set(change.moves.values())
    free = sorted(path for path, text in texts.items() if path not in touched and text.count("\n") > 5)
    chance.shuffle(free)
    order, _, several = order.partition("*")
    made, size = edits(change, order), int(several or 1)
    found = [Step("edit", tuple(made[start : start + size])) for start in range(0, len(made), size)]
    half = (len(found) + 1) // 2
    harmless = [step for step in (quiet(texts, language, path, chance) for path in free[:8]) if step is not None]
    if disorder == "second":
        broken = broke(texts, language, free[:1:-1], chance)
        middle = [] if broken is None else [Step("disorder", (broken,), "second")]
        return [*harmless[:1], *middle, *found[:half], *harmless[1:2], *found[half:]]
    middle = [Step("disorder", what=f"format {free[-1]}" if disorder == "format" and free else disorder)]
    return [*harmless[:1], *found[:half], *middle, *harmless[1:2], *found[half:]]


def quiet(texts: Texts, language: str, path: str, chance: random.Random) -> Step | None:
    """A comment or a blank line in a file that the change does not concern."""
    kind = chance.choice(("comment", "blank-line"))
    edit = _made(texts, language, path, kind, chance)
    return None if edit is None else Step("harmless", (edit,), kind)


def broke(texts: Texts, language: str, paths: Sequence[str], chance: random.Random) -> Edit | None:
    """What the second conversation does: an error in a file of its own."""
    for path in paths:
        for kind in ("undefined-name", "wrong-argument", "wrong-type"):
            if (edit := _made(texts, language, path, kind, chance)) is not None:
                return edit
    return None


def _made(texts: Texts, language: str, path: str, kind: str, chance: random.Random) -> Edit | None:
    made = MAKERS[language][kind](Source(path, texts[path], lambda _name: True), chance)
    if made is None or made[0] == texts[path]:
        return None
    return Edit(0, kind, "harmless", "edit", (Change(path, texts[path], made[0]),), made[1])


def applied(state: Texts, changes: Sequence[Change]) -> dict[str, str]:
    """The texts after these changes."""
    after: dict[str, str | None] = {**state, **{one.path: one.after for one in changes}}
    return {path: text for path, text in after.items() if text is not None}
