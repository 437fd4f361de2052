"""What is known of each file: the texts that it had and the verdicts on them, each in its world (DIAG-14).

A world is the number of the last change on disk that was noticed. A verdict is kept with the worlds in which its check
began and ended, and stands until the first change after it began that may affect its file. Which files a change affects
is told by whoever has found it out (`explain`); until then it may affect every file of its repository. So a branch
switch, a pull or another writer makes what was known before it unusable, and never the state that an edit is compared
with. Nor is a verdict such a state for a change that came while its check ran: it may be of the text before or after.

This errs in one direction: a state that would still be right may be thrown away, and is then computed again.
"""

import os
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.delta import CheckedText
from pilotfish.feedback.linemap import lines_of
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.paths import ancestors, is_inside, package_folder
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome
from pilotfish.service.texts import old_text_to_send
from pilotfish.service.workspace import Workspace
from pilotfish.system.git import committed_content

MAX_BYTES = 48 * 1024 * 1024
"""Of texts and diagnostics, roughly: some thousands of files. The least recently used ones go first."""

MAX_TEXT = 2 * 1024 * 1024
"""Of one text, in characters; the states of a larger file are not kept."""

MAX_STATES = 6
"""Of one file: enough for the edits of a turn, whose first text may be asked for again."""

MAX_CHANGES = 64
"""Changes that are remembered, each of any number of files, so that a long day costs no memory. What was known before
the oldest is not used again: an edit is compared with what was known a few changes ago, or with what is computed."""

MAX_NOTED = 5_000
"""Files of one change of which it is kept that there was none before, or is none now: of more, nobody knows, as of a
file that nobody has read."""

PROSE = (".md", ".rst", ".txt", ".adoc")
"""No server that judges code reads these."""

LOCKS = ("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "uv.lock", "poetry.lock", "Pipfile.lock")
"""Nor these: what is installed, they read where it is."""

CACHE = "/.cache/"
"""Where servers write themselves what they have learned, as clangd does: that is no change of what they judge."""

ALIKE = 0.5
"""Share of lines that a moved file has kept: whoever moves one adjusts its imports."""

Judges = tuple[tuple[str, float], ...]
"""The processes that judge a file: which server, and when it was started."""


class KnownState(Struct, frozen=True):
    """A text that a file had in a world; without `outcomes`, nobody has judged it then."""

    world: int
    text: str
    outcomes: tuple[Outcome, ...] = ()
    listed: tuple[Diagnostic, ...] = ()
    until: int = 0
    """The world in which its check ended."""

    @property
    def judges(self) -> Judges:
        return judges_of(self.outcomes)

    @property
    def checked(self) -> CheckedText:
        return CheckedText(self.text, self.listed)

    @property
    def size(self) -> int:
        return len(self.text) + sum(len(one.message) + 200 for one in self.listed) + 200


class _Change(Struct):
    number: int
    scope: AbsPath
    """The repository, or the root, in which it was noticed."""
    paths: frozenset[AbsPath]
    causes: frozenset[AbsPath]
    """The same with one folder of packages in place of all that was changed in it."""
    affected: frozenset[AbsPath] | None = None
    """None: nobody knows yet, so any file of the scope."""
    first: int = 0
    """The number of the first change that `affected` speaks of, together with all until this one: a file may be as it
    was before, and others that were judged in between are not."""

    def may_affect(self, path: AbsPath, world: int) -> bool:
        """Whether it may have changed what a file was in a world before it."""
        if path in self.paths:
            return True
        is_known = self.affected is not None and not self.first <= world < self.number
        return path in (self.affected or ()) if is_known else is_inside(path, self.scope)


NO_FILE = CheckedText("", ())
"""The state of a file that does not exist."""


class FileStates:
    def __init__(self) -> None:
        self._files: OrderedDict[AbsPath, tuple[KnownState, ...]] = OrderedDict()
        """By world, the newest last."""
        self._changes: deque[_Change] = deque(maxlen=MAX_CHANGES)
        self._bytes = 0
        self._forgotten = 0
        """The last change that is not in `_changes` any more."""
        self.world = 0

    # --- Changes -----------------------------------------------------------------------------------------------------

    def note(self, root: AbsPath, changes: Sequence[PathChange]) -> None:
        """These files were changed on disk: the next world begins."""
        if not changes:
            return
        for one in changes[:MAX_NOTED]:
            if one.change is Change.CREATED and one.path not in self._files:
                # Whoever asks what it had before learns that there was no such file.
                self._put(one.path, KnownState(self.world, ""))
        unread = frozenset(
            one.path for one in changes if one.path.endswith((*PROSE, *LOCKS)) or CACHE in f"{one.path}/"
        )
        read = frozenset(one.path for one in changes) - unread
        if unread:
            self._next(scope_of(root), unread)
            self._changes[-1].affected = frozenset()
        if read:
            self._next(scope_of(root), read)
        for one in changes[:MAX_NOTED]:
            if one.change is Change.DELETED:
                self._put(one.path, KnownState(self.world, ""))

    def lose(self, root: AbsPath) -> None:
        """Changes below a root may have been missed: nothing that was known of it stands."""
        self._next(scope_of(root), frozenset())

    def explain(self, before: Mapping[AbsPath, str | None], affected: Iterable[AbsPath], until: int) -> None:
        """The changes of these files since they had these texts, and until a world, affect at most these others."""
        found, since = frozenset(affected), {path: self._last_with(path, text) for path, text in before.items()}
        own = [one for one in self._since(min(since.values(), default=self.world)) if one.paths & since.keys()]
        for change in own:
            is_known = change.affected is not None or change.number > until
            if not is_known and all(path in since and since[path] < change.number for path in change.paths):
                change.affected, change.first = found, min(own[0].number, change.number)

    def _last_with(self, path: AbsPath, text: str | None) -> int:
        """The last world in which a file is known to have had a text; else the one before its last change."""
        known = [one.world for one in self._files.get(path, ()) if one.text == text]
        return max(known, default=self._last_change(path) - 1)

    def _last_change(self, path: AbsPath) -> int:
        return next((one.number for one in reversed(self._changes) if path in one.paths), self.world + 1)

    def changed_since(self, world: int, path: AbsPath) -> frozenset[AbsPath] | None:
        """The files whose changes after a world may affect a file; None where not all of them are known."""
        if world < self._forgotten:
            return None
        found = set[AbsPath]()
        for change in self._since(world):
            if change.may_affect(path, world):
                if not change.paths:
                    return None
                found |= change.causes
        return frozenset(found)

    def unexplained(self, root: AbsPath, most: int) -> dict[int, dict[AbsPath, str | None]]:
        """By number: the changes of so many files at most that may affect a root, with the texts before them.

        Without those that somebody has explained. Of a file that was changed again since, nobody knows what it was made
        then: such a change is not among them.
        """
        found, later = dict[int, dict[AbsPath, str | None]](), set[AbsPath]()
        for change in reversed(self._changes):
            is_open = change.affected is None and len(change.paths) <= most and is_inside(root, change.scope)
            if is_open and later.isdisjoint(change.paths):
                found[change.number] = {path: self._text_at(path, change.number - 1) for path in change.paths}
            later |= change.paths
        return found

    def explain_change(self, number: int, affected: Iterable[AbsPath]) -> None:
        """The change of this number affects at most these files beside its own."""
        for change in self._since(number - 1):
            change.affected = frozenset(affected) if change.number == number else change.affected

    def has_changed(self, path: AbsPath, world: int) -> bool:
        """Whether a file was changed after a world, as far as that was noticed."""
        return self._is_noted(path, world, self.world)

    def has_any_changed(self, root: AbsPath, world: int) -> bool:
        """Whether anything was changed in the repository of a root after a world, or may have been."""
        return world < self._forgotten or any(is_inside(root, one.scope) for one in self._since(world))

    def _since(self, world: int) -> Iterable[_Change]:
        start = bisect_right(self._changes, world, key=lambda change: change.number)
        return (self._changes[index] for index in range(start, len(self._changes)))

    def _next(self, scope: AbsPath, paths: frozenset[AbsPath]) -> None:
        if len(self._changes) == MAX_CHANGES:
            self._forgotten = self._changes[0].number
        self.world += 1
        causes = frozenset(AbsPath(package_folder(path) or path) for path in paths)
        self._changes.append(_Change(self.world, scope, paths, causes, first=self.world))

    # --- Texts -------------------------------------------------------------------------------------------------------

    def saw(self, path: AbsPath, text: str) -> None:
        """The file has this text now. One that nobody noticed the writing of is a change of its own."""
        last = self._last(path)
        if last is not None and last.text != text and not self._is_noted(path, last.world, self.world):
            self._next(scope_of(AbsPath(os.path.dirname(path))), frozenset({path}))
        if last is None or last.text != text:
            self._put(path, KnownState(self.world, text))

    def had(self, path: AbsPath, text: str) -> None:
        """The file had this text before its last change, as somebody says who saw it."""
        world = max(0, min(self._last_change(path), self.world) - 1)
        # That it had the text in an earlier world, too, tells nothing of this one.
        if self._text_at(path, world) != text:
            self._put(path, KnownState(world, text))

    def latest_text(self, path: AbsPath) -> str | None:
        """The text that it has as far as anybody has noticed; None: nobody has looked since it was changed."""
        last = self._last(path)
        return None if last is None or self._is_noted(path, last.world, self.world) else last.text

    def last_text(self, path: AbsPath) -> str | None:
        """The last text that was seen of it, whatever was noticed since."""
        last = self._last(path)
        return None if last is None else last.text

    def text_before(self, path: AbsPath, now: str) -> str | None:
        """The last text that is not the one of now; None where nobody knows it."""
        states = self._files.get(path, ())
        number = max((index for index, one in enumerate(states) if one.text != now), default=None)
        if number is None or (not now and len(states) - number > 2):
            # Nothing else was seen; or it was deleted, made anew without anybody looking, and deleted again.
            return None
        return states[number].text

    def deleted_text(self, path: AbsPath) -> str | None:
        """The text with which the file was deleted; None: it never was, or more than that has changed since."""
        states = self._files.get(path, ())
        gone = max((index for index, one in enumerate(states) if not one.text), default=0)
        known = next((one for one in reversed(states[:gone]) if one.text), None)
        changed = None if known is None else self.changed_since(known.world, path)
        return known.text if known is not None and changed is not None and changed <= {path} else None

    def _text_at(self, path: AbsPath, world: int) -> str | None:
        """The text that a file had in a world; None where nobody knows."""
        known = [one for one in self._files.get(path, ()) if one.world <= world]
        if known and not self._is_noted(path, known[-1].world, world):
            return known[-1].text
        # The first text that was seen later is that of this world, if nothing was noticed in between.
        later = next((one for one in self._files.get(path, ()) if one.world > world), None)
        return later.text if later is not None and not self._is_noted(path, world, later.world) else None

    def _is_noted(self, path: AbsPath, after: int, until: int) -> bool:
        return any(path in one.paths for one in self._since(after) if one.number <= until)

    # --- Verdicts ----------------------------------------------------------------------------------------------------

    def put(self, verdict: FileVerdict, world: int) -> None:
        """Keep a fresh verdict of a check that began in this world."""
        is_doubtful, latest = self._is_noted(verdict.path, world, self.world), self.world
        self.saw(verdict.path, verdict.text)
        # A text that nobody noticed the writing of has begun a world of its own, which the verdict is about. One that
        # was noted during the check may have been read before or after that: then only the text is known.
        if not is_doubtful:
            world = self.world if self.world > latest else world
            state = KnownState(world, verdict.text, verdict.outcomes, verdict.diagnostics, self.world)
            self._put(verdict.path, state)

    def put_before(self, verdict: FileVerdict, edited: Mapping[AbsPath, str | None]) -> None:
        """Keep a verdict on a file as it was before edits, in the last world in which those files had these texts."""
        for world in range(self.world, max(self._forgotten, self.world - MAX_CHANGES), -1):
            if all(text is not None and text == self._text_at(path, world) for path, text in edited.items()):
                changed = self.changed_since(world, verdict.path)
                if changed is not None and changed <= edited.keys():
                    state = KnownState(world, verdict.text, verdict.outcomes, verdict.diagnostics, world)
                    self._put(verdict.path, state)
                return

    def before(
        self, now: FileVerdict, own: Mapping[AbsPath, str | None], settings: Collection[AbsPath] = ()
    ) -> CheckedText | None:
        """The state of a file in the world that differs from the present one by the edits alone; None: not known.

        `own`: the texts before these edits. `settings`: files that were changed with them and for which servers are
        started anew: then another process may have judged the state before.
        """
        text, judges = own.get(now.path, now.text), judges_of(now.outcomes)
        names = [server for server, _ in judges] if settings else None
        allowed = {*own, now.path, *settings}
        if text == "" and now.path in own:
            return NO_FILE
        for state in reversed(self._files.get(now.path, ())):
            is_same = state.judges == judges or (names is not None and [one for one, _ in state.judges] == names)
            if state.text == text and state.outcomes and is_same:
                changed = self.changed_since(state.world, now.path)
                while_checked = (one for one in self._since(state.world) if one.number <= state.until)
                is_of_two = any(one.may_affect(now.path, state.world) for one in while_checked)
                if is_of_two or changed is None or not changed <= allowed or not self._fits(state.world, own, now):
                    continue
                if not settings or state.judges != judges or not changed.isdisjoint(settings):
                    self._files.move_to_end(now.path)
                    return state.checked
        return None

    def _fits(self, world: int, own: Mapping[AbsPath, str | None], now: FileVerdict) -> bool:
        """Whether the edited files had the texts before the edits in that world."""
        if now.path not in own and self._is_noted(now.path, world, self.world):
            return False
        return all(
            text is not None and text == self._text_at(path, world) for path, text in own.items() if path != now.path
        )

    def standing(self, path: AbsPath, text: str, judges: Judges) -> KnownState | None:
        """The verdict on a file that stands in the present world."""
        for state in reversed(self._files.get(path, ())):
            if state.text == text and state.outcomes and state.judges == judges:
                return state if self.changed_since(state.world, path) == frozenset() else None
        return None

    def current(self, path: AbsPath, processes: Collection[tuple[str, float]]) -> FileVerdict | None:
        """The verdict on a file that stands, by processes that still run; whoever asks has read what was noticed."""
        state = self._judged(path)
        if state is None or not set(state.judges) <= set(processes) or self.latest_text(path) != state.text:
            return None
        return FileVerdict(path, state.text, state.outcomes, listed=state.listed) if self.is_current(path) else None

    def previous(self, verdict: FileVerdict) -> CheckedText | None:
        """The verdict before this one, whatever changed since: for a list that marks what is new to its reader."""
        judged = [one for one in self._files.get(verdict.path, ()) if one.outcomes]
        if judged and judged[-1].text == verdict.text and judged[-1].listed == verdict.diagnostics:
            judged.pop()
        return judged[-1].checked if judged else None

    def judged_by(self, server: str, root: AbsPath) -> list[AbsPath]:
        """The files below a root that a server has judged, the last ones that were used first."""
        found = [path for path in reversed(self._files) if is_inside(path, root) and self.knows(path)]
        return [path for path in found if any(server == one for state in self._files[path] for one, _ in state.judges)]

    def knows(self, path: AbsPath) -> bool:
        return self._judged(path) is not None

    def last_listed(self, path: AbsPath) -> tuple[Diagnostic, ...] | None:
        """What the file had when it was last checked, in whichever world."""
        state = self._judged(path)
        return None if state is None else state.listed

    def is_current(self, path: AbsPath) -> bool:
        """Whether there is a verdict on it that nothing which was noticed since may have changed."""
        state = self._judged(path)
        return state is not None and self.changed_since(state.world, path) == frozenset()

    def _judged(self, path: AbsPath) -> KnownState | None:
        """The last state that was judged."""
        return next((one for one in reversed(self._files.get(path, ())) if one.outcomes), None)

    def last(self) -> dict[AbsPath, tuple[Diagnostic, ...]]:
        """What each file had when it was last checked, where it has not changed since; see `is_current`."""
        newest = {path: states[-1] for path, states in self._files.items()}
        return {
            path: state.listed
            for path, state in newest.items()
            if state.outcomes and not self._is_noted(path, state.world, self.world)
        }

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep nothing of these files any longer."""
        for path in tuple(filter(is_meant, self._files)):
            self._remove(path)

    # --- The store ---------------------------------------------------------------------------------------------------

    def _last(self, path: AbsPath) -> KnownState | None:
        states = self._files.get(path)
        return states[-1] if states else None

    def _put(self, path: AbsPath, state: KnownState) -> None:
        if len(state.text) > MAX_TEXT:
            return
        kept = self._remove(path)
        if kept and kept[-1].text == state.text:
            # One string for all states of the same text.
            state = replace(state, text=kept[-1].text)
        kept = tuple(one for one in kept if one.outcomes or one.world < state.world or one.text != state.text)
        states = sorted((*kept, state), key=lambda one: one.world)[-MAX_STATES:]
        self._files[path] = tuple(states)
        self._bytes += sum(one.size for one in states)
        while self._bytes > MAX_BYTES and len(self._files) > 1:
            self._remove(next(iter(self._files)))

    def _remove(self, path: AbsPath) -> tuple[KnownState, ...]:
        states = self._files.pop(path, ())
        self._bytes -= sum(one.size for one in states)
        return states


def judges_of(outcomes: Iterable[Outcome]) -> Judges:
    return tuple((one.server, one.incarnation) for one in outcomes if one.diagnostics is not None)


def scope_of(root: AbsPath) -> AbsPath:
    """The repository that a root is in: its packages may read each other. Without one, the root."""
    return next((AbsPath(one) for one in ancestors(root) if os.path.exists(os.path.join(one, ".git"))), root)


# --- What files were before an edit -----------------------------------------------------------------------------------
# An edit is judged by what it changed. Where nobody has checked a file before the edit, its old text is checked for it:
# what the host says of it, what was last seen, what git has committed, the surest source first.


async def text_before(states: FileStates, workspace: Workspace, path: AbsPath, now: str) -> str | None:
    """The text that became `now`, where the host has not said it; None where nobody knows. Empty for a new file."""
    seen = states.text_before(path, now)
    return seen if seen is not None else await committed_text(workspace, path, now)


async def committed_text(workspace: Workspace, path: AbsPath, now: str) -> str | None:
    """What the last commit has of a file, with the line ends of `now`; None where it has nothing of it."""
    git = workspace.program("git")
    content = None if git is None else await anyio.to_thread.run_sync(partial(committed_content, git), path)
    text = None if content is None else _decoded(content, now)
    return None if text is None else await anyio.to_thread.run_sync(old_text_to_send, path, text)


def moved_files(created: Mapping[AbsPath, str], deleted: Mapping[AbsPath, str]) -> dict[AbsPath, AbsPath]:
    """Which of the created files is which of the deleted ones under another name, the most alike first."""
    scores = sorted(
        ((_likeness(text, old), path, gone) for path, text in created.items() for gone, old in deleted.items()),
        reverse=True,
    )
    found = dict[AbsPath, AbsPath]()
    for score, path, gone in scores:
        if score >= ALIKE and path not in found and gone not in found.values():
            found[path] = gone
    return found


def _likeness(one: str, other: str) -> float:
    lines, others = set(lines_of(one)), set(lines_of(other))
    return len(lines & others) / max(len(lines), len(others), 1)


def _decoded(content: bytes, now: str) -> str | None:
    """A committed text with the line ends that the file has: git may convert them."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\r\n" in now and "\r\n" not in text:
        return text.replace("\n", "\r\n")
    return text
