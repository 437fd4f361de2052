"""Bare names out of labels.

Servers decorate the names of symbols, each in its own way: `(method) greet`, `greet(int)`, `Box<T>`, `(*Server).Start`,
`Widget::draw`, `impl Display for Point`, `def greet(name)`, `greet/2`. `names_of` takes all of that off by rule and
leaves the path of names, outermost first; a caller's `Class.method` goes through the same rules, so the two meet.
"""

import re
from functools import lru_cache

_KIND_WORDS = frozenset({
    "accessor", "alias", "class", "constant", "constructor", "enum", "field", "function", "getter", "interface",
    "local", "method", "module", "namespace", "parameter", "property", "setter", "type", "variable",
})  # fmt: skip
_KEYWORDS = frozenset({
    "abstract", "async", "class", "const", "def", "defmacro", "defmodule", "defp", "enum", "export", "extern",
    "final", "fn", "func", "function", "fun", "get", "global", "impl", "interface", "let", "local", "macro", "mod",
    "module", "namespace", "object", "override", "package", "private", "procedure", "protected", "protocol", "pub",
    "public", "record", "set", "static", "struct", "sub", "trait", "type", "union", "val", "var", "virtual",
})  # fmt: skip
"""What may stand before a name. A symbol that is itself called so keeps its name: it is the last word."""

_KIND_PREFIX = re.compile(r"\(([a-z ]+)\)\s+")
_RECEIVER = re.compile(r"(?:func\s+)?\(\s*(?:\w+\s+)?\*?\s*([\w.]+)[^)]*\)\s*\.?\s*(?=\w)")
_POINTER = re.compile(r"\(\*\s*([\w.]+)[^)]*\)")
_OPERATOR = re.compile(r"\boperator(?:\s*(?P<sign>\(\)|\[\]|[^\w\s(]+)|\s+(?P<type>\w+))")
_TYPE_SUFFIX = re.compile(r"\s*(?:->|=>|(?<!:):(?!:)).*", re.DOTALL)
_ARITY = re.compile(r"/\d+$")
_SEPARATOR = re.compile(r"::|[.#/\\]")
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_SIGILS = "$@&*%+-`'\" "


def bare_name(label: str) -> str:
    """The name alone, as it stands in the source."""
    return names_of(label)[-1]


@lru_cache(maxsize=8192)
def names_of(label: str) -> tuple[str, ...]:
    """The bare names in a label, outermost first; the label itself where nothing in it looks like a name."""
    if label.isidentifier():
        return (label,)
    return tuple(_names(label.strip())) or (label,)


def _names(label: str) -> list[str]:
    kind = _KIND_PREFIX.match(label)
    if kind and _KIND_WORDS.issuperset(kind[1].split()):
        label = label[kind.end() :]
    if operator := _OPERATOR.search(label):
        own = f"operator{operator['sign']}" if operator["sign"] else f"operator {operator['type']}"
        return [*_names(label[: operator.start()].rstrip(":. ")), own]
    if receiver := _RECEIVER.match(label):
        return [*_split(receiver[1]), *_names(label[receiver.end() :])]
    if pointer := _POINTER.fullmatch(label):
        return _split(pointer[1])
    words = _TYPE_SUFFIX.sub("", _without_brackets(label)).split()
    return _split(_named(words)) if words else []


def _named(words: list[str]) -> str:
    """Of the words of a declaration, the one that is the name."""
    if words[0] == "impl" and "for" in words[:-1]:
        return words[words.index("for") + 1]
    for word in words[:-1]:
        if word not in _KEYWORDS:
            return word
    return words[-1]


def _split(name: str) -> list[str]:
    parts = (part.strip(_SIGILS) for part in _SEPARATOR.split(_ARITY.sub("", name)))
    return [part for part in parts if part]


def _without_brackets(label: str) -> str:
    """`label` without what stands in brackets; an arrow is not a bracket, and one that never closes stays."""
    kept: list[str] = []
    open_at: list[tuple[str, int]] = []
    for index, character in enumerate(label):
        if character in _CLOSING:
            open_at.append((_CLOSING[character], len(kept)))
        elif open_at and character == open_at[-1][0] and label[index - 1 : index + 1] not in {"->", "=>"}:
            del kept[open_at.pop()[1] :]
            continue
        kept.append(character)
    return "".join(kept)
