"""LSP globs by the letter of the specification, by trying everything. Slow, and right by inspection."""

from collections.abc import Iterator
from itertools import pairwise


def naive_match(pattern: str, path: str) -> bool:
    return any(_path(one.removesuffix("/").split("/"), path.split("/")) for one in _expanded(pattern))


def _expanded(pattern: str) -> Iterator[str]:
    """Every way to replace the braces by one of their options."""
    start = pattern.find("{")
    if start < 0:
        yield pattern
        return
    depth, cuts = 0, [start]
    for index in range(start, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[index], 0)
        if (depth == 1 and pattern[index] == ",") or depth == 0:
            cuts.append(index)
        if depth == 0:
            break
    for left, right in pairwise(cuts):
        yield from _expanded(pattern[:start] + pattern[left + 1 : right] + pattern[cuts[-1] + 1 :])


def _path(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_path(pattern[1:], path[index:]) for index in range(len(path) + 1))
    return bool(path) and _name(pattern[0], path[0]) and _path(pattern[1:], path[1:])


def _name(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_name(pattern[1:], name[index:]) for index in range(len(name) + 1))
    if pattern[0] == "[" and "]" in pattern[2:]:
        end = pattern.index("]", 3 if pattern[1] in "!^" else 2)
        return bool(name) and _in_class(pattern[1:end], name[0]) and _name(pattern[end + 1 :], name[1:])
    return bool(name) and pattern[0] in ("?", name[0]) and _name(pattern[1:], name[1:])


def _in_class(body: str, character: str) -> bool:
    if body[0] in "!^":
        return not _in_class(body[1:], character)
    if body[1:2] == "-" and len(body) > 2:
        return body[0] <= character <= body[2] or _in_class(body[3:] or "/", character)
    return character == body[0] or (len(body) > 1 and _in_class(body[1:], character))
