"""Changes JSON text in single places: comments, order, line ends and every other byte are kept. Pure.

The nodes of `config.jsonc` know where they are written; a change is a few splices of the text. What is added looks
like what is around it: on lines of its own with the same indentation, or in the same line.
The text must be one that `config.jsonc.parse` accepts, and stays one.
"""

import json
from collections.abc import Sequence

from msgspec import Struct

from pilotfish.config.jsonc import TOKEN, JsonPath, Node, parse, tree
from pilotfish.protocol.wire import Json

INDENT = "  "
"""Of a file without indentation."""


class Splice(Struct, frozen=True):
    start: int
    end: int
    text: str


class NoPlace(ValueError):
    """A value of another type is where a container should be; the message names it."""


def value_of(text: str) -> Json:
    """The parsed value; raises `BadJson`."""
    return parse(text.encode()).value


def put(text: str, path: Sequence[str], value: Json) -> str:
    """The text with `value` at `path`: in the place of what is there, or after everything else in its object."""
    top = tree(text)
    node, depth = _deepest(top, path)
    if depth == len(path):
        rendered = _rendered(text, value, _indent(text, node.start))
        return _spliced(text, [Splice(node.value, node.end, rendered)])
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
        splices.append(Splice(before.comma, before.comma + 1, ""))
    end = node.end if node.comma is None else node.comma + 1
    start = len(text[: node.start].rstrip())
    if _line_comment_ends_at(text, start) and not text[end:].lstrip(" \t").startswith(("\n", "\r")):
        # The rest of the line would become part of the comment before it.
        start = node.start
    return _spliced(text, [*splices, Splice(start, end, "")])


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
        return [Splice(parent.value + 1, end, f"{line_end}{inner}{name}{_rendered(text, value, inner)}{after}")]
    last = list(parent.children.values())[-1]
    trailing = last.comma is not None
    at = last.end if last.comma is None else last.comma + 1
    splices = [] if trailing else [Splice(last.end, last.end, ",")]
    if "\n" not in text[parent.value : last.start]:
        body = name + json.dumps(value, ensure_ascii=False)
        return [*splices, Splice(at, at, f" {body}{',' if trailing else ''}")]
    inner = _indent(text, last.start)
    at = _end_of_remarks(text, at)
    body = name + _rendered(text, value, inner)
    return [*splices, Splice(at, at, f"{line_end}{inner}{body}{',' if trailing else ''}")]


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


def _end_of_remarks(text: str, offset: int) -> int:
    """Where the comments end that follow in the same line and belong to what stands before them."""
    for token in TOKEN.finditer(text, offset):
        if token.lastgroup != "comment" or "\n" in text[offset : token.end()]:
            break
        offset = len(text[: token.end()].rstrip("\r"))
    return offset


def _line_comment_ends_at(text: str, offset: int) -> bool:
    line_start = text.rfind("\n", 0, offset) + 1
    if "//" not in text[line_start:offset]:
        return False
    return any(
        token.lastgroup == "comment" and token.group().startswith("//") and token.start() < offset <= token.end()
        for token in TOKEN.finditer(text)
        if token.end() > line_start
    )


def _spliced(text: str, splices: list[Splice]) -> str:
    pieces: list[str] = []
    at = 0
    for splice in splices:
        pieces += text[at : splice.start], splice.text
        at = splice.end
    return "".join([*pieces, text[at:]])
