"""The globs of trust: never more than picomatch matches, and refused where its reading surprises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.protocol.glob_regex import MAX_PATTERN, BadGlob
from pilotfish.protocol.picomatch import path_glob
from support.oracles.glob_tables import seconds_of_work, tables

PICOMATCH = tables("picomatch")

AFTER_GLOBSTAR = "after **/ picomatch lets an empty group stand for the slash before it too"
ASCII_CASE = "we ignore the case of ASCII letters only"

NARROWER = {
    "/a/**/{b,}": AFTER_GLOBSTAR,
    "/a/**/?(b)": AFTER_GLOBSTAR,
    "/a/**/!(b)": AFTER_GLOBSTAR,
    "/a/**/{*,b}": AFTER_GLOBSTAR,
    "/a/**/*(b)": AFTER_GLOBSTAR,
    "/*/[^a]/**/@()": AFTER_GLOBSTAR,
    "/a/b.{1..3}": "beside a range picomatch takes a dot for any character",
    "/a/[é]": ASCII_CASE,
    "/a/é": ASCII_CASE,
    "/a/É": ASCII_CASE,
}
"""Patterns that match less here than there: nothing is trusted by them that would not be there."""

REFUSED = {"/a/[$^]", "/a/!(?)", "/a/[^é]"}
"""The written patterns that we do not take (the last one only when case is ignored)."""


@pytest.mark.proves("TRUST-3", "T26")
@pytest.mark.parametrize("name", ["written", "ignoring case", "random", "read otherwise"])
def test_a_pattern_matches_what_picomatch_matches_or_is_refused_or_known_to_match_less(name: str) -> None:
    table = PICOMATCH[name]
    refused: set[str] = set()
    narrower: set[str] = set()
    wider: list[tuple[str, str]] = []
    for pattern, verdicts in table.verdicts():
        try:
            glob = path_glob(pattern, ignore_case=table.ignore_case)
        except BadGlob:
            refused.add(pattern)
            continue
        wrong = [path for path, expected in verdicts.items() if glob.matches(path) is not expected]
        wider += [(pattern, path) for path in wrong if not verdicts[path]]
        narrower |= {pattern for path in wrong if verdicts[path]}
    assert wider == []
    assert narrower <= NARROWER.keys()
    assert name != "read otherwise" or narrower == {pattern for pattern, _ in table.rows}
    assert len(refused) < len(table.rows) / 2 if name == "random" else refused <= REFUSED


def test_the_tables_are_large_enough_to_mean_something() -> None:
    assert sum(len(table.rows) * len(table.paths) for table in PICOMATCH.values()) > 50_000
    assert sum(bits.count("1") for table in PICOMATCH.values() for _, bits in table.rows) > 10_000


@pytest.mark.proves("TRUST-3")
def test_a_path_that_realpath_never_gives_matches_nothing() -> None:
    table = PICOMATCH["awry paths"]
    globs = [path_glob(pattern) for pattern, _ in table.rows if pattern not in REFUSED]
    assert [
        (glob.pattern, path) for glob in globs for path in (*table.paths, "", "a" * 256) if glob.matches(path)
    ] == []
    assert any("1" in bits for _, bits in table.rows)


@pytest.mark.proves("TRUST-3")
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("", id="empty"),
        pytest.param("/" + "a" * MAX_PATTERN, id="too long"),
        pytest.param("/a/(b|c)", id="a regular expression"),
        pytest.param("/a|/b", id="a bar by itself"),
        pytest.param("/a/b)", id="a closing parenthesis"),
        pytest.param("/a/{b,c", id="an open brace"),
        pytest.param("/a/{b", id="an open brace without a comma"),
        pytest.param("/a/{b}", id="braces around one"),
        pytest.param("/a/b}", id="a closing brace"),
        pytest.param("/a/[b", id="an open bracket"),
        pytest.param("/a/b]", id="a closing bracket"),
        pytest.param("/a/@(b", id="an open group"),
        pytest.param("/a/{b,c)}", id="crossed groups"),
        pytest.param("/a/\\d", id="an escape that is a class"),
        pytest.param("/a/\\", id="an escape of nothing"),
        pytest.param("/a/\\\\", id="an escaped backslash"),
        pytest.param("/a/\\é", id="an escaped letter"),
        pytest.param('/a/"b"', id="quotes"),
        pytest.param("/a/\0", id="a NUL"),
        pytest.param("/a/{01..10}", id="a range of numbers"),
        pytest.param("/a/{a..C}", id="a range over cases"),
        pytest.param("/a/{b..,c}", id="dots in braces"),
        pytest.param("/a/{b.\\.,c}", id="escaped dots in braces"),
        pytest.param("/a/[[:alpha:]]", id="a named class"),
        pytest.param("/a/[+-9]", id="a class with the slash in it"),
        pytest.param("/a/[c-a]", id="an empty range"),
        pytest.param("/a/{b,**}", id="a globstar in braces"),
        pytest.param("/a/b**", id="a globstar beside a name"),
        pytest.param("/a/***", id="three stars"),
        pytest.param("/a/**(b)", id="a globstar before a group"),
        pytest.param("/a/[ab]+", id="a plus that repeats a class"),
        pytest.param("/a/@(b+|c)", id="a plus in a group"),
        pytest.param("/a/{+,b}", id="a plus first in braces"),
        pytest.param("/a/b++", id="two pluses"),
        pytest.param("/a/@(b)?", id="a question mark that makes optional"),
        pytest.param("/a/@(?b)", id="a question mark that is literal"),
        pytest.param("/a/@(b/c|d)", id="a slash in a group"),
        pytest.param("/a/@(b|@(c|d))", id="groups in a group"),
        pytest.param("/a/{b,{c,{d,{e,{f,g}}}}}", id="braces too deep"),
        pytest.param("/a/+(b|bc)", id="a repetition with two ways"),
        pytest.param("/a/+(b*)", id="a repeated star"),
        pytest.param("/a/+(|b)", id="a repeated nothing"),
        pytest.param("/a/+([a-c]|b)", id="a repeated class beside another option"),
        pytest.param("/a/+( |b)", id="a repeated space"),
        pytest.param("/a/*a*a+(b)*(c)d", id="too many stars and groups"),
        pytest.param("/a/!(*b*)", id="two stars in a negated group"),
        pytest.param("/a/!([bc])", id="a class in a negated group"),
        pytest.param("/a/!(b\\*)", id="an escape in a negated group"),
        pytest.param("/a/!(*b).{js,ts}", id="a negated group before a choice of endings"),
        pytest.param("/a/{!(b),c}", id="a negated group in braces"),
        pytest.param("/a/!(b){1..3}", id="a negated group and a range"),
        pytest.param("!!/a", id="two negations"),
        pytest.param("!/a/{b,c}", id="a negated choice"),
        pytest.param("././a", id="two dots at the start"),
        pytest.param("{a,b}" * 12, id="too many ways"),
    ],
)
def test_what_picomatch_reads_in_a_surprising_way_is_refused(pattern: str) -> None:
    with pytest.raises(BadGlob):
        path_glob(pattern)


@pytest.mark.proves("TRUST-3")
@pytest.mark.parametrize("pattern", ["!/é", "/a/!(é)", "/a/[^é]"])
def test_a_negation_is_refused_where_the_case_of_its_letters_cannot_be_ignored_exactly(pattern: str) -> None:
    assert path_glob(pattern).matches("/a/b")
    with pytest.raises(BadGlob, match="beyond ASCII"):
        path_glob(pattern, ignore_case=True)


@pytest.mark.proves("TRUST-3")
@given(st.text("ab*?[]{},/!^-. \\()|+@", max_size=16), st.text("ab./", max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_glob_or_a_bad_glob(pattern: str, path: str) -> None:
    try:
        glob = path_glob(pattern)
    except BadGlob:
        return
    assert glob.matches(path) in (True, False)


@pytest.mark.proves("T26", "T36")
@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("**/*a*a*a*a*a*a*a*a*a*b/c", id="stars"),
        pytest.param("**/+(a)+(a)+(a)b/c", id="repetitions"),
        pytest.param("**/*(a)*(a)*b/c", id="optional repetitions"),
        pytest.param("**/*!(*b|*c|*d)*c/d", id="negations between stars"),
        pytest.param("**/!(*a)!(*b)!(*c)d/e", id="negations"),
        pytest.param("/**/**/**/*a*a*a*b", id="globstars"),
        pytest.param("**/*a/**/*a/**/*a/**/*a/**/*b", id="globstars between stars"),
    ],
)
def test_no_pattern_makes_matching_dear(pattern: str) -> None:
    glob = path_glob(pattern)
    with seconds_of_work(10):
        for path in ("a" * 255, "/" + "/".join(["a" * 255] * 16), "a/" * 2000 + "a"):
            assert not glob.matches(path)
