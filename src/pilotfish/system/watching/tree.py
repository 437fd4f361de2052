"""What is known of the watched folders: which names are in them, and when each last changed.

Every sign of a change, be it an event, a poll or an overflow, is only a hint: `look` goes to the disk and compares. So
nothing depends on the order or the completeness of events, and what is reported is always the difference between the
last picture and the present one.

Rules:
- A folder is listed after its watch is set, so that nothing made in between is missed.
- A link to a folder is followed where it leads out of all that is watched, and none below it, so there are no loops.
- A link to a file, and a file with several names, can be written without an event here: each is looked at every time.
- A file that was looked at so soon after its last change that the next one might bear the same time is doubted: it
  counts as changed at the next comparison. So does for a while one that is told of as new: whoever reads it may have
  found nothing, because the folder that it is in was away and has come back since. Where every look is a comparison,
  that would be told again and again: there the content of such a file is compared.

It is one class because all of it changes one picture; what does not stands in `listing`, `watches` and `pruning`.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import read_regular
from pilotfish.system.watching.ignoring import IGNORE_FILE, SHALLOW, Rules
from pilotfish.system.watching.listing import (
    Listing,
    NameKind,
    Shortage,
    inode_of,
    join,
    linked_folder,
    listing,
    look_at,
    target_stamp,
)
from pilotfish.system.watching.watches import Sentry, Watches

DOUBT_NANOSECONDS = 100_000_000
"""The clock of file systems ticks every 4 to 10 ms, that of networked ones more slowly."""

NEW_SECONDS = 1.0
"""For how long a file is told of again that was told of as new."""

MAX_FOLDERS = 50_000
"""Folders of one tree. Each costs about 1 KB in the kernel and 1 KB here; the largest projects have 20,000."""

MAX_ASIDE = 200
"""Folders that are entered of one ignored or linked folder: generated code has a few, build results thousands."""

MAX_SHARED = 1_000
"""Files that are links or have several names; a look at each takes a microsecond, and every question pays for it."""

MAX_COMPARED = 1 << 20
"""Bytes of a file whose content is compared; sources are smaller."""

MAX_ROUNDS = 4
"""How often a folder that was found elsewhere may turn up yet again; one that is mounted twice does so for ever."""


class Doubt(Struct, frozen=True):
    until: float = 0.0
    """The wall time up to which the file counts as changed every time."""
    content: int | None = None
    """Of what it had, where that is compared."""


class WatchedFolder(Struct):
    rules: Rules
    inode: int = 0
    files: dict[str, int] = field(default_factory=dict[str, int])
    """Name → time of the last change of status, in nanoseconds."""
    folders: dict[str, int] = field(default_factory=dict[str, int])
    """Name → inode, whether entered or not."""
    links: set[str] = field(default_factory=set[str])
    """The files among these that are links or have several names."""
    doubted: dict[str, Doubt] = field(default_factory=dict[str, Doubt])
    """Files that count as changed when they are next compared."""


class WatchedTree:
    """The only keeper of the picture. Not for several threads at once."""

    def __init__(self, sentry: Sentry, now: Callable[[], float], *, is_told_late: bool = False) -> None:
        self.watches = Watches(sentry)
        self.crowded = False
        """There are more than `MAX_FOLDERS`, and some were not entered."""
        self.trouble = ""
        """Why a folder could not be listed, the last time that one could not."""
        self.is_behind = False
        """Some folders without a watch were not looked at the last time."""
        self._now = now
        self._is_told_late = is_told_late
        """Events come, but what they tell of is looked at before: contents of doubted files are compared."""
        self._tops: dict[AbsPath, Rules] = {}
        self._attended: frozenset[AbsPath] = frozenset()
        self._folders: dict[AbsPath, WatchedFolder] = {}
        """A folder stands behind the one that it is in."""
        self._replaced: list[AbsPath] = []
        """Folders whose place another one has taken, or that were away and are back."""
        self.to_reread: set[AbsPath] = set()
        """Folders whose `.gitignore` has changed."""
        self._found: list[PathChange] = []
        self._linked: dict[AbsPath, str] = {}
        """Links to folders that were entered → the real paths of those."""
        self._shared: dict[AbsPath, int] = {}
        """Files that can be written under another name → when what is there last changed its status."""
        self._aside: Counter[AbsPath] = Counter()
        """How many folders of each ignored or linked one were entered."""

    # --- What is known -----------------------------------------------------------------------------------------------

    @property
    def missing(self) -> bool:
        """Whether a folder that was asked for is not there."""
        return any(top not in self._folders for top in (*self._tops, *self._attended))

    def recent(self, since: float, folders: Iterable[AbsPath] | None = None) -> tuple[PathChange, ...]:
        """The files, all or those in `folders`, that changed at wall time `since` or later, as if just created."""
        return tuple(
            PathChange(join(path, name), Change.CREATED)
            for path in (self._folders if folders is None else folders)
            if path in self._folders
            for name, stamp in self._folders[path].files.items()
            if stamp >= since * 1e9
        )

    @property
    def has_too_many_links(self) -> bool:
        return len(self._shared) >= MAX_SHARED

    def folders(self) -> tuple[AbsPath, ...]:
        """The folders that were entered."""
        return tuple(self._folders)

    def inner_links(self) -> dict[AbsPath, str]:
        """Links to folders that were not entered, because they are watched by another name → the real paths of those.

        Without those that lead to a folder around themselves.
        """
        ways = [path for path, stamp in self._shared.items() if stamp < -1 and path not in self._linked]
        found = {path: real for path in ways if (real := linked_folder(path)) is not None}
        return {path: real for path, real in found.items() if not is_inside(path, real)}

    def files_below(self, top: str) -> Iterator[AbsPath]:
        for path, folder in self._folders.items():
            if is_inside(path, top):
                yield from (join(path, name) for name in folder.files)

    def take(self) -> tuple[PathChange, ...]:
        """The changes found since the last call."""
        found, self._found = tuple(self._found), []
        return found

    # --- What is asked for -------------------------------------------------------------------------------------------

    def cover(self, tops: dict[AbsPath, Rules]) -> None:
        """Know what lies below `tops` and nothing else, but for what is attended to. Tells of nothing."""
        self._tops, self.crowded = {}, False
        reached: set[AbsPath] = set()
        for top, rules in tops.items():
            within = any(top.startswith(other.rstrip(os.sep) + os.sep) for other in self._tops)
            if top not in reached and not (within and inode_of(top) is None):
                self._tops[top] = rules
                reached |= self._reach(top, rules)
        for path in [path for path in self._folders if path not in reached]:
            if path in self._attended:
                self._folders[path].rules = SHALLOW
            else:
                self._drop(path)

    def attend(self, folders: frozenset[AbsPath]) -> None:
        """Know what lies in `folders`, without what is below them. Tells of nothing."""
        before, self._attended = self._attended, folders
        for path in before - folders:
            if path in self._folders and self._folders[path].rules.shallow:
                self._drop(path)
        for path in sorted(folders - self._folders.keys()):
            self._enter(path, SHALLOW, quietly=True)

    # --- Signs of change ---------------------------------------------------------------------------------------------

    def look(self, path: AbsPath, name: str, *, written: bool) -> None:
        """Compare one name in a folder with the disk. `written` says that it changed, whatever its times say."""
        folder = self._folders.get(path)
        if folder is None:
            return
        if self._is_told_late and name not in folder.files and name not in folder.folders:
            # Told late, and by the spelling of who wrote it, which may not be the disk's: only a listing has that.
            self.compare(path)
            return
        inside = join(path, name)
        entry = look_at(inside)
        if name in folder.folders and (entry is None or entry.kind is not NameKind.FOLDER):
            self._remove_folder(folder, inside, name)
        if name in folder.files and (entry is None or entry.kind is not NameKind.FILE):
            self._remove_file(folder, inside, name)
        if entry is None:
            return
        if entry.kind is NameKind.FOLDER:
            self._look_at_folder(folder, inside, name, entry.inode, written=written)
        else:
            self._mind_link(folder, inside, is_shared=entry.is_shared)
            self._look_at_file(folder, inside, name, entry.stamp, written=written)

    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do."""
        return not (
            any(target_stamp(path) != stamp for path, stamp in self._shared.items())
            or any(inode_of(top) != self._inode(top) for top in self._untold())
            or self.watches.lost
        )

    def settle(self) -> None:
        """Look after everything that has no event of its own.

        Those are tops that came, went or were replaced, ended watches, and files that are written under other names.
        """
        for path, stamp in tuple(self._shared.items()):
            now = target_stamp(path)
            if now != stamp and path in self._shared:
                self._shared[path] = self._certain(now)
                self._tell(path, Change.CHANGED)
                folder = self._folders.get(AbsPath(os.path.dirname(path)))
                if folder is not None:
                    # A step behind the link may lead elsewhere now.
                    self._mind_link(folder, path, is_shared=True)
        for top in self._untold():
            inode, known = inode_of(top), self._inode(top)
            if known is None and inode is not None:
                self._tell(top, Change.CREATED)
                self._enter(top, self._tops.get(top, SHALLOW))
            elif known is not None and inode is None:
                self._forget(top)
                self._tell(top, Change.DELETED)
            elif known != inode:
                self.compare(top)
        for _ in range(MAX_ROUNDS):
            self._replaced += self.watches.take_lost()
            while self._replaced:
                self.compare(self._replaced.pop())

    def reread(self) -> None:
        """Heed what `.gitignore` files say now: go where they lead, and leave where they do not. Tells of nothing.

        A long one takes long, and it may lead to all of a tree.
        """
        for path in self.to_reread:
            folder = self._folders.get(path)
            if folder is None or folder.rules.shallow:
                continue
            inside = path.rstrip(os.sep) + os.sep
            before = {known for known in self._folders if known.startswith(inside)}
            for known in before - self._reach(path, folder.rules.without_own(path)):
                if not self._is_top(known):
                    self._drop(known)
        self.to_reread.clear()

    def poll(self, enough: Callable[[], bool]) -> None:
        """Look at the folders that are not watched: all that are attended to, then the longest unpolled ones first.

        Installed packages, too, even where events tell of them late: a person changes a line in one, and whoever asks
        at once would be told of the code before. 44,000 files take 0.2 s.
        """
        self.is_behind = False
        without = tuple(self.watches.without)
        for path in without:
            if path in self._attended:
                self.compare(path)
        for path in without:
            if enough():
                self.is_behind = True
                return
            if path not in self._attended:
                self.compare(path)

    def _untold(self) -> list[AbsPath]:
        """Folders that were asked for and of which no folder above tells."""
        folders, attended = self._folders, self._attended
        return [*self._tops, *(one for one in attended if os.path.dirname(one) not in folders or one not in folders)]

    # --- Comparing ---------------------------------------------------------------------------------------------------

    def _inode(self, path: AbsPath) -> int | None:
        """The inode that a folder had when it was last looked at."""
        return self._folders[path].inode if path in self._folders else None

    def _look_at_folder(
        self, parent: WatchedFolder, path: AbsPath, name: str, inode: int, *, written: bool = False
    ) -> None:
        known = parent.folders.get(name)
        parent.folders[name] = inode
        if known is None:
            self._tell(path, Change.CREATED)
        if path not in self._folders or self._folders[path].rules.shallow:
            below = parent.rules.below(path)
            if below is not None:
                self._enter(path, below)
        elif known != inode or written:
            # Another folder has taken its place, or it was away and is back. What is below differs, too, or was moved
            # along, watch and all. A file may have had the name in between, and a reader who had just been told of the
            # folder may have read that.
            self._tell(path, Change.CHANGED)
            self._replaced += self._with_below(path)

    def _look_at_file(self, folder: WatchedFolder, path: AbsPath, name: str, stamp: int, *, written: bool) -> None:
        known, before = folder.files.get(name), folder.doubted.pop(name, None)
        doubt = self._doubt(path, stamp, is_new=known is None, before=before)
        changed = written or known != stamp
        if before is not None:
            content = doubt.content if doubt is not None else self._content(path)
            changed = changed or content is None or content != before.content
        if doubt is not None:
            folder.doubted[name] = doubt
        folder.files[name] = stamp
        if changed:
            self._tell(path, Change.CREATED if known is None else Change.CHANGED)
            self._mind_rules(path, name)

    def _doubt(self, path: AbsPath, stamp: int, *, is_new: bool, before: Doubt | None) -> Doubt | None:
        """The doubt in a file that is looked at now, if there is one."""
        if self._is_told_late:
            return Doubt(content=self._content(path)) if stamp > self._tick() else None
        until = self._now() + NEW_SECONDS if is_new else 0.0 if before is None else before.until
        return Doubt(until) if stamp > self._tick() or until > self._now() else None

    def _content(self, path: AbsPath) -> int | None:
        """None where it is not compared, or nothing that could be."""
        content = read_regular(path, MAX_COMPARED, is_whole=True) if self._is_told_late else None
        return None if content is None else hash(content)

    def compare(self, path: AbsPath) -> None:
        """Compare one folder with the disk, and watch what is there now."""
        folder = self._folders.get(path)
        if folder is None:
            return
        follow = self._may_be_link(path)
        self.watches.watch(path, follow=follow)
        listed = listing(path, follow=follow)
        if listed is None:
            # It is gone, or closed to us: then it stays as it was last seen.
            if inode_of(path, follow=follow) is None:
                parent = self._folders.get(AbsPath(os.path.dirname(path)))
                if parent is not None:
                    parent.folders.pop(os.path.basename(path), None)
                self._forget(path)
                self._tell(path, Change.DELETED)
            return
        if isinstance(listed, Shortage):
            self._come_back(path, listed)
            return
        folder.inode = listed.inode
        if (listed.files, listed.folders) == (folder.files, folder.folders) and not (listed.shared or folder.doubted):
            return
        for name in folder.files.keys() - listed.files.keys():
            self._remove_file(folder, join(path, name), name)
        for name in folder.folders.keys() - listed.folders.keys():
            self._remove_folder(folder, join(path, name), name)
        for name in listed.files:
            self._mind_link(folder, join(path, name), is_shared=name in listed.shared)
        for name, stamp in listed.files.items():
            self._look_at_file(folder, join(path, name), name, stamp, written=False)
        for name, inode in listed.folders.items():
            self._look_at_folder(folder, join(path, name), name, inode)

    def _mind_rules(self, path: AbsPath, name: str) -> None:
        if name == IGNORE_FILE:
            self.to_reread.add(AbsPath(os.path.dirname(path)))

    # --- Coming and going --------------------------------------------------------------------------------------------

    def _reach(self, path: AbsPath, rules: Rules) -> set[AbsPath]:
        """Give a folder and those below it their rules, and enter what is new quietly; returns where they lead."""
        reached: set[AbsPath] = set()
        waiting = [(path, rules)]
        while waiting:
            path, rules = waiting.pop()
            folder = self._folders.get(path)
            if folder is None:
                reached.update(self._enter(path, rules, quietly=True))
                continue
            before, after = folder.rules.aside, rules.aside
            if before != after:
                if after is not None and self._aside[after] >= MAX_ASIDE:
                    continue
                self._aside.subtract([before] if before is not None else [])
                self._aside.update([after] if after is not None else [])
            reached.add(path)
            folder.rules = rules.with_own(path) if IGNORE_FILE in folder.files else rules
            waiting += self._ways_below(path, folder)
        return reached

    def _enter(self, path: AbsPath, rules: Rules, *, quietly: bool = False) -> list[AbsPath]:
        """Watch and list a folder and those below it; tells that all in them was created. Returns what was entered."""
        entered: list[AbsPath] = []
        waiting = [(path, rules)]
        while waiting:
            path, rules = waiting.pop()
            folder = self._entered(path, rules, told=not quietly)
            if folder is None:
                continue
            entered.append(path)
            if not quietly:
                for name in (*folder.files, *folder.folders):
                    self._tell(join(path, name), Change.CREATED)
            for name in folder.links:
                self._share(join(path, name))
            waiting += self._ways_below(path, folder)
        return entered

    def _entered(self, path: AbsPath, rules: Rules, *, told: bool) -> WatchedFolder | None:
        """One folder, watched and listed; None when it cannot be, or was before."""
        known = self._folders.get(path)
        if known is not None and known.rules.shallow and not rules.shallow:
            self._drop(path)
        elif known is not None:
            return None
        elif not rules.shallow:
            if rules.aside is not None and self._aside[rules.aside] >= MAX_ASIDE:
                return None
            self.crowded = self.crowded or len(self._folders) >= MAX_FOLDERS
            if self.crowded:
                return None
        follow = self._may_be_link(path)
        self.watches.watch(path, follow=follow)
        listed = listing(path, follow=follow)
        if listed is None:
            self.watches.unwatch(path)
            return None
        if isinstance(listed, Shortage):
            self._come_back(path, listed)
            listed = Listing(0, {}, {})
        folder = WatchedFolder(rules, listed.inode, listed.files, listed.folders, set(listed.shared))
        self._folders[path] = folder
        if rules.aside is not None:
            self._aside[rules.aside] += 1
        for name, stamp in folder.files.items():
            doubt = self._doubt(join(path, name), stamp, is_new=told, before=None)
            if doubt is not None:
                folder.doubted[name] = doubt
        if IGNORE_FILE in folder.files:
            folder.rules = rules.with_own(path)
        return folder

    def _come_back(self, path: AbsPath, shortage: Shortage) -> None:
        """What is in a folder cannot be read for now: it is polled until it can."""
        self.trouble = shortage.reason
        self.watches.without[path] = None

    def _ways_below(self, path: AbsPath, folder: WatchedFolder) -> Iterator[tuple[AbsPath, Rules]]:
        for name in folder.folders:
            inside = join(path, name)
            below = folder.rules.below(inside)
            if below is not None:
                yield inside, below
        if not folder.rules.shallow:
            for name in folder.links:
                yield from self._way_through(join(path, name), folder.rules)

    def _way_through(self, link: AbsPath, rules: Rules) -> Iterator[tuple[AbsPath, Rules]]:
        """Through a link to a folder, if it leads out of all that is watched and no other link has led there.

        One that was entered stays so wherever it leads by now: only `settle` may find that out, because that tells of
        what has changed below it.
        """
        below = rules.set_aside(link).below(link)
        if below is None:
            return
        if link not in self._linked:
            real = linked_folder(link)
            if real is None or any(link.startswith(other + os.sep) for other in self._linked):
                return
            known = (*self._linked.values(), *map(real_path, self._tops))
            if any(is_inside(real, other) or is_inside(other, real) for other in known):
                return
            self._linked[link] = real
        yield link, below

    def _mind_link(self, folder: WatchedFolder, path: AbsPath, *, is_shared: bool) -> None:
        """A name in a folder was looked at: does what it leads to have other names, and is it another folder now?"""
        name = os.path.basename(path)
        if path in self._linked and linked_folder(path) != self._linked[path]:
            self._forget(path)
            self._linked.pop(path, None)
        if not is_shared:
            folder.links.discard(name)
            self._shared.pop(path, None)
        elif name not in folder.links or path not in self._shared:
            folder.links.add(name)
            self._share(path)
        if is_shared and path not in self._folders:
            for link, rules in self._way_through(path, folder.rules) if not folder.rules.shallow else ():
                self._enter(link, rules)

    def _remove_file(self, folder: WatchedFolder, path: AbsPath, name: str) -> None:
        del folder.files[name]
        folder.doubted.pop(name, None)
        folder.links.discard(name)
        self._shared.pop(path, None)
        if path in self._linked:
            self._forget(path)
            self._linked.pop(path, None)
        self._tell(path, Change.DELETED)
        self._mind_rules(path, name)

    def _remove_folder(self, parent: WatchedFolder, path: AbsPath, name: str) -> None:
        del parent.folders[name]
        self._forget(path)
        self._tell(path, Change.DELETED)

    def _forget(self, path: AbsPath) -> None:
        """Tell that everything in a folder is gone, the innermost first, and leave it."""
        for known in reversed(self._with_below(path)):
            folder = self._folders.get(known)
            if folder is not None:
                for name in tuple(folder.files):
                    self._remove_file(folder, join(known, name), name)
                self._drop(known)
            if known != path:
                self._tell(known, Change.DELETED)

    def _with_below(self, path: AbsPath) -> list[AbsPath]:
        """A folder and all below it that are known, the outermost first."""
        known = [path]
        for folder in known:
            if folder in self._folders:
                known += (join(folder, name) for name in self._folders[folder].folders)
        return known

    def _drop(self, path: AbsPath) -> None:
        """Leave one folder and report nothing."""
        folder = self._folders.pop(path)
        self.watches.unwatch(path)
        self._linked.pop(path, None)
        if folder.rules.aside is not None:
            self._aside[folder.rules.aside] -= 1
        for name in folder.links:
            self._shared.pop(join(path, name), None)

    def _is_top(self, path: AbsPath) -> bool:
        return path in self._tops or path in self._attended

    def _share(self, path: AbsPath) -> None:
        if len(self._shared) < MAX_SHARED:
            self._shared[path] = self._certain(target_stamp(path))

    def _certain(self, stamp: int) -> int:
        """The time itself, unless it is so young that the next change may bear it too: then one that no file has."""
        return stamp if stamp < self._tick() else -1

    def _may_be_link(self, path: AbsPath) -> bool:
        return self._is_top(path) or path in self._linked

    def _tick(self) -> float:
        """From when on the time of a change is too young to be relied on."""
        return self._now() * 1e9 - DOUBT_NANOSECONDS

    def _tell(self, path: AbsPath, change: Change) -> None:
        self._found.append(PathChange(path, change))
