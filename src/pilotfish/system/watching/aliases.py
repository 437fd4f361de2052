"""The other names of what is watched: links inside the root to folders inside the root.

Nobody is told of a write under these names, and a server may know a file by one of them alone. So each change below the
folder that a link leads to is told again below the link; and when the link leads elsewhere, all that is below it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from pilotfish.model import AbsPath
from pilotfish.paths import top_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.watching.tree import WatchedTree

MAX_STEPS = 3
"""Links on the way to a file: one in a folder that another one leads to, and so on."""

MAX_CHANGES = 50_000
"""In one answer; no project has as many files below links."""


class Aliases:
    def __init__(self, tree: WatchedTree) -> None:
        self._tree = tree
        self._links: dict[AbsPath, str] = {}

    def learn(self) -> None:
        """Something else is watched now: the links that were found by this are not news."""
        self._links = self._tree.inner_links() | self._links

    def of(self, found: Sequence[PathChange]) -> tuple[PathChange, ...]:
        """These changes under their other names, and what has changed because links lead elsewhere."""
        if not found:
            return ()
        before, self._links = self._links, self._tree.inner_links()
        if not before and not self._links:
            return ()
        switched = [link for link in before.keys() | self._links.keys() if before.get(link) != self._links.get(link)]
        changes = [one for link in switched for one in self._switched(link, before.get(link), self._links.get(link))]
        names = _by_target(before) | _by_target(self._links)
        told, step = dict[AbsPath, PathChange](), [*found, *changes]
        for _ in range(MAX_STEPS):
            step = [alias for one in step for alias in _aliases(one, names) if alias.path not in told]
            told |= {one.path: one for one in step}
        return (*changes, *told.values())[:MAX_CHANGES]

    def _switched(self, link: AbsPath, before: str | None, now: str | None) -> Iterator[PathChange]:
        old, new = self._names_below(before), self._names_below(now)
        for name in old | new:
            change = Change.DELETED if name not in new else Change.CHANGED if name in old else Change.CREATED
            yield PathChange(AbsPath(link + name), change, is_alias=True)

    def _names_below(self, top: str | None) -> set[str]:
        return set() if top is None else {path[len(top) :] for path in self._tree.files_below(top)}


def _by_target(links: Mapping[AbsPath, str]) -> dict[str, list[AbsPath]]:
    names: dict[str, list[AbsPath]] = {}
    for link, real in links.items():
        names.setdefault(real, []).append(link)
    return names


def _aliases(change: PathChange, names: Mapping[str, Sequence[AbsPath]]) -> Iterator[PathChange]:
    folder = os.path.dirname(change.path)
    while folder != top_folder(folder):
        for link in names.get(folder, ()):
            yield PathChange(AbsPath(link + change.path[len(folder) :]), change.change, is_alias=True)
        folder = os.path.dirname(folder)
