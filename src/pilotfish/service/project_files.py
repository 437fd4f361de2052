"""The files that a check of folders is about, and what it leaves out.

Named files must be checked. Of a folder, every file that some server is for must be: what could not be reached is said,
and where a server is missing its files are counted.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

import anyio.to_thread
from msgspec import Struct, field

from pilotfish.api.answers import OURSELVES, Error
from pilotfish.counting import counted
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.system.real_path import real_path
from pilotfish.system.source_files import Skipped, files_below

MAX_NAMED = 5
"""Files or folders that one line names; the others are counted."""

MAX_SAMPLES = 200
"""Files of a linked folder that are looked at to see whether a server is for any of them."""

Unserved = Callable[[Sequence[str]], Awaitable[Mapping[str, Error | None]]]
"""The files that cannot be checked: why their server is missing, or None where no server is for them."""


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

    @property
    def missing(self) -> list[Error]:
        """Servers that are not here, and how many files each would have checked."""
        return [
            Error(why.server_id, f"{counted(count, 'file was', 'files were')} not checked: {why.message}", why.code)
            for why, count in self.unserved.items()
        ]

    @property
    def skipped(self) -> list[str]:
        """What was left out on purpose, in a line."""
        kind = counted(len(self.ignored), "ignored or hidden folder")
        return [f"skipped {kind}: {first_of(self.ignored)}"] if self.ignored else []


async def select(
    root: str, unserved: Unserved, paths: Sequence[str], changed: Sequence[str] | None = None
) -> FilesToCheck:
    """The files that `paths` name, and those below the folders among them; with `changed`, only those of these."""
    walk = await anyio.to_thread.run_sync(_walk, paths, changed)
    samples = [path for inside in walk.odd.values() for path in inside]
    without = await unserved([*walk.below, *samples])
    missed = [path for path, inside in walk.odd.items() if any(sample not in without for sample in inside)]
    return FilesToCheck(
        walk.named,
        tuple(file for file in walk.below if file not in without),
        Counter(why for file in walk.below if (why := without.get(file)) is not None),
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


def _walk(paths: Sequence[str], changed: Sequence[str] | None) -> _Walk:
    if changed is not None:
        places = [AbsPath(real_path(path)) for path in paths]
        real = (AbsPath(real_path(path)) for path in changed)
        return _Walk((), [path for path in real if any(is_inside(path, place) for place in places)])
    named = dict.fromkeys(path for path in paths if not os.path.isdir(path))
    if any(real_path(path) == os.sep for path in paths):
        hint = "Change to the folder of a project, or name files or folders."
        raise Refused(Code.INVALID_INPUT, f"{os.sep} is the whole file system.", hint=hint)
    folders = [AbsPath(real_path(path)) for path in paths if path not in named]
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


def first_of(names: Sequence[str]) -> str:
    """Some names of many."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def relative(path: str, root: str) -> str:
    """A path as people write it."""
    return os.path.relpath(path, root) if is_inside(AbsPath(path), AbsPath(root)) else path
