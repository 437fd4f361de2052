"""A check of many files, a few at a time, made into one answer.

Named files must be checked. Of a folder, every file that some server is for must be: one that cannot be read or reached
is named, and where a server is missing its files are counted; the answer about the folder is then partial.
"""

from collections.abc import Callable, Mapping, Sequence

import anyio
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
from pilotfish.counting import counted
from pilotfish.errors import Code
from pilotfish.service.project_files import FilesToCheck, first_of, relative
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.tasks import owned_tasks

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

MAX_REASONS = 5
"""Different reasons in one answer; the others are counted."""

NO_FILES = "no file here can be checked"


async def check_files(
    workspace: OpenWorkspace,
    chosen: FilesToCheck,
    *,
    done: Callable[[str, DiagnosticsAnswer], None],
) -> None:
    """Call `done` with the answer about each file, as soon as it is known."""
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def check(path: str) -> None:
        async with limit:
            answer = await workspace.check(path)
        done(path, answer)

    async with owned_tasks() as tasks:
        for path in chosen.files:
            tasks.start_soon(check, path)


def merged(
    chosen: FilesToCheck, answers: Mapping[str, DiagnosticsAnswer], root: str, *, duration_ms: int, skip_missing: bool
) -> DiagnosticsAnswer:
    """One answer about everything that was selected; a check that was interrupted has not heard of all."""
    listed = [path for path in chosen.listed if path in answers]
    gone = {path for path in listed if _codes(answers[path]) == {Code.FILE_MISSING} and _is_text(path)}
    refused = {path for path in listed if path not in gone and _codes(answers[path])}
    heard = [answer for path, answer in answers.items() if path not in gone | refused]
    unread = _unread(root, {path: answers[path] for path in answers if path in refused})
    unknown = len(chosen.files) - len(answers)
    return one_answer(chosen, heard, unread, duration_ms=duration_ms, skip_missing=skip_missing, unknown=unknown)


def one_answer(
    chosen: FilesToCheck,
    heard: Sequence[DiagnosticsAnswer],
    unread: Sequence[Error] = (),
    *,
    duration_ms: int,
    skip_missing: bool,
    unknown: int = 0,
) -> DiagnosticsAnswer:
    """What was heard of the files that were selected; `unread`: those that no server was asked about.

    `unknown`: how many files were not heard of at all.
    """
    states = {answer.meta.state for answer in heard}
    missing = chosen.missing
    owed = [] if skip_missing else missing
    skipped = [error.message for error in missing] if skip_missing else []
    problems = [*(error for answer in heard for error in answer.errors), *unread, *chosen.unreached, *owed]
    reasons = [answer.meta.reason for answer in heard if answer.meta.reason and not _is_about_errors(answer)]
    if unknown:
        reasons.insert(0, f"interrupted: {unknown} of {counted(len(chosen.files), 'file')} were not checked")
    notes = [*(note for answer in heard for note in answer.meta.warnings), *skipped, *chosen.skipped]
    effort = Effort(
        duration_ms=duration_ms,
        server_hits=sum(answer.meta.server_hits for answer in heard),
        errors=tuple(dict.fromkeys(problems)),
        caveats=_some(reasons) if heard or problems or unknown else (NO_FILES,),
        stale="some of it is about an older text" if State.STALE in states else None,
        timed_out=any(answer.meta.timed_out for answer in heard),
        warnings=tuple(dict.fromkeys(notes)),
    )
    data = {path: items for answer in heard for path, items in (answer.data or {}).items()}
    return answer_from(Operation.DIAGNOSTICS, data, effort)


def only(answer: DiagnosticsAnswer, wanted: Callable[[Diagnostic], bool]) -> DiagnosticsAnswer:
    """The answer with the wanted diagnostics alone; every file that was checked stays in it."""
    if answer.data is None:
        return answer
    data = {path: tuple(filter(wanted, items)) for path, items in answer.data.items()}
    empty = answer.meta.state is State.FRESH and is_empty(data)
    return replace(answer, data=data, meta=replace(answer.meta, empty=empty))


def _unread(root: str, refused: Mapping[str, DiagnosticsAnswer]) -> list[Error]:
    """Files of folders that are not text, too large, or closed to us (DOC-6)."""
    if not refused:
        return []
    named = [f"{relative(path, root)} ({_why(path, answer)})" for path, answer in refused.items()]
    message = f"{counted(len(named), 'file')} could not be read: {first_of(named)}"
    return [Error(OURSELVES, message, Code.UNSUPPORTED)]


def _why(path: str, answer: DiagnosticsAnswer) -> str:
    """The reason of a refusal without the path, which stands before it."""
    if not _is_text(path):
        # The daemon's protocol is JSON, which cannot carry such a name: it looked for another file.
        return "its name is not UTF-8"
    message = answer.errors[0].message
    return message.replace(f": {path}", "").replace(f" {path}", "")


def _is_text(path: str) -> bool:
    """False for a name with bytes that are not UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def _codes(answer: DiagnosticsAnswer) -> set[Code]:
    """Why we ourselves did not ask any server about a file; empty where one was asked."""
    if answer.data or not all(error.server_id == OURSELVES for error in answer.errors):
        return set()
    return {error.code for error in answer.errors}


def _is_about_errors(answer: DiagnosticsAnswer) -> bool:
    """Whether the reason only repeats the errors, which are shown anyway."""
    return answer.meta.reason == "; ".join(map(error_text, answer.errors))


def _some(reasons: Sequence[str]) -> tuple[str, ...]:
    distinct = [*dict.fromkeys(reasons)]
    more = len(distinct) - MAX_REASONS
    return (*distinct[:MAX_REASONS], *([f"and {more} more"] if more > 0 else []))
