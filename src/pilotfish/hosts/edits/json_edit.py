"""Our part of a JSON file: members with fixed names, and hooks in lists that others use as well.

The text is changed in single places: comments, order, line ends and every other byte are kept. Pure. The nodes of
`config.jsonc` know where they are written; a change is a few splices of the text. What is added looks like what is
around it: on lines of its own with the same indentation, or in the same line. The text must be one that
`config.jsonc.parse` accepts, and stays one.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from msgspec import Struct

from pilotfish.config.jsonc import TOKEN, BadJson, JsonPath, Node, parse, tree
from pilotfish.hosts.edits.edit import unreadable, unsuitable
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
                by_hand = part.value if isinstance(part, Member) else [part.group]
                for key in reversed(part.path):
                    by_hand = {key: by_hand}
                shown = json.dumps(by_hand, ensure_ascii=False)
                raise unsuitable(f"`{occupied}` has the wrong type", shown) from None
        return mark + text

    def is_in(self, text: str) -> bool:
        value = _read(_unmarked(text)[1])
        members = [part for part in self.parts if isinstance(part, Member)]
        if not all(_has(value, part.path) and _covers(_at(value, part.path), part.value) for part in members):
            return False
        wanted = [(part.path, part.group) for part in self.parts if isinstance(part, Hooks)]
        free = {part.path for part in self.parts if isinstance(part, NoHooks)}
        found = list(_hooks_in(value, {path[:-1] for path, _ in wanted} | free))
        for path, group in wanted:
            match = next((one for one in found if one[0] == path and _covers(one[1], group)), None)
            if match is None:
                return False
            found.remove(match)
        return not found

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


def _hooks_in(value: Json, parents: set[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Our hooks in the lists below these objects: where each is, and its group without the hooks of others."""
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


def _covers(found: Json, wanted: Json) -> bool:
    """Whether a value says what is wanted. Hosts add members to objects when they write their files anew."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _covers(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_covers, found, wanted))
    return found == wanted


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
        group = (*path, event)
        found = list(_our_hooks(_at(_read(text), group)))
        for where in reversed(found):
            text = drop(text, (*group, *where))
            if len(where) > 1 and not _at(_read(text), (*group, *where[:-1])):
                # A group without hooks has no effect.
                text = drop(text, (*group, *where[:-2]))
        if found and not _at(_read(text), group) and not _has(earlier, group):
            text = _without(text, group, earlier)
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


INDENT = "  "
"""Of a file without indentation."""


Splice = tuple[int, int, str]
"""What stands between two offsets goes, and this comes."""


class NoPlace(ValueError):
    """A value of another type is where a container should be; the message names it."""


def value_of(text: str) -> Json:
    return parse(text.encode()).value


def put(text: str, path: Sequence[str], value: Json) -> str:
    """The text with `value` at `path`: in the place of what is there, or after everything else in its object."""
    top = tree(text)
    node, depth = _deepest(top, path)
    if depth == len(path):
        rendered = _rendered(text, value, _indent(text, node.start))
        return _spliced(text, [(node.value, node.end, rendered)])
    if not node.is_object:
        raise NoPlace(".".join(path[:depth]) or "the whole file")
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _spliced(text, _insertion(text, node, value, path[depth]))


def append(text: str, path: Sequence[str], item: Json) -> str:
    """The text with `item` appended to the list at `path`, which is created if missing."""
    node, depth = _deepest(tree(text), path)
    if depth < len(path):
        return put(text, path, [item])
    if not node.is_array:
        raise NoPlace(".".join(path))
    return _spliced(text, _insertion(text, node, item, None))


def drop(text: str, path: JsonPath) -> str:
    """The text without the member or item at `path`, which must be there."""
    parent = tree(text)
    for step in path[:-1]:
        parent = parent.children[step]
    node = parent.children[path[-1]]
    siblings = list(parent.children.values())
    before = siblings[siblings.index(node) - 1] if siblings[0] is not node else None
    splices: list[Splice] = []
    if node.comma is None and before is not None and before.comma is not None:
        splices.append((before.comma, before.comma + 1, ""))
    end = node.end if node.comma is None else node.comma + 1
    start = len(text[: node.start].rstrip())
    line = text.rfind("\n", 0, start) + 1
    follows_comment = "//" in text[line:start] and any(
        token.lastgroup == "comment" and token.group().startswith("//") and token.start() < start <= token.end()
        for token in TOKEN.finditer(text)
        if token.end() > line
    )
    if follows_comment and not text[end:].lstrip(" \t").startswith(("\n", "\r")):
        # The rest of the line would become part of the comment before it.
        start = node.start
    return _spliced(text, [*splices, (start, end, "")])


def _deepest(top: Node, path: Sequence[str]) -> tuple[Node, int]:
    """The last node on the way along `path`, and how many steps led to it."""
    node = top
    for depth, key in enumerate(path):
        if not node.is_object or key not in node.children:
            return node, depth
        node = node.children[key]
    return node, len(path)


def _insertion(text: str, parent: Node, value: Json, key: str | None) -> list[Splice]:
    """Put a value after the last one in its container."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    line_end = _line_end(text)
    if not parent.children:
        outer = _indent(text, parent.start)
        inner = outer + _unit(text)
        rest = text[parent.value + 1 : parent.end - 1]
        after = "" if rest.strip() else line_end + outer
        end = parent.value + 1 if rest.strip() else parent.end - 1
        return [(parent.value + 1, end, f"{line_end}{inner}{name}{_rendered(text, value, inner)}{after}")]
    last = list(parent.children.values())[-1]
    trailing = last.comma is not None
    at = last.end if last.comma is None else last.comma + 1
    splices = [] if trailing else [(last.end, last.end, ",")]
    if "\n" not in text[parent.value : last.start]:
        body = name + json.dumps(value, ensure_ascii=False)
        return [*splices, (at, at, f" {body}{',' if trailing else ''}")]
    inner = _indent(text, last.start)
    # Comments that follow in the same line belong to what stands before them.
    for token in TOKEN.finditer(text, at):
        if token.lastgroup != "comment" or "\n" in text[at : token.end()]:
            break
        at = len(text[: token.end()].rstrip("\r"))
    body = name + _rendered(text, value, inner)
    return [*splices, (at, at, f"{line_end}{inner}{body}{',' if trailing else ''}")]


def _rendered(text: str, value: Json, indent: str) -> str:
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{indent}".join(lines)


def _indent(text: str, offset: int) -> str:
    """The white space before the first thing in the line of `offset`."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation, as the first indented line has it."""
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        if indent and line.strip().startswith(('"', "{", "[")):
            return indent
    return INDENT


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _spliced(text: str, splices: list[Splice]) -> str:
    for start, end, new in reversed(splices):
        text = text[:start] + new + text[end:]
    return text
