"""Which folders are ignored: git itself is the second implementation."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotfish.model import AbsPath
from pilotfish.system.watching.ignoring import MAX_IGNORE_BYTES, IgnoreRules, is_ignored, read_rules

pytestmark = pytest.mark.proves("WATCH-4")

GIT = shutil.which("git")

RULES: list[tuple[list[str], str, bool]] = [
    (["build"], "build", True),
    (["build"], "src/build", True),
    (["/build"], "src/build", False),
    (["build/"], "build", True),
    (["src/build"], "src/build", True),
    (["src/build"], "x/src/build", False),
    (["**/gen"], "a/b/gen", True),
    (["a/**/gen"], "a/b/c/gen", True),
    (["a/**/gen"], "a/gen", True),
    (["*.egg-info"], "x.egg-info", True),
    (["*", "!src"], "src", False),
    (["!src", "*"], "src", True),
    ([r"\!odd"], "!odd", True),
    ([r"\#odd"], "#odd", True),
    (["# build"], "build", False),
    (["[ab]x"], "ax", True),
    (["[!ab]x"], "ax", False),
    (["build   "], "build", True),
    (["", "   "], "build", False),
    (["[", "!", "\\", "build"], "build", True),
    (["[a"], "[a", False),
]


def rules(folder: Path, lines: list[str]) -> tuple[IgnoreRules, ...]:
    (folder / ".gitignore").write_text("\n".join(lines))
    found = read_rules(AbsPath(str(folder)))
    return () if found is None else (found,)


@pytest.mark.parametrize(("lines", "folder", "expected"), RULES, ids=[f"{row[0]} {row[1]}" for row in RULES])
def test_a_folder_is_ignored_as_git_ignores_it(tmp_path: Path, lines: list[str], folder: str, expected: bool) -> None:
    assert is_ignored(AbsPath(f"{tmp_path}/{folder}"), rules(tmp_path, lines)) is expected


NAMES = ("a", "b", "ab", "a b", "{a}", "[a]", "!a", "#a", "a*", "\\a", "a,b")
WORDS = (
    *("a", "b", "ab", "*", "**", "?", "a*", "*b", "**a", "[ab]", "[!a]", "[^b]", "[]a]", "[a-b]"),
    *("{a}", "\\{a\\}", "\\!a", "\\#a", "a\\*", "\\[a\\]", "a\\ b", "a b", "\\\\a", "a,b", "{*", "*}"),
)
LINES = st.tuples(
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/", " "]),
).map("".join)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    git("init", "--quiet", str(made))
    return made


def git(*arguments: str, said: str = "") -> str:
    assert GIT is not None
    environment = {"HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run([GIT, *arguments], input=said, capture_output=True, text=True, env=environment, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.skipif(GIT is None, reason="git is not here")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(LINES, min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=6),
)
def test_git_agrees(repository: Path, lines: list[str], folders: list[list[str]]) -> None:
    known = rules(repository, lines)
    paths = ["/".join(folder) for folder in folders]
    for path in paths:
        (repository / path).mkdir(parents=True, exist_ok=True)
    asked = git("-C", str(repository), "check-ignore", "--no-index", "--stdin", "-z", said="\0".join(paths))
    for folder, path in zip(folders, paths, strict=True):
        # Git says of a folder below an ignored one that it is ignored; we never get there.
        above = [repository.joinpath(*folder[:count]) for count in range(1, len(folder) + 1)]
        ignored = any(is_ignored(AbsPath(str(one)), known) for one in above)
        assert ignored is (path in asked.split("\0"))


def test_inner_rules_decide_over_outer_ones(tmp_path: Path) -> None:
    inner = tmp_path / "src"
    inner.mkdir()
    known = (*rules(tmp_path, ["gen", "out"]), *rules(inner, ["!gen"]))
    assert not is_ignored(AbsPath(f"{inner}/gen"), known)
    assert is_ignored(AbsPath(f"{inner}/out"), known)


@pytest.mark.proves("T26", "T36", "A17.5")
@pytest.mark.timeout(10)
@pytest.mark.parametrize("line", ["*a" * 100 + "?b", "**/a/" * 30 + "?b", "**/" + "*a*a/**/" * 8 + "?b"])
def test_a_hostile_rule_takes_no_time(tmp_path: Path, line: str) -> None:
    known = rules(tmp_path, [line])
    for name in ("a" * 254 + "c", "/".join("a" * 1_000) + "/c", "/".join(["a" * 200] * 18) + "c"):
        assert not is_ignored(AbsPath(f"{tmp_path}/{name}"), known)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_large(path: Path) -> None:
    path.write_text("x\n" * MAX_IGNORE_BYTES)


def make_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("make", [make_pipe, make_large, make_link, os.mkdir])
def test_what_is_no_plain_file_of_rules_says_nothing(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / ".gitignore")
    assert read_rules(AbsPath(str(tmp_path))) is None
