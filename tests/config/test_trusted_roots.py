"""Which folders an entry of `trustedProjectRoots` covers."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.config.trusted_roots import covers, fault, is_glob
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.globs import BadGlob

HOME = AbsPath("/home/me")

MATRIX: dict[str, tuple[str, str, bool]] = {
    "plain, the folder itself": ("/code", "/code", True),
    "plain, with a slash at its end": ("/code/", "/code", True),
    "plain, a descendant": ("/code", "/code/a/b", True),
    "plain, a name that only begins so": ("/code", "/code2", False),
    "plain, the parent": ("/code/a", "/code", False),
    "plain, the root folder": ("/", "/anything", True),
    "plain, brackets of other kinds": ("/code (old)", "/code (old)/a", True),
    "plain, dots are not followed": ("/code/../etc", "/etc", False),
    "home": ("~", "/home/me/a", True),
    "below home": ("~/code", "/home/me/code/a", True),
    "tilde in the middle": ("/code/~", "/code/home/me", False),
    "glob, any depth": ("/code/**", "/code/a/b/c", True),
    "glob, any depth covers the folder itself": ("/code/**", "/code", True),
    "glob, one level": ("/code/*", "/code/a", True),
    "glob, one level is not two": ("/code/*", "/code/a/b", False),
    "glob, does not cover descendants": ("/code/a*", "/code/abc/d", False),
    "glob, dot folders": ("/code/*", "/code/.hidden", True),
    "glob, dot folders at depth": ("/code/**", "/code/.a/.b", True),
    "glob, name prefix": ("/code/**", "/code2/a", False),
    "glob, home": ("~/code/*", "/home/me/code/a", True),
    "glob, another home": ("~/code/*", "/home/you/code/a", False),
    "glob, braces": ("/code/{a,b}", "/code/b", True),
    "glob, question mark": ("/code/a?", "/code/ab", True),
    "glob, character class": ("/code/[ab]", "/code/b", True),
    "glob, negated class": ("/code/[!a]", "/code/a", False),
    "glob, nested braces": ("/code/{a,{b,c}/*}", "/code/c/d", True),
    "glob, braces over folders": ("/home/{me,you}/code/**", "/home/you/code/x/y", True),
    "glob, braces of other names": ("/home/{me,you}/code/**", "/home/them/code/x", False),
    "glob, folders in between": ("/code/**/x", "/code/a/b/x", True),
    "glob, no folder in between": ("/code/**/x", "/code/x", True),
    "glob, a name that only ends so": ("/code/**/x", "/code/ax", False),
    "glob, a name that only begins so": ("/code/personal/**", "/code/personal2/x", False),
    "glob, a parenthesis that is a name": ("/code (old)/*", "/code (old)/a", True),
    "glob, case counts": ("/Code/*", "/code/a", False),
    "glob, one level below home is not home": ("~/*", "/home/me", False),
    "glob, everything below home covers home": ("~/**", "/home/me", True),
    "glob, one level below the root is not the root": ("/*", "/", False),
    "glob, everything covers the root": ("/**", "/", True),
    "a path with dots": ("/code/**", "/code/../etc", False),
    "a path with an empty segment": ("/code/**", "/code//a", False),
    "a path with two slashes in front": ("/**", "//code", False),
    "a path with a slash at its end": ("/code/*", "/code/a/", False),
    "plain, a path with dots": ("/code", "/code/../etc", False),
}


@pytest.mark.proves("TRUST-2", "TRUST-3")
@pytest.mark.parametrize(("entry", "candidate", "expected"), MATRIX.values(), ids=MATRIX)
def test_an_entry_covers_by_the_table(entry: str, candidate: str, expected: bool) -> None:
    assert covers(entry, AbsPath(candidate), HOME) is expected


@pytest.mark.parametrize("entry", ["code", "./code", "", "~you/code", "**", "{/code,b}"])
def test_a_relative_entry_covers_nothing_even_if_it_gets_this_far(entry: str) -> None:
    assert not covers(entry, AbsPath("/code"), HOME)
    assert not covers(entry, AbsPath("/"), HOME)


@pytest.mark.proves("TRUST-3")
@pytest.mark.parametrize(("home", "expected"), [("/home/a*", True), ("/home/ab", False), ("/", False)])
def test_the_name_of_the_home_folder_is_no_pattern(home: str, expected: bool) -> None:
    assert covers("~/code/*", AbsPath("/home/a*/code/x"), AbsPath(home)) is expected
    assert covers("~/code/*", AbsPath("/code/x"), AbsPath(home)) is (home == "/")


BAD: dict[str, str] = {
    "an open brace": "/code/{a",
    "an open brace with a comma": "/code/{a,b",
    "a closing brace": "/code/a}",
    "an open bracket": "/code/[a",
    "an empty range": "/code/[c-a]",
    "a class of the slash": "/code/[/]",
    "a globstar beside a name": "/code/x{**,a}",
    "too many ways": "/" + "{a,b}" * 20,
    "too long": "/*" + "a" * 5000,
    "a group": "/code/@(a|b)",
    "a repeated group": "/code/+(a)",
    "an optional group": "/code/?(a)",
    "any number of a group": "/code/*(a)",
    "a negated group": "/code/!(evil)",
    "a negated group at depth": "/code/!(evil)/**",
    "an escaped star": "/code/\\*",
    "an escaped bracket": "/code/\\[a\\]",
    "a range of numbers": "/code/{1..3}",
    "a range of letters": "/code/v{a..c}/*",
    "a space at the end": "/code/* ",
    "a line end at the end": "/code/*\n",
}


@pytest.mark.proves("TRUST-2", "TRUST-3")
@pytest.mark.parametrize("entry", BAD.values(), ids=BAD)
def test_a_pattern_that_cannot_be_read_has_a_fault_and_covers_nothing(entry: str) -> None:
    assert is_glob(entry)
    assert fault(entry)
    with pytest.raises(BadGlob):
        covers(entry, AbsPath("/code/a"), HOME)


def test_only_a_glob_character_makes_a_glob() -> None:
    assert fault("/code/**") is None
    assert fault("/code (old)") is None
    assert is_glob("/a/@(b)")
    assert not is_glob("/a@b/c!d/(e)")


@pytest.mark.proves("TRUST-3", "T26")
@given(st.text("ab*?[]{},/!^-. \\()|+@~", max_size=16), st.text("ab./", max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_entry_covers_nothing_outside_the_folder_that_it_spells_out(entry: str, path: str) -> None:
    try:
        covered = covers(entry, AbsPath("/" + path), HOME)
    except BadGlob:
        assert fault(entry)
        return
    spelled = entry.replace("~", HOME, 1) if entry.startswith("~") else entry
    folder = re.split(r"[*?\[{]", spelled)[0].rpartition("/")[0] if is_glob(entry) else spelled.rstrip("/")
    assert not covered or is_inside("/" + path, folder or "/")
