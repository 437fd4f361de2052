"""Paths as segments."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.paths import ancestors, below, is_dependency, is_inside


@pytest.mark.proves("T30", "PATH-2")
@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/work", "/work", ()),
        ("/w/a/b", "/w", ("a", "b")),
        ("/work2", "/work", None),
        ("/work2/a", "/work", None),
        ("/", "/work", None),
        ("/work", "/", ("work",)),
        ("/", "/", ()),
    ],
)
def test_containment_is_by_whole_segments(path: str, folder: str, expected: tuple[str, ...] | None) -> None:
    assert below(path, folder) == expected
    assert is_inside(path, folder) is (expected is not None)


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4)


@pytest.mark.proves("T30")
@given(folder=SEGMENTS, path=SEGMENTS)
def test_containment_agrees_with_comparing_lists(folder: list[str], path: list[str]) -> None:
    inside = path[: len(folder)] == folder
    one, other = "/" + "/".join(path), "/" + "/".join(folder)
    assert is_inside(one, other) is inside
    assert below(one, other) == (tuple(path[len(folder) :]) if inside else None)
    expected = [os.path.join("/", *path[:length]) for length in range(len(path), len(folder) - 1, -1)] if inside else []
    assert list(ancestors(one, other)) == expected


@pytest.mark.proves("PATH-2")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("node_modules/x/index.js", True),
        ("src/node_modules.ts", False),
        ("vendor", False),
        ("lib/python3.12/site-packages/x.py", True),
        ("pkg/mod.go", False),
        ("go/pkg/mod/x.go", True),
    ],
)
def test_a_folder_of_dependencies_is_known_by_name(path: str, expected: bool) -> None:
    assert is_dependency(tuple(path.split("/"))) is expected
