"""Which folders are not watched: those of tools, and what `.gitignore` names.

Only folders are judged. A file in a folder that is watched costs nothing, and generated sources are often ignored.
Rules are git's, on our own globs: those take linear time whatever a hostile repository writes.
"""

import os
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS, ancestors
from pilotfish.protocol.globs import BadGlob, Glob, lsp_glob, path_below
from pilotfish.protocol.watching import ALL_KINDS, WatchRegistration, asks_for, may_match, roots_to_watch
from pilotfish.system.ownership import is_linked_worktree, top_of
from pilotfish.system.ports import Interest
from pilotfish.system.regular_files import read_regular

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


# --- Where a watcher goes ---------------------------------------------------------------------------------------------

# Into folders that something registered can match, and not into ignored ones. A folder of dependencies is entered only
# for the registrations that mean it (`**/node_modules/**/package.json`, or a base inside it), and below it only they
# count: a glob that wants a package must not have all of `node_modules` watched. Other folders that git ignores hold
# generated code that sources import, or thousands of build results: they are entered as far as `tree` has room for
# them.

TOOLS = re.compile(r"/node_modules/\.(?!(?:bun|pnpm|prisma|store)\Z)[^/]*\Z")
"""Caches that tools write all the time, and links to programs; the other hidden folders hold packages."""


class Rules(Struct, frozen=True):
    """What holds in one folder and decides about those in it."""

    registrations: tuple[WatchRegistration, ...] = ()
    roots: tuple[AbsPath, ...] = ()
    ignores: tuple[IgnoreRules, ...] = ()
    aside: AbsPath | None = None
    """The ignored or linked folder that it lies in, of which only so much is entered."""

    def below(self, folder: AbsPath) -> "Rules | None":
        """What holds in `folder`, one level down, but for its own `.gitignore`; None when it is not to be entered."""
        if TOOLS.search(folder) or is_linked_worktree(folder):
            # Whoever works in another worktree has it watched.
            return None
        ignored = is_ignored(folder, self.ignores)
        if os.path.basename(folder) in ALWAYS or (ignored and _holds_dependencies(folder)):
            meant = tuple(one for one in self.registrations if asks_for((one,), folder, self.roots))
            return Rules(meant, self.roots).if_it_leads(folder)
        here = self.set_aside(folder) if ignored else self
        return here.if_it_leads(folder)

    def set_aside(self, folder: AbsPath) -> "Rules":
        return self if self.aside is not None else replace(self, aside=folder)

    def if_it_leads(self, folder: AbsPath) -> "Rules | None":
        return self if may_match(self.registrations, folder, self.roots) else None

    def with_own(self, folder: AbsPath) -> "Rules":
        """These rules, and what the `.gitignore` in `folder` adds to them."""
        own = read_rules(folder) if self.registrations else None
        return self if own is None else replace(self, ignores=(*self.ignores, own))

    def without_own(self, folder: AbsPath) -> "Rules":
        return replace(self, ignores=tuple(known for known in self.ignores if known.folder != folder))

    @property
    def shallow(self) -> bool:
        """Whether they lead nowhere below."""
        return not self.registrations


def _holds_dependencies(folder: AbsPath) -> bool:
    name = os.path.basename(folder)
    if name.startswith(".") or name in DEPENDENCY_FOLDERS:
        return True
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


SHALLOW = Rules()
"""For a folder of which only the files count."""


def tops(interest: Interest) -> dict[AbsPath, Rules]:
    """The folders to begin with, outermost first, each with its rules; one that lies inside another may be left out.

    Outside the workspace nothing above a top says what is ignored: that very folder was asked for.
    """
    registrations = tuple(dict.fromkeys(replace(one, kinds=ALL_KINDS) for one in interest.registrations))
    each = {top for one in registrations for top in roots_to_watch((one,), interest.roots)}
    return {
        top: Rules(registrations, interest.roots, rules_above(top) if top in interest.roots else ())
        for top in sorted(each)
    }
