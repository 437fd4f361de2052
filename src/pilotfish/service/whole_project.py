"""A check of files and of all files below folders that some server is for, told file by file (CLI-1, DIAG-13).

What stands is taken from the picture, and the rest is checked a few files at a time until all are done or the time is
over.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import OURSELVES, DiagnosticsAnswer, Error, error_of
from pilotfish.counting import counted
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside, top_folder
from pilotfish.policy.boundary import Boundary, Want, admit
from pilotfish.service.check_answer import (
    CheckedFile,
    CheckEvent,
    CheckRequest,
    FilesToCheck,
    first_of,
    merged,
    relative,
)
from pilotfish.service.diagnostics.picture import Picture
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict, milliseconds_since
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time
from pilotfish.system.real_path import real_path
from pilotfish.system.source_files import Skipped, files_below
from pilotfish.system.tasks import a_few_at_once

PROJECT_SECONDS = 45.0
"""For one check of a project that a model asks for: many clients of MCP give a call a minute."""

FIRST_VERDICT, LATER_VERDICT = 6, 3
"""For a caller who asks for a verdict and not for feedback: so many times the limit of a request, which is a minute and
half a minute unless it is configured, and what any cold server needs."""

USERS_UNKNOWN = "not all files that used what was deleted could be found in time"

AT_ONCE = 8
"""Files under way: more do not make a server faster, and each holds its text."""

MAX_SAMPLES = 200
"""Files of a linked folder that are looked at to see whether a server is for any of them."""

Unserved = Callable[[Sequence[str]], Awaitable[Mapping[str, Error | None]]]
"""The files that cannot be checked: why their server is missing, or None where no server is for them."""


def certain(workspace: Workspace) -> Patience:
    seconds = workspace.config.timing.request_timeout_ms / 1000
    return Patience(first=FIRST_VERDICT * seconds, later=LATER_VERDICT * seconds)


async def check(
    picture: Picture,
    visit: Visit,
    request: CheckRequest,
    seconds: float,
    heard: Callable[[CheckEvent], None],
    answer_of: Callable[[FileVerdict], DiagnosticsAnswer],
) -> DiagnosticsAnswer:
    """What is known of all files after at most `seconds`; the workspace is in step with the disk.

    Raises `Unavailable` after `"lsp": false`, and `Refused` for the whole file system or a folder outside.
    """
    visit.workspace.require_enabled()
    answers, chosen, patience = dict[str, DiagnosticsAnswer](), FilesToCheck(), certain(visit.workspace)
    started = current_time()

    def done(path: str, verdict: FileVerdict) -> None:
        answers[path] = answer_of(verdict)
        heard(CheckedFile(path, answers[path]))

    with anyio.move_on_after(seconds) as limit:
        chosen, standing = await _known(picture, visit, request)
        heard(chosen)
        for path, verdict in standing.items():
            done(path, verdict)

        async def one(path: str) -> None:
            for verdict in await picture.check(visit, [path], patience):
                done(path, verdict)

        await a_few_at_once(one, [path for path in chosen.files if path not in standing], AT_ONCE)
    took, late, skips = milliseconds_since(started), limit.cancelled_caught, request.skip_missing
    return merged(chosen, answers, visit.workspace.root, duration_ms=took, skip_missing=skips, timed_out=late)


async def _known(picture: Picture, visit: Visit, request: CheckRequest) -> tuple[FilesToCheck, dict[str, FileVerdict]]:
    """The files that are meant, and what is known of them and stands."""
    workspace = visit.workspace
    standing: dict[str, FileVerdict] = {}

    async def unserved(below: Sequence[str]) -> dict[str, Error | None]:
        served = [path for path in below if picture.knows(path) or workspace.serves(AbsPath(path))]
        standing.update(await picture.standing(workspace, served))
        rest = [path for path in below if path not in standing]
        # In a thread, because it searches the disk for programs.
        return await anyio.to_thread.run_sync(_unserved, workspace, rest)

    await anyio.to_thread.run_sync(_refuse_outside, visit.client.cwd, request.paths, workspace.boundary)
    changed, unknown = request.changed, False
    if changed is not None:
        there = dict.fromkeys(filter(os.path.lexists, changed))
        users = await picture.who_used(workspace, [AbsPath(path) for path in changed if path not in there])
        changed, unknown = tuple(there | dict.fromkeys(users.files)), not users.complete
    chosen = await select(workspace.root, visit.client.cwd, unserved, request.paths, changed)
    if unknown:
        error = Error(OURSELVES, USERS_UNKNOWN, Code.REQUEST_TIMEOUT)
        chosen = replace(chosen, unreached=(*chosen.unreached, error))
    chosen = chosen.sorted_by(lambda server: workspace.specs[server].auxiliary)
    standing |= await picture.standing(workspace, chosen.named)
    return chosen, {path: standing[path] for path in chosen.files if path in standing}


def _unserved(workspace: Workspace, paths: Sequence[str]) -> dict[str, Error | None]:
    """Why each of these files cannot be checked; None where no server is for it. Blocking: for a thread."""
    found: dict[str, Error | None] = {}
    workspace.look_again()
    for path in paths:
        if not workspace.serves(AbsPath(path)):
            found[path] = None
            continue
        choice = workspace.servers_for(AbsPath(real_path(path)), looked=True)
        if not choice.servers:
            found[path] = None if choice.missing is None else error_of(workspace.why_unavailable(choice.missing))
    return found


# --- Which files ----------------------------------------------------------------------------------------------------


async def select(
    root: str, cwd: str, unserved: Unserved, paths: Sequence[str], changed: Sequence[str] | None = None
) -> FilesToCheck:
    """The files that `paths` name in `cwd`, and those below the folders among them; of `changed` alone, if given.

    Named files keep the names that they were given. Raises `Refused` for the whole file system.
    """
    walk = await anyio.to_thread.run_sync(_walk, cwd, paths, changed)
    samples = [path for inside in walk.odd.values() for path in inside]
    without = await unserved([*walk.below, *samples])
    missed = [path for path, inside in walk.odd.items() if any(sample not in without for sample in inside)]
    reasons = Counter(why for file in walk.below if (why := without.get(file)) is not None)
    return FilesToCheck(
        walk.named,
        tuple(file for file in walk.below if file not in without),
        tuple(reasons.items()),
        tuple(_unreached(root, missed, walk.links, walk.unreadable)),
        tuple(relative(path, root) for path in walk.ignored),
    )


class _Walk(Struct):
    named: tuple[str, ...]
    below: list[AbsPath]
    odd: dict[AbsPath, tuple[AbsPath, ...]] = field(default_factory=dict[AbsPath, tuple[AbsPath, ...]])
    """Links that lead elsewhere and special files, each with files that it stands for."""
    links: frozenset[AbsPath] = frozenset()
    unreadable: tuple[AbsPath, ...] = ()
    ignored: tuple[AbsPath, ...] = ()


def _refuse_outside(cwd: str, paths: Sequence[str], boundary: Boundary) -> None:
    """One answer for a folder outside, and not one for each of its files."""
    for whole in (os.path.join(cwd, path) for path in paths):
        if os.path.isdir(whole) and not _is_everything(real_path(whole)):
            admit(whole, boundary, Want.FOLDER)


def _is_everything(path: str) -> bool:
    return path == top_folder(path)


def _walk(cwd: str, paths: Sequence[str], changed: Sequence[str] | None) -> _Walk:
    whole = {path: os.path.join(cwd, path) for path in paths}
    if changed is not None:
        places = [AbsPath(real_path(path)) for path in whole.values()]
        real = (AbsPath(real_path(path)) for path in changed)
        return _Walk((), [path for path in real if any(is_inside(path, place) for place in places)])
    named = dict.fromkeys(path for path in paths if not os.path.isdir(whole[path]))
    if everything := next(filter(_is_everything, map(real_path, whole.values())), None):
        hint = "Change to the folder of a project, or name files or folders."
        raise Refused(Code.INVALID_INPUT, f"{everything} is the whole file system.", hint=hint)
    folders = [AbsPath(real_path(whole[path])) for path in paths if path not in named]
    skipped = Skipped()
    below = [*dict.fromkeys(file for folder in folders for file in files_below(folder, skipped))]
    odd: dict[AbsPath, tuple[AbsPath, ...]] = {path: (path,) for path in skipped.special}
    for link in skipped.links:
        target = AbsPath(real_path(link))
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
            names = first_of([relative(path, root) for path in paths])
            yield Error(OURSELVES, f"{counted(len(paths), one, many)} not {done}: {names}", Code.UNSUPPORTED)
