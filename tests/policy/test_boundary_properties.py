"""No path outside a root is ever admitted: random trees with links, against what the kernel itself says."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.errors import Refused
from pilotfish.policy.boundary import Want, admit, boundary_of, open_admitted
from support.files.folders import IN_MEMORY

NAMES = st.sampled_from(["a", "b", "c", "a2", "@a", "é", " "])
FOLDERS = st.lists(NAMES, max_size=3).map("/".join)
PLACES = st.builds(os.path.join, st.sampled_from(["work", "work2", "."]), FOLDERS, NAMES)
"""A place in the tree: in the workspace, in a neighbour whose name starts the same, or above both."""

TARGETS = st.one_of(
    PLACES,
    PLACES.map("/TOP/{}".format),
    st.lists(st.sampled_from(["..", "a", "b", "."]), min_size=1, max_size=4).map("/".join),
)
"""Where a link leads; `/TOP` stands for the folder that holds everything."""

STEPS = st.one_of(
    st.tuples(st.just("file"), PLACES),
    st.tuples(st.just("folder"), PLACES),
    st.tuples(st.just("link"), PLACES, TARGETS),
)
REQUESTS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "c", "a2", "@a", "..", ".", "", "é"]), min_size=1, max_size=7).map("/".join),
    PLACES.map("/TOP/{}".format),
    PLACES.map("/TOP/work/../{}".format),
).flatmap(lambda request: st.sampled_from([request, f"@{request}"]))


@contextmanager
def tree(steps: list[tuple[str, ...]]) -> Generator[str]:
    """The tree that `steps` describe; a step that cannot be made is left out."""
    with TemporaryDirectory(dir=IN_MEMORY) as folder:
        top = os.path.realpath(folder)
        os.makedirs(os.path.join(top, "work"))
        for kind, place, *target in steps:
            path = os.path.join(top, place)
            with suppress(OSError):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if kind == "link":
                    os.symlink(target[0].replace("/TOP", top), path)
                elif kind == "folder":
                    os.mkdir(path)
                else:
                    with open(path, "x", encoding="utf-8") as stream:
                        stream.write("text")
        yield top


def where(path: str) -> str | None:
    """Where the kernel ends up for `path`, when that is a regular file: a second, naive answer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.readlink(f"/proc/self/fd/{descriptor}") if regular else None
    finally:
        os.close(descriptor)


def is_below(path: str, folder: str) -> bool:
    return path.split("/")[: len(folder.split("/"))] == folder.split("/")


@pytest.mark.proves("PATH-2", "PATH-3", "T29", "T30")
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the kernel does not tell where a descriptor leads")
@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), requests=st.lists(REQUESTS, min_size=1, max_size=6))
def test_exactly_the_files_that_really_lie_inside_are_admitted(
    steps: list[tuple[str, ...]], requests: list[str]
) -> None:
    with tree(steps) as top:
        work = os.path.join(top, "work")
        boundary = boundary_of(work)
        for request in requests:
            asked = request.replace("/TOP", top)
            named = os.path.normpath(os.path.join(work, asked.removeprefix("@")))
            truth = where(named) if asked.removeprefix("@") else None
            try:
                admitted = admit(asked, boundary)
            except Refused:
                assert truth is None or not is_below(truth, work)
                continue
            assert truth == admitted.path
            assert is_below(admitted.path, work)
            os.close(open_admitted(admitted))


@pytest.mark.proves("T28", "T30")
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=12), request=REQUESTS)
def test_a_target_of_a_write_always_lies_inside(steps: list[tuple[str, ...]], request: str) -> None:
    with tree(steps) as top:
        work = os.path.join(top, "work")
        with suppress(Refused):
            admitted = admit(request.replace("/TOP", top), boundary_of(work), Want.TARGET)
            assert is_below(admitted.path, work)
            assert is_below(os.path.realpath(admitted.path), work)
