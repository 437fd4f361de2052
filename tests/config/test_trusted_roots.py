"""Which folders an entry of `trustedProjectRoots` covers."""

import pytest

from pilotfish.config.trusted_roots import covers, fault, is_glob
from pilotfish.model import AbsPath

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
    "glob, case counts": ("/Code/*", "/code/a", False),
}


@pytest.mark.proves("TRUST-2", "TRUST-3")
@pytest.mark.parametrize(("entry", "candidate", "expected"), MATRIX.values(), ids=MATRIX)
def test_an_entry_covers_by_the_table(entry: str, candidate: str, expected: bool) -> None:
    assert covers(entry, AbsPath(candidate), HOME) is expected


@pytest.mark.parametrize("entry", ["code", "./code", "", "~you/code", "**", "{/code,b}"])
def test_a_relative_entry_covers_nothing_even_if_it_gets_this_far(entry: str) -> None:
    assert not covers(entry, AbsPath("/code"), HOME)
    assert not covers(entry, AbsPath("/"), HOME)


def test_a_broken_glob_has_a_fault_and_others_have_none() -> None:
    assert fault("/code/{a")
    assert fault("/code/**") is None
    assert fault("/code (old)") is None
    assert is_glob("/a/@(b)")
    assert not is_glob("/a@b/c!d/(e)")
