"""Our part of a JSON file: members with fixed names, and hooks in lists that others use as well."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from msgspec import Struct

from pilotfish.config.jsonc import BadJson, JsonPath
from pilotfish.hosts.edits.edit import unreadable, unsuitable
from pilotfish.hosts.edits.json_text import NoPlace, append, drop, put, value_of
from pilotfish.protocol.wire import Json

BYTE_ORDER_MARK = "\ufeff"


class Member(Struct, frozen=True):
    """A value that is ours by its name."""

    path: tuple[str, ...]
    value: Json
    shared: bool = False
    """Others use it, too: it is removed only when a receipt shows that `setup` added it."""


class Hooks(Struct, frozen=True):
    """A group of hooks, or a hook alone, in the list at `path`; ours are recognised by their command."""

    path: tuple[str, ...]
    group: Json


class NoHooks(Struct, frozen=True):
    """None of our hooks in the lists below `path`: the host is told in another way."""

    path: tuple[str, ...]


class JsonEdit(Struct, frozen=True):
    parts: tuple[Member | Hooks | NoHooks, ...]

    def added(self, text: str | None) -> str:
        mark, text = _unmarked(text or "")
        text = text if text.strip() else "{}\n"
        _read(text)
        for part in self.parts:
            if isinstance(part, NoHooks):
                continue
            try:
                match part:
                    case Member(path, value):
                        text = put(text, path, value)
                    case Hooks(path, group):
                        text = append(text, path, group)
            except NoPlace as occupied:
                raise unsuitable(f"`{occupied}` has the wrong type", _by_hand(part)) from None
        return mark + text

    def is_in(self, text: str) -> bool:
        value = _read(_unmarked(text)[1])
        members = [part for part in self.parts if isinstance(part, Member)]
        if not all(_has(value, part.path) and _covers(_at(value, part.path), part.value) for part in members):
            return False
        wanted = [(part.path, part.group) for part in self.parts if isinstance(part, Hooks)]
        free = {part.path for part in self.parts if isinstance(part, NoHooks)}
        return _same_hooks(list(_hooks_in(value, {path[:-1] for path, _ in wanted} | free)), wanted)

    def removed(self, text: str, before: str | None) -> str | None:
        mark, whole = _unmarked(text)
        _read(whole)
        rest = whole
        earlier = _read(_unmarked(before or "{}")[1])
        for part in self.parts:
            match part:
                case Member(path, shared=True) if before is None or not _has(_read(rest), path):
                    continue
                case Member(path) if _has(earlier, path):
                    rest = put(rest, path, _at(earlier, path))
                case Member(path):
                    rest = _without(rest, path, earlier) if _has(_read(rest), path) else rest
                case Hooks(path):
                    rest = _without_hooks(rest, path[:-1], earlier)
                case NoHooks(path):
                    rest = _without_hooks(rest, path, earlier)
        if rest == whole:
            return text
        return None if not before and _read(rest) == {} else mark + rest


HookGroup = tuple[tuple[str, ...], Json]
"""Where a group of hooks is, and what it says."""


def _hooks_in(value: Json, parents: set[tuple[str, ...]]) -> Iterator[HookGroup]:
    """Our hooks in the lists below these objects: each with what its group says, and without the hooks of others."""
    for parent in parents:
        lists = _at(value, parent)
        for event, groups in lists.items() if isinstance(lists, dict) else ():
            for group in cast("list[Json]", groups) if isinstance(groups, list) else []:
                if isinstance(group, dict) and isinstance(hooks := group.get("hooks"), list):
                    for hook in cast("list[Json]", hooks):
                        if next(_our_hooks(hook), None) is not None:
                            yield (*parent, event), {**group, "hooks": [hook]}
                elif next(_our_hooks(group), None) == ():
                    # Some hosts have no groups: a list holds the hooks themselves.
                    yield (*parent, event), group


def _same_hooks(found: list[HookGroup], wanted: list[HookGroup]) -> bool:
    """Whether these are exactly the wanted groups."""
    for path, group in wanted:
        match = next((one for one in found if one[0] == path and _covers(one[1], group)), None)
        if match is None:
            return False
        found.remove(match)
    return not found


def _covers(found: Json, wanted: Json) -> bool:
    """Whether a value says what is wanted. Hosts add members to objects when they write their files anew."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _covers(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_covers, found, wanted))
    return found == wanted


def _by_hand(part: Member | Hooks) -> str:
    value = part.value if isinstance(part, Member) else [part.group]
    for key in reversed(part.path):
        value = {key: value}
    return json.dumps(value, ensure_ascii=False)


def _unmarked(text: str) -> tuple[str, str]:
    return (BYTE_ORDER_MARK, text[1:]) if text.startswith(BYTE_ORDER_MARK) else ("", text)


@lru_cache(maxsize=2)  # The same text is parsed several times, and some hosts keep megabytes in it.
def _read(text: str) -> Json:
    if not text.strip():
        return {}
    try:
        return value_of(text)
    except BadJson as bad:
        raise unreadable("JSON", str(bad)) from None


def _without(text: str, path: Sequence[str], earlier: Json) -> str:
    """Without a member, and without parents that are empty now and did not exist before."""
    text = drop(text, tuple(path))
    parent = tuple(path[:-1])
    if parent and not _at(_read(text), parent) and not _has(earlier, parent):
        return _without(text, parent, earlier)
    return text


def _without_hooks(text: str, path: Sequence[str], earlier: Json) -> str:
    """Without our hooks in any list below `path`: an earlier version may have used other events."""
    lists = _at(_read(text), path)
    for event in lists if isinstance(lists, dict) else ():
        text = _without_group(text, (*path, event), earlier)
    return text


def _without_group(text: str, path: Sequence[str], earlier: Json) -> str:
    found = list(_our_hooks(_at(_read(text), path)))
    for where in reversed(found):
        text = drop(text, (*path, *where))
        if len(where) > 1 and not _at(_read(text), (*path, *where[:-1])):
            # A group without hooks has no effect.
            text = drop(text, (*path, *where[:-2]))
    if found and not _at(_read(text), path) and not _has(earlier, path):
        return _without(text, path, earlier)
    return text


def _our_hooks(value: Json, path: JsonPath = ()) -> Iterator[JsonPath]:
    """The paths of our hooks, in the order of the file."""
    if isinstance(value, dict):
        if any(isinstance(word, str) and _is_ours(word) for word in value.values()):
            yield path
            return
        for key, below in value.items():
            yield from _our_hooks(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(cast("list[Json]", value)):
            yield from _our_hooks(below, (*path, index))


def _is_ours(word: str) -> bool:
    scripts = ("/pilotfish/surfaces/hook.py", "/share/pilotfish/hook.py")
    return word == "hook_post_edit" or word.startswith("pilotfish hook ") or any(name in word for name in scripts)


def _at(value: Json, path: Sequence[str | int]) -> Json:
    """What is at `path`; None when nothing is."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _has(value: Json, path: Sequence[str]) -> bool:
    parent = _at(value, path[:-1])
    return isinstance(parent, dict) and path[-1] in parent
