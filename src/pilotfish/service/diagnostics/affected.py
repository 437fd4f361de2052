"""Which files an edit may have broken. It over-approximates: `feedback.shapes` says how, and what fools it."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.shapes.changes import EVERYTHING, ChangedSymbols, changed_go, changed_symbols, changed_text
from pilotfish.feedback.shapes.go import GO
from pilotfish.feedback.shapes.imports import EVERYBODYS, is_package
from pilotfish.feedback.shapes.likely import likely_words
from pilotfish.feedback.shapes.python import PYTHON
from pilotfish.feedback.shapes.spread import Reach, Spread
from pilotfish.model import AbsPath
from pilotfish.paths import distance
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.project_shapes import OutOfTime, ProjectShapes
from pilotfish.system.clock import current_time


class EditedText(Struct, frozen=True):
    """One changed file; `before` is None where nobody knows what it was, `after` is None where it is gone."""

    path: AbsPath
    before: str | None
    after: str | None


class Affected(Struct, frozen=True):
    """The files that may be affected, the likeliest first; `complete` when no other file can be."""

    files: tuple[AbsPath, ...]
    complete: bool
    unlikely: frozenset[AbsPath] = frozenset()
    """Those of them that mention nothing of what was changed: only a type that is inferred may reach them."""

    def only(self, extensions: tuple[str, ...]) -> "Affected":
        return replace(self, files=tuple(path for path in self.files if path.endswith(extensions)))


NOBODY = Affected((), complete=True)


class AffectedFiles:
    def __init__(self, words: ProjectWords) -> None:
        self._words = words

    async def of_edits(
        self,
        root: AbsPath,
        edits: Sequence[EditedText],
        extensions: Collection[str],
        seconds: float,
        broken: Collection[AbsPath] = (),
    ) -> Affected:
        """What these edits may have broken below a root. `broken`: files that were told to be, checked first."""
        started = current_time()
        changes = await anyio.to_thread.run_sync(_changes, tuple(edits))
        if not changes:
            return NOBODY
        known = await self._words.index(root, seconds)
        if known is None:
            return Affected((), complete=False)
        index, complete = known
        edited = {edit.path: [text for text in (edit.before, edit.after) if text is not None] for edit in edits}
        project = ProjectShapes(self._words.shapes, index, extensions, edited)
        spread = Spread(project)
        unlikely = frozenset[AbsPath]()
        with anyio.move_on_after(seconds - (current_time() - started)) as scope:
            try:
                unlikely = await anyio.to_thread.run_sync(_run, spread, project, changes, edits, abandon_on_cancel=True)
            finally:
                project.is_over = True
        complete = complete and not scope.cancelled_caught
        unlikely -= frozenset(broken)
        return Affected(_ordered(spread.found.copy(), edits, frozenset(broken), unlikely), complete, unlikely)


def _changes(edits: Sequence[EditedText]) -> dict[AbsPath, ChangedSymbols]:
    """Blocking: for a thread."""
    return {edit.path: change for edit in edits if (change := change_of(edit))}


def _run(
    spread: Spread,
    project: ProjectShapes,
    changes: Mapping[AbsPath, ChangedSymbols],
    edits: Sequence[EditedText],
) -> frozenset[AbsPath]:
    """The files that mention nothing of what was changed. Blocking: for a thread."""
    with suppress(OutOfTime):
        spread.run(_with_packages(changes, edits, project.paths))
        if any(os.path.basename(path) in EVERYBODYS for path in changes):
            spread.found.update({path: Reach(9, 0) for path in project.paths if path not in spread.found})
        words = [_words(edit, changes[edit.path]) for edit in edits if edit.path in changes]
        if None not in words:
            wanted = frozenset[str]().union(*(one or () for one in words))
            return frozenset(
                path for path in spread.found if all(wanted.isdisjoint(shape.outside) for shape in project.shapes(path))
            )
    return frozenset()


def _words(edit: EditedText, changed: ChangedSymbols) -> frozenset[str] | None:
    return likely_words(changed, edit.before, edit.after) if edit.path.endswith(PYTHON) else None


def _ordered(
    found: Mapping[AbsPath, Reach],
    edits: Sequence[EditedText],
    broken: frozenset[AbsPath],
    unlikely: frozenset[AbsPath],
) -> tuple[AbsPath, ...]:
    near, own = edits[0].path, {edit.path for edit in edits}

    def likeliest(path: AbsPath) -> tuple[bool, bool, bool, int, int, int, str]:
        reach = found.get(path, Reach(0, 0))
        first = path not in broken, path in unlikely, not reach.mentions
        return *first, reach.steps, -reach.mentions, distance(path, near), path

    return tuple(sorted((found.keys() | broken) - own, key=likeliest))


def _with_packages(
    changes: Mapping[AbsPath, ChangedSymbols], edits: Iterable[EditedText], paths: Iterable[AbsPath]
) -> dict[AbsPath, ChangedSymbols]:
    """Where a package came or went, all that is in it may be found otherwise."""
    folders = tuple(
        f"{os.path.dirname(edit.path)}/"
        for edit in edits
        if is_package(edit.path) and (edit.before is None or edit.after is None)
    )
    inside = {path: EVERYTHING for path in paths if path.startswith(folders)} if folders else {}
    return {**inside, **changes}


async def affecting(edits: Sequence[EditedText]) -> list[EditedText]:
    """Those that changed what other files can see; a comment does not."""
    changes = await anyio.to_thread.run_sync(_changes, tuple(edits))
    return [edit for edit in edits if edit.path in changes]


@lru_cache(maxsize=16)
def change_of(edit: EditedText) -> ChangedSymbols:
    changed = changed_symbols if edit.path.endswith(PYTHON) else changed_go if edit.path.endswith(GO) else changed_text
    # Where there was nothing, another file may have been found by the same name.
    return changed(edit.before or None, edit.after)
