"""LSP globs: as VS Code's engine reads them, cheap whatever the pattern, and helpful to a watcher."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.model import AbsPath
from pilotfish.protocol.globs import (
    MAX_DEPTH,
    MAX_NAMES,
    MAX_PATTERN,
    MAX_TOKENS,
    BadGlob,
    FileGlob,
    Glob,
    file_glob,
    lsp_glob,
    path_below,
)
from support.oracles.glob_tables import Table, seconds_of_work, tables
from support.oracles.naive_globs import naive_match

VSCODE = tables("vscode")

ROOT = AbsPath("/home/me/project")
OTHER = AbsPath("/home/me/other")

# --- As VS Code reads them ----------------------------------------------------------------------------------------

CLOSES_NOTHING = "an opening or closing bracket by itself is a slip; VS Code drops a part of the pattern"
SEGMENT_ONLY = "a class is one character of a segment, as the specification says; VS Code lets it be the slash"

READ_OTHERWISE = {
    "{a,{b,c}}": "nested braces; VS Code ends the outer ones at the first }",
    "{a,{b,c}}.ts": "nested braces",
    "**/*.{ts,{js,json}}": "nested braces",
    "{a,b/{**,c}}": "nested braces",
    "{a,b": CLOSES_NOTHING,
    "a}b": CLOSES_NOTHING,
    "a]b": "a ] by itself is itself; VS Code then matches nothing",
    "a[b": CLOSES_NOTHING,
    "[": CLOSES_NOTHING,
    "[!]": CLOSES_NOTHING,
    "[!]a]": "a ] may come first in a negated class as well as in a plain one",
    "[z-a]": "an empty range is a slip; VS Code then matches nothing",
    "a{b,}": "the last option of braces may be empty as well as the first",
    "x{**/b,c}": "** beside other characters of its segment means nothing that two engines agree on",
    "a/**/**": "two ** are one; VS Code then wants a slash at the end of the path",
    "/**/**": "two ** are one",
    "a[!b]b": SEGMENT_ONLY,
    "a[!.]b": SEGMENT_ONLY,
    "a[+-9]b": SEGMENT_ONLY,
    "**": "a line break is a character like any other in a name",
    "*b.ts": "a backslash is a character like any other in a name; on Windows paths come with slashes",
    "?": "a character is a code point; VS Code counts UTF-16 units",
}


def _differences(table: Table) -> list[tuple[str, str, bool]]:
    differences: list[tuple[str, str, bool]] = []
    for pattern, verdicts in table.verdicts():
        glob = FileGlob(lsp_glob(pattern, ignore_case=table.ignore_case), AbsPath(table.base) if table.base else None)
        for path, expected in verdicts.items():
            ours = glob.matches(AbsPath(path)) if table.base else glob.glob.matches(path)
            if ours is not expected:
                differences.append((pattern, path, ours))
    return differences


@pytest.mark.proves("C110", "WATCH-1")
@pytest.mark.parametrize("name", ["written", "ignoring case", "below a base"])
def test_written_patterns_match_what_vs_code_matches(name: str) -> None:
    assert _differences(VSCODE[name]) == []


@pytest.mark.proves("C110")
def test_random_patterns_match_what_vs_code_matches_or_are_refused() -> None:
    table = VSCODE["random"]
    refused = [pattern for pattern, _ in table.rows if _refused(pattern)]
    kept = Table(table.name, table.paths, [row for row in table.rows if row[0] not in refused])
    assert _differences(kept) == []
    assert len(refused) < len(table.rows) / 20
    assert all("{" in pattern and "**" in pattern for pattern in refused)


def test_the_tables_are_large_enough_to_mean_something() -> None:
    assert sum(len(table.rows) * len(table.paths) for table in VSCODE.values()) > 20_000
    assert sum(bits.count("1") for table in VSCODE.values() for _, bits in table.rows) > 1_500


@pytest.mark.parametrize(("pattern", "verdicts"), [*VSCODE["read otherwise"].verdicts()])
def test_where_we_differ_from_vs_code_we_follow_the_specification_or_refuse(
    pattern: str, verdicts: dict[str, bool]
) -> None:
    assert READ_OTHERWISE[pattern]
    if _refused(pattern):
        return
    ours = {path: lsp_glob(pattern).matches(path) for path in verdicts}
    assert ours == {path: naive_match(pattern, path) for path in verdicts}
    assert ours != verdicts, "no difference any more: the reason is stale"


def _refused(pattern: str) -> bool:
    try:
        lsp_glob(pattern)
    except BadGlob:
        return True
    return False


# --- Against trying everything ------------------------------------------------------------------------------------

NAMES = st.lists(st.sampled_from(["a", "b", "ab", "*", "?", "[ab]", "[!a]"]), min_size=1, max_size=4).map("".join)
OPTIONS = st.recursive(
    st.sampled_from(["", "a", "b", "ab", "a/b", "b/c"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda options: "{" + ",".join(options) + "}"),
    max_leaves=4,
)
BRACES = st.lists(OPTIONS, min_size=1, max_size=3).map(lambda options: "{" + ",".join(options) + "}")
SEGMENTS = st.one_of(
    st.just("**"),
    NAMES,
    st.tuples(NAMES, BRACES).map("".join),
    BRACES,
    st.tuples(NAMES, NAMES).map(lambda names: "{**/" + names[0] + "," + names[1] + "}"),
)
PATTERNS = st.tuples(st.sampled_from(["", "/"]), st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)).map("".join)
GLOBS = PATTERNS.filter(lambda pattern: "**{" not in pattern and not _refused(pattern)).map(lsp_glob)
"""Without `**` beside a group, which means nothing that two engines agree on (`READ_OTHERWISE`)."""
PATHS = st.tuples(
    st.sampled_from(["", "/"]),
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join),
).map("".join)


@pytest.mark.proves("C110")
@given(GLOBS, st.lists(PATHS, min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
@example(lsp_glob("a/**"), ["a", "a/b", "ab", "ab/c"])
@example(lsp_glob("**/a/**/b"), ["a/b", "b/a/c/b", "a/a/b/b", "b"])
@example(lsp_glob("*a*b*a*"), ["abab", "aba", "ab", "bab"])
def test_a_glob_matches_what_trying_everything_matches(glob: Glob, paths: list[str]) -> None:
    assert {path: glob.matches(path) for path in paths} == {path: naive_match(glob.pattern, path) for path in paths}


@given(st.text("ab*?[]{},/!^-. \\", max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_glob_or_a_bad_glob(pattern: str) -> None:
    try:
        glob = lsp_glob(pattern)
    except BadGlob:
        return
    assert glob.matches("a/b") in (True, False)


# --- Cheap --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("T26", "T36")
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("**/**/**/*a*a*a*[b]", id="a few stars"),
        pytest.param("**/" * 200 + "*a" * 100 + "[b]", id="many stars and globstars"),
        pytest.param("**/a*a*/" * 20 + "[b]", id="stars between globstars"),
        pytest.param("**/*a/**/*a/**/*a/**/*a/**/*a/**/*[b]", id="globstars between stars"),
        pytest.param("{**/*a,**/*aa,**/*aaa}/" * 3 + "*a*[b]", id="braces of globstars"),
        pytest.param("*a?*a?*a?*a?*a?*[b]", id="question marks"),
        pytest.param("{a,aa,aaa}" * 4 + "[b]", id="options that start alike"),
        pytest.param("[a]*" * 200 + "[b]", id="classes"),
        pytest.param("*/" * (MAX_NAMES - 1) + "[b]", id="as many segments as there may be"),
    ],
)
def test_no_pattern_makes_matching_dear(pattern: str) -> None:
    # The class at the end keeps the shortcut for endings out of it.
    glob = lsp_glob(pattern)
    with seconds_of_work(5):
        for path in ("a" * 255, "a" * 4000, "/".join(["a" * 255] * 16), "a/" * 2000 + "a", "/" * 4000):
            assert not glob.matches(path)
            glob.may_match_below(path)


def test_the_largest_pattern_of_a_real_server_is_far_from_the_limits() -> None:
    endings = "js,cjs,mjs,ts,cts,mts,jsx,tsx,vue,svelte,astro,html,css,scss,less,md,mdx,json,jsonc,yaml"
    glob = lsp_glob("**/{tailwind,tailwind.config,tailwind.*.config,tailwind.config.*}.{" + endings + "}")
    assert glob.matches("/a/tailwind.web.config.yaml")


@pytest.mark.proves("T26", "T36", "C51", "A17.4")
@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        pytest.param("", "1 to", id="empty"),
        pytest.param("  ", "1 to", id="blank"),
        pytest.param("a" * (MAX_PATTERN + 1), "1 to", id="too long"),
        pytest.param("{a,b}" * 20, f"more than {MAX_TOKENS}", id="a million options"),
        pytest.param("{,a}" * 60, f"more than {MAX_TOKENS}", id="empty options"),
        pytest.param("{" * (MAX_DEPTH + 1) + "a" + "}" * (MAX_DEPTH + 1), "deep", id="too deep"),
        pytest.param("{" * 2000, "deep", id="endless depth"),
        pytest.param("{a", "without its }", id="open brace"),
        pytest.param("a}", "without its {", id="closing brace"),
        pytest.param("[a", "without its ]", id="open bracket"),
        pytest.param("[b-a]", "upside down", id="empty range"),
        pytest.param("a/" * (MAX_NAMES + 1), f"more than {MAX_NAMES}", id="too many segments"),
        pytest.param("[/]", "nothing", id="class of a slash"),
        pytest.param("x{**,a}", "beside", id="globstar beside a name"),
    ],
)
def test_a_glob_that_is_none_or_too_large_is_refused_at_once(pattern: str, reason: str) -> None:
    with seconds_of_work(5), pytest.raises(BadGlob, match=reason):
        lsp_glob(pattern)


# --- Folders ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-4")
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        pytest.param("*.toml", [""], ["a", "a/b"], id="names in the base only"),
        pytest.param("src/*.ts", ["", "src"], ["lib", "src/x"], id="one folder"),
        pytest.param("src/**/x", ["", "src", "src/a/b"], ["lib", "lib/src"], id="globstar below a folder"),
        pytest.param("**/x", ["", "a", "a/b"], [], id="globstar first"),
        pytest.param("{a,b/c}/d", ["", "a", "b", "b/c"], ["c", "b/d", "a/d"], id="braces"),
        pytest.param("/a/*/c", ["/", "/a", "/a/b"], ["/b", "/a/b/c", "a"], id="absolute"),
        pytest.param("a/**", ["", "a", "a/b"], ["ab"], id="globstar last"),
        pytest.param("a/", [""], ["a"], id="slash at the end"),
    ],
)
def test_a_folder_is_worth_watching_only_if_something_below_it_can_match(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    glob = lsp_glob(pattern)
    assert [folder for folder in [*yes, *no] if glob.may_match_below(folder)] == yes


@given(GLOBS, PATHS)
@settings(max_examples=300, deadline=None)
def test_no_folder_above_a_match_is_ever_pruned(glob: Glob, path: str) -> None:
    folders = [path[:index] for index, character in enumerate(path) if character == "/"]
    if glob.matches(path):
        assert [folder for folder in folders if not glob.may_match_below(folder)] == []


@pytest.mark.parametrize(
    ("pattern", "anchors", "relative", "deep", "names"),
    [
        pytest.param("**/*.ts", {None}, False, True, set[str](), id="anywhere"),
        pytest.param("src/*.ts", {None}, True, False, {"src"}, id="relative"),
        pytest.param("/etc/*.conf", {"/etc"}, False, False, {"etc"}, id="absolute"),
        pytest.param("/*.conf", {"/"}, False, False, set[str](), id="root"),
        pytest.param("/a/b/**/c", {"/a/b"}, False, True, {"a", "b", "c"}, id="absolute and deep"),
        pytest.param("/a/*/c/d", {"/a"}, False, False, {"a", "c", "d"}, id="as far as it is spelled out"),
        pytest.param("{/a/b,c}/*", {"/a/b", None}, True, False, {"a", "b", "c"}, id="both"),
        pytest.param("C:/a/**", {"C:/a"}, False, True, {"C:", "a"}, id="drive"),
    ],
)
def test_a_glob_knows_where_it_begins(
    pattern: str, anchors: set[str | None], relative: bool, deep: bool, names: set[str]
) -> None:
    glob = lsp_glob(pattern)
    assert (glob.anchors, glob.relative, glob.deep, glob.names) == (anchors, relative, deep, names)


# --- Globs with a base --------------------------------------------------------------------------------------------


@pytest.mark.proves("C110")
@pytest.mark.parametrize(
    ("value", "yes", "no"),
    [
        pytest.param("**/*.ts", ["/a.ts", f"{ROOT}/a.ts", f"{OTHER}/a.ts"], ["/a.js"], id="anywhere"),
        pytest.param("src/*.ts", [f"{ROOT}/src/a.ts"], [f"{OTHER}/src/a.ts", "/src/a.ts"], id="relative to the roots"),
        pytest.param(f"{OTHER}/*.ts", [f"{OTHER}/a.ts"], [f"{ROOT}/a.ts"], id="absolute"),
        pytest.param(
            {"baseUri": f"file://{OTHER}", "pattern": "**/*.ts"},
            [f"{OTHER}/a.ts", f"{OTHER}/x/a.ts"],
            [f"{ROOT}/a.ts", f"{OTHER}2/a.ts"],
            id="relative to a base outside",
        ),
        pytest.param(
            {"baseUri": {"uri": f"file://{OTHER}/", "name": "x"}, "pattern": "a.ts"},
            [f"{OTHER}/a.ts"],
            [f"{ROOT}/a.ts", f"{OTHER}/x/a.ts"],
            id="relative to a workspace folder",
        ),
        pytest.param({"baseUri": "file:///", "pattern": "*.ts"}, ["/a.ts"], ["/x/a.ts"], id="relative to the root"),
        pytest.param({"baseUri": f"file://{ROOT}", "pattern": "**"}, [ROOT, f"{ROOT}/a"], [OTHER], id="all of a base"),
        pytest.param({"baseUri": "file:///a%20b", "pattern": "*"}, ["/a b/c"], ["/a%20b/c"], id="escaped base"),
    ],
)
def test_a_file_glob_matches_below_its_base(value: object, yes: list[str], no: list[str]) -> None:
    glob = file_glob(value)
    assert [path for path in [*yes, *no] if glob.matches(AbsPath(path), (ROOT,))] == yes


@pytest.mark.proves("C51")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="nothing"),
        pytest.param(7, id="a number"),
        pytest.param({"pattern": "*"}, id="no base"),
        pytest.param({"baseUri": "untitled:x", "pattern": "*"}, id="a base that is no folder"),
        pytest.param({"baseUri": {"name": "x"}, "pattern": "*"}, id="a folder without its URI"),
        pytest.param({"baseUri": "file:///a"}, id="no pattern"),
        pytest.param({"baseUri": "file:///a", "pattern": "{a"}, id="a bad pattern"),
    ],
)
def test_what_is_no_file_glob_is_refused(value: object) -> None:
    with pytest.raises(BadGlob):
        file_glob(value)


@pytest.mark.proves("WATCH-4")
@pytest.mark.parametrize(
    ("value", "yes", "no"),
    [
        pytest.param("*.ts", ["/home", ROOT], [f"{ROOT}/src", OTHER], id="relative to the roots"),
        pytest.param("**/*.ts", ["/", OTHER, f"{ROOT}/src"], [], id="anywhere"),
        pytest.param(f"{OTHER}/*.ts", ["/home/me", OTHER], [ROOT, f"{OTHER}/x"], id="absolute"),
        pytest.param(
            {"baseUri": f"file://{OTHER}", "pattern": "src/*"},
            ["/home/me", OTHER, f"{OTHER}/src"],
            [ROOT, f"{OTHER}/lib", f"{OTHER}2"],
            id="relative to a base",
        ),
    ],
)
def test_a_file_glob_reaches_below_these_folders(value: object, yes: list[str], no: list[str]) -> None:
    glob = file_glob(value)
    assert [folder for folder in [*yes, *no] if glob.may_match_below(AbsPath(folder), (ROOT,))] == yes


@pytest.mark.parametrize(
    ("path", "base", "expected"),
    [
        ("/a/b", "/a", "b"),
        ("/a", "/a", ""),
        ("/ab", "/a", None),
        ("/a/b", "/", "a/b"),
        ("/", "/", ""),
        ("/a", "/a/b", None),
    ],
)
def test_below_is_by_whole_segments(path: str, base: str, expected: str | None) -> None:
    assert path_below(AbsPath(path), AbsPath(base)) == expected


def test_case_is_ignored_on_request_only() -> None:
    assert not file_glob("**/*.TS").matches(AbsPath("/a.ts"))
    assert file_glob("**/*.TS", ignore_case=True).matches(AbsPath("/a.ts"))
