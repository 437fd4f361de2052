"""Snippets become the text that stands in the file when every default is accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import MAX_LENGTH, plain_text


@pytest.mark.proves("C108")
@pytest.mark.parametrize(
    ("snippet", "text"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("plain {text} (1)", "plain {text} (1)", id="no syntax"),
        pytest.param("$0", "", id="last stop"),
        pytest.param("a$0b$1c$12d", "abcd", id="stops"),
        pytest.param("a${0}b${1}c", "abc", id="stops in braces"),
        pytest.param("let ${1:name} = $0;", "let name = ;", id="default"),
        pytest.param("${1:}", "", id="empty default"),
        pytest.param("${1:a${2:b${3:c}}d}", "abcd", id="defaults inside defaults"),
        pytest.param("${1|one,two|}", "one", id="choice"),
        pytest.param("${1|one|}", "one", id="only one choice"),
        pytest.param("${1|a\\,b\\|c\\\\,d|}", "a,b|c\\", id="escapes in a choice"),
        pytest.param("for (${1:i} = 0; $1 < n; ${1}++)", "for (i = 0; i < n; i++)", id="a stop repeats its default"),
        pytest.param("$1 ${1:x}", "x x", id="also before the default"),
        pytest.param("${1|a,b|}$1", "aa", id="a choice is repeated too"),
        pytest.param("${1:a}${1:b}$1", "aba", id="the first default counts"),
        pytest.param("${1:$1}", "", id="a default of itself"),
        pytest.param("\\$1 \\} \\\\", "$1 } \\", id="escapes"),
        pytest.param("C:\\new", "C:\\new", id="a backslash before anything else stays"),
        pytest.param("$x ${y} ${z:w}", "x y w", id="unknown variables leave their name or default"),
        pytest.param("${1:{}}", "{}", id="a brace inside a default ends it"),
        pytest.param("$ ${ $- }", "$ ${ $- }", id="dollars that start nothing"),
        pytest.param("fn f() {\n\t${1:todo!()}\n}", "fn f() {\n\ttodo!()\n}", id="several lines"),
    ],
)
def test_a_snippet_becomes_plain_text(snippet: str, text: str) -> None:
    assert plain_text(snippet) == text


@pytest.mark.proves("C108")
@pytest.mark.parametrize(
    ("snippet", "complaint"),
    [
        pytest.param("${1/a/b/}", "transformation", id="transformed stop"),
        pytest.param("${TM_FILENAME/(.*)/${1:/upcase}/}", "transformation", id="transformed variable"),
        pytest.param("${1:a", "no end", id="placeholder without end"),
        pytest.param("x" * (MAX_LENGTH + 1), "characters", id="too long"),
    ],
)
def test_a_snippet_without_a_plain_form_is_refused(snippet: str, complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        plain_text(snippet)


@pytest.mark.proves("C108")
@given(st.text(alphabet="ab$}\\{1:|,é\n", max_size=30))
def test_escaped_text_comes_out_as_it_was(text: str) -> None:
    escaped = "".join("\\" + character if character in "\\$}" else character for character in text)
    assert plain_text(escaped) == text
    assert plain_text(f"a${{1:{escaped}}}b") == f"a{text}b"


@pytest.mark.proves("C108")
def test_defaults_made_of_defaults_do_not_multiply() -> None:
    bomb = "${1:aaaaaaaaaa}" + "".join(f"${{{n + 1}:${n}${n}}}" for n in range(1, 200))
    assert len(plain_text(bomb)) < 10 * len(bomb)
