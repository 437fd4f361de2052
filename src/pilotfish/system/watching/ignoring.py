"""Which folders are not watched: those of tools, and what `.gitignore` names.

Only folders are judged. A file in a folder that is watched costs nothing, and generated sources are often ignored.
Rules are git's, on our own globs: those take linear time whatever a hostile repository writes.
"""

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.protocol.glob_regex import BadGlob
from pilotfish.protocol.globs import Glob, lsp_glob, path_below
from pilotfish.system.regular_files import read_regular
from pilotfish.system.worktree import top_of

ALWAYS = frozenset({".git", ".hg", ".jj", ".svn", "__pycache__", "node_modules"})
"""Ignored wherever they are."""

IGNORE_FILE = ".gitignore"

MAX_IGNORE_BYTES = 64 * 1024
"""The longest that people write have 30 KB."""

MAX_RULES = 2_000
"""Of one file: each takes 0.2 ms to read. Those behind are not heeded, so more is watched than need be."""

MAX_ANCESTORS = 64
"""How far up a repository is looked for."""


class Rule(Struct, frozen=True):
    glob: Glob
    ignores: bool
    """False for a rule that starts with `!`."""


class IgnoreRules(Struct, frozen=True):
    """One `.gitignore`, for the folders below the one that holds it."""

    folder: AbsPath
    rules: tuple[Rule, ...]


def read_rules(folder: AbsPath) -> IgnoreRules | None:
    """The rules that `folder` itself holds; None when it holds none."""
    # Git follows no link here either.
    content = read_regular(os.path.join(folder, IGNORE_FILE), MAX_IGNORE_BYTES, is_whole=True, follows=False) or b""
    lines = content.decode(errors="surrogateescape").splitlines()[:MAX_RULES]
    rules = tuple(rule for line in lines if (rule := maybe_rule(line)) is not None)
    return IgnoreRules(folder, rules) if rules else None


def rules_above(folder: AbsPath) -> tuple[IgnoreRules, ...]:
    """The rules of the folders above `folder`, up to the top of its repository, outermost first."""
    above = ancestors(os.path.dirname(folder), top_of(folder))[:MAX_ANCESTORS]
    return tuple(rules for parent in reversed(above) if (rules := read_rules(AbsPath(parent))) is not None)


def is_ignored(folder: AbsPath, known: Sequence[IgnoreRules]) -> bool:
    """Whether `folder` itself is ignored: the last rule that matches it decides, and inner rules come last."""
    for own in reversed(known):
        below = path_below(folder, own.folder) or ""
        for rule in reversed(own.rules):
            if rule.glob.matches(below):
                return rule.ignores
    return False


def maybe_rule(line: str) -> Rule | None:
    """Read one line as far as it concerns folders; None for a comment, and for what git could not read either."""
    text = line.rstrip(" ")
    text += " " if text.endswith("\\") and text != line else ""
    ignores = not text.startswith("!")
    text = text.removeprefix("!").removesuffix("/")
    if not text or line.startswith("#"):
        return None
    anchored = "/" in text
    try:
        body = _TOKENS.sub(_as_glob, text.removeprefix("/"))
        # In git `a/**` is all that is in `a` and not `a` itself; in our globs `**` may stand for nothing.
        body += "/*" if body == "**" or body.endswith("/**") else ""
        return Rule(lsp_glob(body if anchored else f"**/{body}"), ignores)
    except BadGlob:
        return None


_TOKENS = re.compile(r"\\(.)|\[([!^]?)(\]?[^]]*)\]|[\[{} ]", re.DOTALL)
"""What git and our globs write differently: escapes, classes, and what only one of them has a meaning for."""


_SPECIAL = frozenset("*?[{} \\")


def _as_glob(found: re.Match[str]) -> str:
    escaped, negation, members = found.groups()
    if members is not None:
        return f"[{'!' if negation else ''}{members}]"
    if found[0] == "[":
        raise BadGlob("a [ without its ]")
    character = escaped or found[0]
    return f"[{character}]" if character in _SPECIAL else character
