"""One path, many spellings: the canonical encoder, the tolerant decoder, and six encoders that do it differently."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.errors import Bug
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import path_of, uri_of

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def escape(path: str, bare: str, hexadecimal: str = "%{:02X}") -> str:
    """Percent-encode the bytes of `path` except the ASCII characters in `bare`."""
    return "".join(
        chr(byte) if byte < 0x80 and chr(byte) in bare else hexadecimal.format(byte) for byte in os.fsencode(path)
    )


def leave_almost_everything_bare(path: str) -> str:
    """Escape what no URI can hold at all: bytes that are no text, spaces, and the percent sign itself."""
    return "".join(
        escape(character, "") if character in "% " or "\ud800" <= character <= "\udfff" else character
        for character in path
    )


ENCODERS: dict[str, Callable[[str], str]] = {
    "python": lambda path: Path(path).as_uri(),
    "vscode": lambda path: "file://" + escape(path, UNRESERVED + "/", "%{:02x}"),
    "minimal": lambda path: "file://" + leave_almost_everything_bare(path),
    "everything": lambda path: "file://" + escape(path, "/"),
    "go": lambda path: "file://" + escape(path, UNRESERVED + "$&+,/:;=@"),
    "concatenation": lambda path: "file://" + path.replace("%", "%25"),
    "one slash": lambda path: "file:" + escape(path, UNRESERVED + "/!()[]'"),
    "localhost": lambda path: "FILE://localhost" + escape(path, UNRESERVED + "/*"),
}

NAMES = (
    st.binary(min_size=1, max_size=8)
    .map(lambda name: os.fsdecode(name.replace(b"/", b"").replace(b"\0", b"")))
    .filter(lambda name: name not in {"", ".", ".."})
) | st.sampled_from(["[id].tsx", "a b", "a#b", "a%20b", "100%", "a?b", "a\\b", "😀", "a\nb", "\udcff.py", "c:d", "%2e"])
PATHS = (
    st.lists(NAMES, min_size=1, max_size=4)
    .filter(lambda names: not re.fullmatch(r"[A-Za-z]:(\\.*)?", names[0], re.DOTALL))
    .map(lambda names: AbsPath("/" + "/".join(names)))
)


@pytest.mark.proves("C113", "C114", "F44", "F45")
@pytest.mark.parametrize(
    ("path", "uri"),
    [
        pytest.param("/", "file:///", id="root"),
        pytest.param("/w/a.py", "file:///w/a.py", id="plain"),
        pytest.param("/w/a-b_c.d~e/F9", "file:///w/a-b_c.d~e/F9", id="all that stays bare"),
        pytest.param("/w/a b.py", "file:///w/a%20b.py", id="space"),
        pytest.param("/w/a#b.py", "file:///w/a%23b.py", id="number sign"),
        pytest.param("/w/a%20b.py", "file:///w/a%2520b.py", id="percent sign"),
        pytest.param("/w/a?b.py", "file:///w/a%3Fb.py", id="question mark"),
        pytest.param("/w/a\\b.py", "file:///w/a%5Cb.py", id="backslash"),
        pytest.param("/w/a\nb.py", "file:///w/a%0Ab.py", id="newline"),
        pytest.param("/w/a:b.py", "file:///w/a%3Ab.py", id="colon"),
        pytest.param("/w/[id]/(x)/@y/+z.tsx", "file:///w/%5Bid%5D/%28x%29/%40y/%2Bz.tsx", id="route names"),
        pytest.param("/w/é.py", "file:///w/%C3%A9.py", id="accent"),
        pytest.param("/w/e\u0301.py", "file:///w/e%CC%81.py", id="decomposed accent"),
        pytest.param("/w/😀.py", "file:///w/%F0%9F%98%80.py", id="emoji"),
        pytest.param("/w/\udcff.py", "file:///w/%FF.py", id="a byte that is not UTF-8"),
    ],
)
def test_a_path_has_one_uri_and_comes_back_from_it(path: str, uri: str) -> None:
    assert uri_of(AbsPath(path)) == uri
    assert path_of(uri) == path


@pytest.mark.proves("F42", "F47", "C113")
@pytest.mark.parametrize(
    ("spellings", "path", "canonical"),
    [
        pytest.param(
            ["file:///c:/w/a b.py", "file:///C:/w/a%20b.py", "file:///c%3A/w/a b.py", "file:///c%3a/w/./a b.py",
             "file:/c:/w/a b.py", "file:c:/w/a b.py", "file://c:/w/a b.py", "file://C%3A/w/a b.py",
             r"file://c:\w\a b.py", r"file:///c:\w\a b.py", "file://localhost/c:/w/a b.py", "file:///%43:/w/a b.py"],
            r"C:\w\a b.py",
            "file:///C:/w/a%20b.py",
            id="drive",
        ),
        pytest.param(["file:///c:", "file:///C:/", "file:///c:/x/.."], "C:\\", "file:///C:/", id="root of a drive"),
        pytest.param(
            ["file:////c:/x", "file:///w/../c%3A/x", "file:///c:/../c:/x"],
            r"C:\x",
            "file:///C:/x",
            id="drive behind more",
        ),
        pytest.param(
            ["file://server/share/a%23b.c", "file://SERVER/share/x/../a#b.c", r"file://server\share\a#b.c"],
            r"\\server\share\a#b.c",
            "file://server/share/a%23b.c",
            id="share of another host",
        ),
        pytest.param(
            ["file://wsl%24/Ubuntu/home/u", "file://wsl$/Ubuntu/home/u/"],
            r"\\wsl$\Ubuntu\home\u",
            "file://wsl%24/Ubuntu/home/u",
            id="share of the Linux subsystem",
        ),
    ],
)  # fmt: skip
def test_windows_spellings_become_one_path_with_one_uri(spellings: list[str], path: str, canonical: str) -> None:
    assert {path_of(spelling) for spelling in spellings} == {path}
    assert uri_of(AbsPath(path)) == canonical
    assert path_of(canonical) == path


@pytest.mark.proves("F42")
def test_a_drive_path_with_a_small_letter_or_slashes_has_the_same_uri() -> None:
    assert uri_of(AbsPath("c:/w/a b.py")) == uri_of(AbsPath(r"C:\w\a b.py")) == "file:///C:/w/a%20b.py"


@pytest.mark.proves("F42", "PLAT-1")
@pytest.mark.parametrize(
    ("long", "uri"),
    [
        (r"\\?\c:\w\a b.py", "file:///C:/w/a%20b.py"),
        (r"\\?\UNC\server\share\a.py", "file://server/share/a.py"),
        (r"\\?\unc\wsl$\Ubuntu\home", "file://wsl%24/Ubuntu/home"),
    ],
)
def test_a_path_without_the_limit_of_windows_has_the_uri_of_the_one_with_it(long: str, uri: str) -> None:
    assert uri_of(AbsPath(long)) == uri


@pytest.mark.proves("F47", "F48")
@pytest.mark.parametrize(
    ("uri", "path"),
    [
        pytest.param("file://localhost/w/a.py", "/w/a.py", id="localhost"),
        pytest.param("file://LocalHost/w/a.py", "/w/a.py", id="localhost in capitals"),
        pytest.param("file:/w/a.py", "/w/a.py", id="one slash"),
        pytest.param("file:////w//a.py", "/w/a.py", id="doubled slashes"),
        pytest.param("file:///w/sub/", "/w/sub", id="trailing slash"),
        pytest.param("File:///w/a.py", "/w/a.py", id="scheme in capitals"),
        pytest.param("file:///w/%2e%2e/etc/passwd", "/etc/passwd", id="escaped dots go up like bare ones"),
        pytest.param("file:///w/../../etc", "/etc", id="no higher than the root"),
        pytest.param("file:///w%2F..%2Fetc", "/etc", id="escaped slash separates"),
        pytest.param("file:///w/%252e%252e/a", "/w/%2e%2e/a", id="decoded once, not twice"),
        pytest.param("file:///w/%c0%ae%c0%ae/a", "/w/\udcc0\udcae\udcc0\udcae/a", id="overlong dots are not dots"),
        pytest.param("file:///w/100%.py", "/w/100%.py", id="percent sign that starts no escape"),
        pytest.param("file:///w/%zz%4", "/w/%zz%4", id="broken escapes stay"),
        pytest.param("file:///w/a#b?c", "/w/a#b?c", id="bare number sign and question mark"),
        pytest.param("file:///w/\udcff", "/w/\udcff", id="an escaped byte left bare"),
        pytest.param("file:///w/\n", "/w/\n", id="newline at the end"),
    ],
)
def test_a_careless_uri_is_understood(uri: str, path: str) -> None:
    assert path_of(uri) == path


@pytest.mark.proves("C115", "F48")
@pytest.mark.parametrize(
    "uri",
    [
        pytest.param("jdt://contents/java.base/java.lang/String.class?=x", id="jdt"),
        pytest.param("deno:/asset/lib.deno.d.ts", id="deno"),
        pytest.param("untitled:Untitled-1", id="untitled"),
        pytest.param("git:/w/a.py?ref", id="git"),
        pytest.param("filesystem:/w/a.py", id="a scheme that begins with file"),
        pytest.param("/w/a.py", id="no scheme"),
        pytest.param("", id="empty"),
        pytest.param("file:", id="no path"),
        pytest.param("file://", id="no path after the slashes"),
        pytest.param("file:a.py", id="relative"),
        pytest.param("file://server", id="host without a share"),
        pytest.param("file://server/..", id="host and no share left"),
        pytest.param(r"file://server/\c:\x", id="a share that is called like a drive"),
        pytest.param("file://../etc", id="dots as host"),
        pytest.param("file://a%2Fb/c", id="slash inside the host"),
        pytest.param("file:///w/a%00.py", id="escaped NUL"),
        pytest.param("file:///w/a\0.py", id="bare NUL"),
        pytest.param("file://h%00/a", id="NUL in the host"),
        pytest.param("file:///w/\ud800", id="half of a surrogate pair"),
    ],
)
def test_a_uri_that_names_no_file_has_no_path(uri: str) -> None:
    assert path_of(uri) is None


@pytest.mark.parametrize("path", ["a.py", "", "./a", "c:a", "\\a"], ids=repr)
def test_a_uri_for_a_path_that_is_not_absolute_is_our_bug(path: str) -> None:
    with pytest.raises(Bug, match="not absolute"):
        uri_of(AbsPath(path))


@pytest.mark.proves("C113", "F41", "F42")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("file:///w/%5Bid%5D.tsx", "file:///w/[id].tsx", True, id="brackets"),
        pytest.param("file:///w/%28a%29%40b", "file:///w/(a)@b", True, id="parentheses and at"),
        pytest.param("file:///c%3A/w", "file:///C:/w/", True, id="drive letters"),
        pytest.param("file:///w/a", "file:///w/A", False, id="another file"),
        pytest.param("file:///w/a", "jdt://x", False, id="file and opaque"),
        pytest.param("jdt://x", "file:///w/a", False, id="opaque and file"),
    ],
)
def test_documents_are_the_same_by_decoded_path(one: str, other: str, *, same: bool) -> None:
    assert (path_of(one) == path_of(other)) is same


@pytest.mark.proves("F43")
def test_composed_and_decomposed_names_are_two_documents() -> None:
    composed, decomposed = AbsPath("/w/\u00e9.py"), AbsPath("/w/e\u0301.py")
    assert path_of(uri_of(composed)) != path_of(uri_of(decomposed))


@pytest.mark.proves("F41", "F44", "F45", "C113", "P13")
@given(PATHS)
@example(AbsPath("/w/[id]/(x)@y+z 'a' #1?.tsx"))
def test_every_way_of_encoding_a_path_names_that_path(path: AbsPath) -> None:
    canonical = uri_of(path)
    assert re.fullmatch(r"file:///([A-Za-z0-9\-._~/]|%[0-9A-F]{2})*", canonical)
    for name, encoder in ENCODERS.items():
        uri = encoder(path)
        assert path_of(uri) == path, name


@pytest.mark.proves("F48")
@given(st.text(alphabet="%2eEfF5cC/\\.:0aw#?\0", max_size=24), st.sampled_from(["file:", "file://", "file:///"]))
def test_whatever_comes_in_is_refused_or_a_path_without_steps_up(rest: str, prefix: str) -> None:
    path = path_of(prefix + rest)
    if path is not None:
        assert "\0" not in path
        assert path.startswith(("/", "\\\\")) or re.match(r"[A-Z]:\\", path)
        separator = "/" if path.startswith("/") else "\\"
        assert not {".", ".."} & set(path.split(separator))
        assert path_of(uri_of(path)) == path
