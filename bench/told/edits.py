"""Random edits of a project, the same for the same seed, as an agent would make them.

A plan is made from the project's texts alone, before anybody is asked anything: whoever is measured gets the very same
edits, and the truth of every state can be kept. What an edit breaks is not known here; the checker says that.

At most `MOST_BREAKS` edits that break something stand at a time: an agent repairs what it broke, and each repair (the
old text again) is an edit of its own, of the kind `fix`.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from told import edits_python
from told.makers import Maker, Source, by_braces

Group = Literal["harmless", "own", "fix", "others"]
Tool = Literal["edit", "multiedit", "write", "patch"]
Texts = Mapping[str, str]

GROUPS: Mapping[Group, tuple[str, ...]] = {
    "harmless": ("comment", "blank-line", "rename-local", "reformat"),
    "own": ("wrong-argument", "wrong-type", "undefined-name", "syntax", "missing-return", "break-import"),
    "others": (
        *["rename-export"] * 5,  # as usual as in the measurements that we compare with
        *["new-parameter"] * 3,
        *["rename-member"] * 2,
        "remove-export",
        "return-type",
        "field-type",
        "delete-file",
        "move-file",
    ),
    "fix": ("fix",),
}
KINDS = tuple(dict.fromkeys(kind for kinds in GROUPS.values() for kind in kinds))
MAKERS = {"python": edits_python.MAKERS, **by_braces()}

MOST_BREAKS = 2
WRITE_SHARE = 0.2
"""Of the changed files, those that are written as a whole; agents mostly edit."""

TRIES = 400
"""Files that are tried for one kind before another kind is taken."""


@dataclass(frozen=True)
class Change:
    """One file before and after; None where it is not there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Edit:
    number: int
    kind: str
    group: Group
    tool: Tool
    changes: tuple[Change, ...]
    note: str
    undoes: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)


def plan(texts: Texts, language: str, count: int, seed: int, kinds: Sequence[str] = KINDS) -> list[Edit]:
    """`count` edits, each on the state that the one before left; `kinds` may name groups."""
    chance = random.Random(seed)
    state, made, standing = dict(texts), list[Edit](), list[Edit]()
    wanted = chosen_kinds(kinds)
    while len(made) < count:
        edit = _next(state, language, chance, wanted, standing, len(made) + 1)
        made.append(edit)
        if edit.undoes is not None:
            standing = [each for each in standing if each.number != edit.undoes]
        elif edit.group != "harmless":
            standing.append(edit)
        apply(state, edit)
    return made


def apply(state: dict[str, str], edit: Edit) -> None:
    """Carry the edit out on the texts."""
    for change in edit.changes:
        if change.after is None:
            del state[change.path]
        else:
            state[change.path] = change.after


def states(texts: Texts, edits: Iterable[Edit]) -> Iterator[dict[str, str]]:
    """The state before the first edit, then the one after each."""
    state = dict(texts)
    yield dict(state)
    for edit in edits:
        apply(state, edit)
        yield dict(state)


def digest(state: Texts) -> str:
    """The same for the same state."""
    parts = sorted(f"{path}\0{_text_digest(text)}" for path, text in state.items())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def chosen_kinds(names: Sequence[str]) -> list[str]:
    """Kinds, by their own names or those of groups; the usual ones as often as they are listed."""
    chosen, groups = list[str](), {str(group): kinds for group, kinds in GROUPS.items()}
    for name in names:
        if name in groups:
            chosen += groups[name]
        elif name in KINDS:
            chosen.append(name)
        else:
            raise ValueError(f"no such kind of edit: {name}; known are {', '.join((*GROUPS, *KINDS))}")
    return chosen


def group_of(kind: str) -> Group:
    return next(group for group, kinds in GROUPS.items() if kind in kinds)


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text))


def _next(
    state: dict[str, str],
    language: str,
    chance: random.Random,
    wanted: Sequence[str],
    standing: Sequence[Edit],
    number: int,
) -> Edit:
    fixable = [each for each in standing if all(state.get(one.path) == one.after for one in each.changes)]
    if fixable and (len(standing) >= MOST_BREAKS or ("fix" in wanted and chance.random() < 1 / 4)):
        return _fix(chance.choice(fixable), chance, number)
    kinds = _ordered(wanted, chance)
    # An edit on top of another one in the same file could never be undone by itself.
    taken = {path for each in standing for path in each.paths}
    free = [path for path in state if path not in taken]
    for kind in kinds:
        if (edit := _made(state, language, chance, kind, free, number)) is not None:
            return edit
    raise ValueError(f"none of the kinds {wanted} can be made in this project")


def _ordered(wanted: Sequence[str], chance: random.Random) -> list[str]:
    """Every kind but `fix`: first those of a group, each group as likely as another, the usual kinds more often."""
    groups = sorted({group_of(kind) for kind in wanted} - {"fix"})
    chance.shuffle(groups)
    kinds = list(wanted)
    chance.shuffle(kinds)
    return list(dict.fromkeys(kind for group in groups for kind in kinds if group_of(kind) == group))


def _fix(edit: Edit, chance: random.Random, number: int) -> Edit:
    undone = tuple(Change(one.path, one.after, one.before) for one in edit.changes)
    tool = "patch" if edit.tool == "patch" else _tool(chance)
    return Edit(number, "fix", "fix", tool, undone, f"undo edit {edit.number} ({edit.kind}: {edit.note})", edit.number)


def _made(
    state: dict[str, str], language: str, chance: random.Random, kind: str, free: Sequence[str], number: int
) -> Edit | None:
    # Nobody imports a test.
    paths = [path for path in free if group_of(kind) != "others" or not re.search(r"(^|/|_|\.)tests?[/_.]", path)]
    chance.shuffle(paths)
    for path in paths[:TRIES]:
        source = Source(path, state[path], _uses(state, path))
        if kind in {"delete-file", "move-file"}:
            changes, note = _without(source, kind, state)
            tool: Tool = "patch"
        else:
            changes, note = _changed(source, MAKERS[language].get(kind), chance)
            tool = _tool(chance)
        if changes:
            return Edit(number, kind, group_of(kind), tool, changes, note)
    return None


def _changed(source: Source, maker: Maker | None, chance: random.Random) -> tuple[tuple[Change, ...], str]:
    made = maker(source, chance) if maker else None
    if made is None or made[0] == source.text:
        return (), ""
    text, note = made
    return (Change(source.path, source.text, text),), note


def _without(source: Source, kind: str, state: Texts) -> tuple[tuple[Change, ...], str]:
    folder, slash, name = source.path.rpartition("/")
    stem, dot, suffix = name.partition(".")
    if stem in {"__init__", "__main__", "index", "conftest"} or not source.used(stem):
        return (), ""
    gone = Change(source.path, source.text, None)
    if kind == "delete-file":
        return (gone,), f"{source.path} deleted"
    target = f"{folder}{slash}{stem}_moved{dot}{suffix}"
    if target in state:
        return (), ""
    return (gone, Change(target, None, source.text)), f"{source.path} moved to {target}"


def _uses(state: Texts, path: str) -> Callable[[str], bool]:
    def used(name: str) -> bool:
        return any(name in words(text) for other, text in state.items() if other != path)

    return used


def _tool(chance: random.Random) -> Tool:
    return "write" if chance.random() < WRITE_SHARE else "edit"


@lru_cache(maxsize=8192)
def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
