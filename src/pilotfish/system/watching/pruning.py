"""Where a watcher goes: into folders that something registered can match, and not into ignored ones.

A folder of dependencies is entered only for the registrations that mean it (`**/node_modules/**/package.json`, or a
base inside it), and below it only they count: a glob that wants a package must not have all of `node_modules` watched.
Other folders that git ignores hold generated code that sources import, or thousands of build results: they are entered
as far as `tree` has room for them.
"""

import os

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.protocol.watching import ALL_KINDS, WatchRegistration, asks_for, may_match, roots_to_watch
from pilotfish.system.ports import Interest
from pilotfish.system.watching.ignoring import ALWAYS, IgnoreRules, is_ignored, read_rules, rules_above

PROGRAMS = os.path.join(os.sep, "node_modules", ".bin")
"""Links to the programs of packages: no source, and every question would look at what each leads to."""


class Rules(Struct, frozen=True):
    """What holds in one folder and decides about those in it."""

    registrations: tuple[WatchRegistration, ...] = ()
    roots: tuple[AbsPath, ...] = ()
    ignores: tuple[IgnoreRules, ...] = ()
    aside: AbsPath | None = None
    """The ignored or linked folder that it lies in, of which only so much is entered."""

    def below(self, folder: AbsPath) -> "Rules | None":
        """What holds in `folder`, one level down, but for its own `.gitignore`; None when it is not to be entered."""
        if folder.endswith(PROGRAMS):
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
