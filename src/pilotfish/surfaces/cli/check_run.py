"""A check of many files, a few at a time, made into one answer.

Named files must be checked. Of a folder, every file that some server is for must be: one that cannot be read or reached
is named, and where a server is missing its files are counted; the answer about the folder is then partial.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

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
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.surfaces.cli.terminal.units import counted
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.source_files import Skipped, files_below
from pilotfish.system.tasks import owned_tasks

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

MAX_REASONS = 5
"""Different reasons in one answer; the others are counted."""

MAX_NAMED = 5
"""Files or folders that one line names; the others are counted."""

MAX_SAMPLES = 200
"""Files of a linked folder that are looked at to see whether a server is for any of them."""

NO_FILES = "no file here can be checked"


class FilesToCheck(Struct, frozen=True):
    """The files to check, each once, and what was left out."""

    named: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Found in a folder."""
    unserved: Mapping[Error, int] = field(default_factory=dict[Error, int])
    """Why files of folders have no server, and how many."""
    unreached: tuple[Error, ...] = ()
    """Files and folders that were found and could not be reached."""
    ignored: tuple[str, ...] = ()
    """Folders that were skipped on purpose."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.named, *self.listed)


async def select(workspace: OpenWorkspace, paths: Sequence[str], changed: Sequence[str] | None = None) -> FilesToCheck:
    """The files that `paths` name, and those below the folders among them; with `changed`, only those of these."""
    walk = await anyio.to_thread.run_sync(_walk, paths, changed)
    samples = [path for inside in walk.odd.values() for path in inside]
    unserved = await workspace.unserved([*walk.below, *samples])
    missed = [path for path, inside in walk.odd.items() if any(sample not in unserved for sample in inside)]
    return FilesToCheck(
        walk.named,
        tuple(file for file in walk.below if file not in unserved),
        Counter(why for file in walk.below if (why := unserved.get(file)) is not None),
        tuple(_unreached(workspace.root, missed, walk.links, walk.unreadable)),
        tuple(_relative(path, workspace.root) for path in walk.ignored),
    )


async def check_files(
    workspace: OpenWorkspace,
    chosen: FilesToCheck,
    *,
    texts: Mapping[str, str] | None = None,
    done: Callable[[], None],
) -> dict[str, DiagnosticsAnswer]:
    """The answer about each file, in the order of the files; `done` is called after each."""
    answers: dict[str, DiagnosticsAnswer] = {}
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def check(path: str) -> None:
        async with limit:
            answers[path] = await workspace.check(path, texts=texts)
        done()

    async with owned_tasks() as tasks:
        for path in chosen.files:
            tasks.start_soon(check, path)
    return {path: answers[path] for path in chosen.files}


def merged(
    chosen: FilesToCheck, answers: Mapping[str, DiagnosticsAnswer], root: str, *, duration_ms: int, skip_missing: bool
) -> DiagnosticsAnswer:
    """One answer about everything that was selected."""
    gone = {path for path in chosen.listed if _codes(answers[path]) == {Code.FILE_MISSING} and _is_text(path)}
    refused = {path for path in chosen.listed if path not in gone and _codes(answers[path])}
    heard = [answer for path, answer in answers.items() if path not in gone | refused]
    states = {answer.meta.state for answer in heard}
    missing = _missing(chosen)
    owed = [] if skip_missing else missing
    skipped = [error.message for error in missing] if skip_missing else []
    unread = _unread(root, {path: answers[path] for path in answers if path in refused})
    problems = [*(error for answer in heard for error in answer.errors), *unread, *chosen.unreached, *owed]
    reasons = [answer.meta.reason for answer in heard if answer.meta.reason and not _is_about_errors(answer)]
    notes = [*(note for answer in heard for note in answer.meta.warnings), *skipped, *_ignored(chosen)]
    effort = Effort(
        duration_ms=duration_ms,
        server_hits=sum(answer.meta.server_hits for answer in heard),
        errors=tuple(dict.fromkeys(problems)),
        caveats=_some(reasons) if heard or problems else (NO_FILES,),
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


class _Walk(Struct):
    named: tuple[str, ...]
    below: list[AbsPath]
    odd: dict[AbsPath, tuple[AbsPath, ...]] = field(default_factory=dict[AbsPath, tuple[AbsPath, ...]])
    """Links that lead elsewhere and special files, each with files that it stands for."""
    links: frozenset[AbsPath] = frozenset()
    unreadable: tuple[AbsPath, ...] = ()
    ignored: tuple[AbsPath, ...] = ()


def _walk(paths: Sequence[str], changed: Sequence[str] | None) -> _Walk:
    if changed is not None:
        places = [AbsPath(os.path.realpath(path)) for path in paths]
        real = (AbsPath(os.path.realpath(path)) for path in changed)
        return _Walk((), [path for path in real if any(is_inside(path, place) for place in places)])
    named = dict.fromkeys(path for path in paths if not os.path.isdir(path))
    if any(os.path.realpath(path) == os.sep for path in paths):
        hint = "Change to the folder of a project, or name files or folders."
        raise Refused(Code.INVALID_INPUT, f"{os.sep} is the whole file system.", hint=hint)
    folders = [AbsPath(os.path.realpath(path)) for path in paths if path not in named]
    skipped = Skipped()
    below = [*dict.fromkeys(file for folder in folders for file in files_below(folder, skipped))]
    odd: dict[AbsPath, tuple[AbsPath, ...]] = {path: (path,) for path in skipped.special}
    for link in skipped.links:
        target = AbsPath(os.path.realpath(link))
        # What is inside of the folders is checked there, under its own name.
        if not any(is_inside(target, folder) for folder in folders):
            odd[link] = _samples(link, target)
    links = frozenset(skipped.links)
    return _Walk(tuple(named), below, odd, links, tuple(skipped.unreadable), tuple(skipped.ignored))


def _samples(link: AbsPath, target: AbsPath) -> tuple[AbsPath, ...]:
    """Files that a link leads to, as paths through the link; none where it leads nowhere."""
    if os.path.isdir(target):
        inside = islice(files_below(target), MAX_SAMPLES)
        return tuple(AbsPath(os.path.join(link, os.path.relpath(path, target))) for path in inside)
    return (link,) if os.path.isfile(target) else ()


def _unreached(
    root: str, missed: Sequence[AbsPath], links: Collection[AbsPath], unreadable: Sequence[AbsPath]
) -> Iterator[Error]:
    kinds = (
        ([path for path in missed if path in links], "symbolic link was", "symbolic links were", "followed"),
        ([path for path in missed if path not in links], "special file was", "special files were", "opened"),
        (unreadable, "folder was", "folders were", "listed, for want of permission"),
    )
    for paths, one, many, done in kinds:
        if paths:
            names = _first([_relative(path, root) for path in paths])
            yield Error(OURSELVES, f"{counted(len(paths), one, many)} not {done}: {names}", Code.UNSUPPORTED)


def _unread(root: str, refused: Mapping[str, DiagnosticsAnswer]) -> list[Error]:
    """Files of folders that are not text, too large, or closed to us (DOC-6)."""
    if not refused:
        return []
    named = [f"{_relative(path, root)} ({_why(path, answer)})" for path, answer in refused.items()]
    message = f"{counted(len(named), 'file')} could not be read: {_first(named)}"
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


def _missing(chosen: FilesToCheck) -> list[Error]:
    """Servers that are not here, and how many files each would have checked."""
    return [
        Error(why.server_id, f"{counted(count, 'file was', 'files were')} not checked: {why.message}", why.code)
        for why, count in chosen.unserved.items()
    ]


def _ignored(chosen: FilesToCheck) -> list[str]:
    count = len(chosen.ignored)
    kind = counted(count, "ignored or hidden folder")
    return [f"skipped {kind}: {_first(chosen.ignored)}"] if count else []


def _first(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root) if is_inside(AbsPath(path), AbsPath(root)) else path


def _is_about_errors(answer: DiagnosticsAnswer) -> bool:
    """Whether the reason only repeats the errors, which are shown anyway."""
    return answer.meta.reason == "; ".join(map(error_text, answer.errors))


def _some(reasons: Sequence[str]) -> tuple[str, ...]:
    distinct = [*dict.fromkeys(reasons)]
    more = len(distinct) - MAX_REASONS
    return (*distinct[:MAX_REASONS], *([f"and {more} more"] if more > 0 else []))
