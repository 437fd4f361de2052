"""A check of many files, a few at a time, made into one answer.

Named files must be checked. Of a folder, every file that some server is for must be; where that server is missing, its
files are counted, and the answer about the folder is partial.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import (
    OURSELVES,
    Diagnostic,
    DiagnosticsAnswer,
    Effort,
    Error,
    State,
    answer_from,
    error_text,
    is_empty,
)
from pilotfish.api.questions import Operation
from pilotfish.errors import Code
from pilotfish.model import AbsPath
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.source_files import files_below
from pilotfish.system.tasks import owned_tasks

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

MAX_REASONS = 5
"""Different reasons in one answer; how many more there are is said."""

NOT_TEXT = frozenset({Code.UNSUPPORTED, Code.LIMIT_EXCEEDED, Code.FILE_MISSING})
"""Why a file of a folder is passed over: binary, too large, gone in between (DOC-6)."""


class Gathered(Struct, frozen=True):
    """The files to check, each once."""

    named: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Found in a folder."""
    unserved: Mapping[Error, int] = field(default_factory=dict[Error, int])
    """Why files of folders cannot be checked, and how many."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.named, *self.listed)


async def gathered(workspace: OpenWorkspace, paths: Sequence[str]) -> Gathered:
    named, below = await anyio.to_thread.run_sync(_files, paths)
    unserved = await workspace.unserved(below)
    listed = tuple(file for file in below if file not in unserved)
    return Gathered(named, listed, Counter(why for why in unserved.values() if why is not None))


def shortfalls(found: Gathered) -> tuple[Error, ...]:
    """What is missing for a verdict on the whole of the folders."""
    return tuple(Error(why.server_id, _told(why, count), why.code) for why, count in found.unserved.items())


async def verdict(
    workspace: OpenWorkspace,
    found: Gathered,
    *,
    texts: Mapping[str, str] | None = None,
    done: Callable[[], None],
) -> list[DiagnosticsAnswer]:
    """The verdicts on all files, in their order; `done` hears of each that is finished."""
    answers: dict[str, DiagnosticsAnswer] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(path: str) -> None:
        async with limit:
            answers[path] = await workspace.check(path, texts=texts)
        done()

    async with owned_tasks() as tasks:
        for path in found.files:
            tasks.start_soon(one, path)
    owed = [answers[path] for path in found.named]
    return owed + [answers[path] for path in found.listed if not _is_no_text(answers[path])]


def merged(
    answers: Sequence[DiagnosticsAnswer], *, duration_ms: int, errors: Sequence[Error] = (), notes: Sequence[str] = ()
) -> DiagnosticsAnswer:
    """One answer of those about single files; `errors` and `notes` are about what nobody could be asked about."""
    states = {answer.meta.state for answer in answers}
    reasons = [answer.meta.reason for answer in answers if answer.meta.reason and not _is_about_errors(answer)]
    caveats = _some(reasons) if answers or errors else ("there is no file here that could be checked",)
    effort = Effort(
        duration_ms=duration_ms,
        server_hits=sum(answer.meta.server_hits for answer in answers),
        errors=tuple(dict.fromkeys([*(error for answer in answers for error in answer.errors), *errors])),
        caveats=caveats,
        stale="some of it is about an older text" if State.STALE in states else None,
        timed_out=any(answer.meta.timed_out for answer in answers),
        warnings=tuple(dict.fromkeys([*(note for answer in answers for note in answer.meta.warnings), *notes])),
    )
    data = {path: items for answer in answers for path, items in (answer.data or {}).items()}
    return answer_from(Operation.DIAGNOSTICS, data, effort)


def only(answer: DiagnosticsAnswer, wanted: Callable[[Diagnostic], bool]) -> DiagnosticsAnswer:
    """The answer with the wanted diagnostics alone; every file that was checked stays in it."""
    if answer.data is None:
        return answer
    data = {path: tuple(filter(wanted, items)) for path, items in answer.data.items()}
    empty = answer.meta.state is State.FRESH and is_empty(data)
    return replace(answer, data=data, meta=replace(answer.meta, empty=empty))


def _is_no_text(answer: DiagnosticsAnswer) -> bool:
    return bool(answer.errors) and all(
        error.server_id == OURSELVES and error.code in NOT_TEXT for error in answer.errors
    )


def _is_about_errors(answer: DiagnosticsAnswer) -> bool:
    """Whether the reason only repeats the errors, which are told anyway."""
    return answer.meta.reason == "; ".join(map(error_text, answer.errors))


def _some(reasons: Sequence[str]) -> tuple[str, ...]:
    distinct = [*dict.fromkeys(reasons)]
    more = len(distinct) - MAX_REASONS
    return (*distinct[:MAX_REASONS], *([f"and {more} more"] if more > 0 else []))


def _files(paths: Sequence[str]) -> tuple[tuple[str, ...], list[AbsPath]]:
    """The files that were named, and all below the folders that were."""
    folders = [path for path in paths if os.path.isdir(path)]
    named = dict.fromkeys(path for path in paths if path not in folders)
    below = (file for folder in folders for file in files_below(AbsPath(os.path.realpath(folder))))
    return tuple(named), [*dict.fromkeys(below)]


def _told(why: Error, count: int) -> str:
    files = "1 file was" if count == 1 else f"{count} files were"
    return f"{files} not checked: {why.message}"
