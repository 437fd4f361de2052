"""A check of many files, a few at a time, made into one answer."""

from collections.abc import Callable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from pilotfish.api.answers import OURSELVES, Diagnostic, Effort, Error, State, answer_from, error_text, is_empty
from pilotfish.api.questions import Operation
from pilotfish.errors import Code
from pilotfish.library.questions import Diagnostics
from pilotfish.surfaces.cli.check_files import Gathered
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.tasks import owned_tasks

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

MAX_REASONS = 5
"""Different reasons in one answer; how many more there are is said."""

NOT_TEXT = frozenset({Code.UNSUPPORTED, Code.LIMIT_EXCEEDED, Code.FILE_MISSING})
"""Why a file of a folder is passed over: binary, too large, gone in between (DOC-6)."""


async def verdict(
    workspace: OpenWorkspace,
    found: Gathered,
    *,
    texts: Mapping[str, str] | None = None,
    done: Callable[[], None],
) -> list[Diagnostics]:
    """The verdicts on all files, in their order; `done` hears of each that is finished."""
    answers: dict[str, Diagnostics] = {}
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
    answers: Sequence[Diagnostics], *, duration_ms: int, errors: Sequence[Error] = (), notes: Sequence[str] = ()
) -> Diagnostics:
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


def only(answer: Diagnostics, wanted: Callable[[Diagnostic], bool]) -> Diagnostics:
    """The answer with the wanted diagnostics alone; every file that was checked stays in it."""
    if answer.data is None:
        return answer
    data = {path: tuple(filter(wanted, items)) for path, items in answer.data.items()}
    empty = answer.meta.state is State.FRESH and is_empty(data)
    return replace(answer, data=data, meta=replace(answer.meta, empty=empty))


def _is_no_text(answer: Diagnostics) -> bool:
    return bool(answer.errors) and all(
        error.server_id == OURSELVES and error.code in NOT_TEXT for error in answer.errors
    )


def _is_about_errors(answer: Diagnostics) -> bool:
    """Whether the reason only repeats the errors, which are told anyway."""
    return answer.meta.reason == "; ".join(map(error_text, answer.errors))


def _some(reasons: Sequence[str]) -> tuple[str, ...]:
    distinct = [*dict.fromkeys(reasons)]
    more = len(distinct) - MAX_REASONS
    return (*distinct[:MAX_REASONS], *([f"and {more} more"] if more > 0 else []))
