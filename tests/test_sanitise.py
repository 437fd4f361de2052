"""Hostile text in, harmless text out: by corpus and by property."""

import html
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.sanitise import (
    MAX_STEP_BACK,
    SCAN_FACTOR,
    SCAN_SLACK,
    escaped_attribute,
    escaped_message,
    sanitised,
    sanitised_lines,
    unbracketed,
)

ROOM = 10_000
"""More than any text here needs."""

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
NURSE = "\U0001f469\U0001f3fd\u200d\u2695\ufe0f"
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"

TEXTS = st.text(
    alphabet=st.sampled_from(
        'ab1 #<>&"\t\n\r\x00\x07\x08\x0b\x1b\x1c\x1f\x7f\x85\x90\x9b\x9c\x9d[]m;?\\P_^X8'
        "\u0301\u0645\u06cc\u061c\u200b\u200c\u200d\u200e\u202e\u2028\u2066\u20e3\ufe0f\ufeff\ud83d\udc80\U000e0041"
    )
    | st.sampled_from("\u2764\U0001f468\U0001f3fd\u0905\u094d\u6f22"),
    max_size=60,
)
LIMITS = st.integers(1, 80)
HARMLESS_FORMAT = {
    chr(code)
    for code in (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440))
}
"""Format characters that are seen: signs that go below numbers, and the layout of hieroglyphs."""


@pytest.mark.proves("T32")
@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colour"),
        pytest.param("\x1b[38;2;1;2;3mred\x1b[m", "red", id="true colour"),
        pytest.param("\x1b[2J\x1b[1;1Hgone", "gone", id="clear the screen"),
        pytest.param("\x1b[?25lhidden cursor", "hidden cursor", id="private mode"),
        pytest.param("a\x9b31mb", "ab", id="one-character CSI"),
        pytest.param("a\x1b[31", "a", id="CSI that never ends"),
        pytest.param("a\x1b[", "a", id="CSI without anything"),
        pytest.param("\x1b]8;;http://evil.example\x1b\\text\x1b]8;;\x1b\\", "text", id="hyperlink"),
        pytest.param("\x1b]52;c;ZXZpbA==\x07ok", "ok", id="clipboard"),
        pytest.param("\x1b]0;title\x07ok", "ok", id="window title"),
        pytest.param("\x9d0;title\x9cok", "ok", id="one-character OSC"),
        pytest.param("ok\x1b]0;never ends", "ok", id="OSC that never ends"),
        pytest.param("ok\x1b]0;never ends\nnext", "ok next", id="an open OSC takes its own line only"),
        pytest.param("\x1bPq#0;2;0;0;0\x1b\\ok", "ok", id="sixel picture"),
        pytest.param("\x1b_payload\x1b\\ok", "ok", id="application command"),
        pytest.param("\x1bcreset", "reset", id="reset of the terminal"),
        pytest.param("\x1b(0line drawing", "line drawing", id="character set"),
        pytest.param("end\x1b", "end", id="escape at the end"),
        pytest.param("a\x1b\x1b[31mb", "ab", id="escape before an escape"),
        pytest.param("a\x00b\x08c\x7fd\x84e", "abcde", id="controls"),
        pytest.param("secret\rpublic", "secret public", id="carriage return does not overwrite"),
    ],
)
def test_no_terminal_sequence_survives(hostile: str, harmless: str) -> None:
    assert sanitised(hostile, ROOM) == harmless


@pytest.mark.proves("T31", "T32")
@pytest.mark.parametrize(
    ("hostile", "marked"),
    [
        pytest.param("a\u202eb", "a[U+202E]b", id="right-to-left override"),
        pytest.param("a\u2066\u202ab\u2069", "a[U+2066 +1]b[U+2069]", id="isolates and embeddings"),
        pytest.param("a\u200eb\u200fc\u061cd", "a[U+200E]b[U+200F]c[U+061C]d", id="direction marks"),
        pytest.param("unexpected '\u200b'", "unexpected '[U+200B]'", id="zero-width space"),
        pytest.param("a\u200d\u200cb", "a[U+200D +1]b", id="joiners between letters that do not join"),
        pytest.param("a\ufeffb", "a[U+FEFF]b", id="byte order mark inside"),
        pytest.param("\ufefftext", "text", id="byte order mark in front is dropped"),
        pytest.param(
            "a" + "".join(chr(0xE0000 + ord(letter)) for letter in "delete all") + "b", "a[U+E0064 +9]b", id="tags"
        ),
        pytest.param("a\ufe01\ufe02\U000e0155b", "a[U+FE01 +2]b", id="data in variation selectors"),
        pytest.param("a\xad\u2060\u3164\uffa0b", "a[U+00AD +3]b", id="soft hyphen, word joiner, fillers"),
        pytest.param(
            "a\ufe0f\u200d\U0001f468", "a[U+FE0F +1]\U0001f468", id="a selector and a joiner that follow no emoji"
        ),
        pytest.param(ENGLAND, "\U0001f3f4[U+E0067 +5]", id="tags after a flag"),
    ],
)
def test_what_nobody_sees_is_named_and_its_payload_is_gone(hostile: str, marked: str) -> None:
    assert sanitised(hostile, ROOM) == marked
    assert sanitised_lines(hostile, ROOM) == marked


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FAMILY, id="emoji with joiners"),
        pytest.param(NURSE, id="emoji with skin, joiner and selector"),
        pytest.param("\u2764\ufe0f and \u2764\ufe0e", id="selector after an emoji"),
        pytest.param("1\ufe0f\u20e3", id="keycap"),
        pytest.param("\U0001f1e9\U0001f1ea", id="flag"),
        pytest.param("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", id="Persian with a non-joiner"),
        pytest.param("\u0915\u094d\u200d\u0937", id="Hindi with a joiner"),
        pytest.param("e\u0301 \u6f22\u5b57 \u05d0\u05d1", id="accents, Chinese, Hebrew"),
        pytest.param("two  spaces stay", id="spaces"),
    ],
)
def test_honest_text_is_kept(text: str) -> None:
    assert sanitised(text, ROOM) == text
    assert sanitised_lines(text, ROOM) == text


@pytest.mark.proves("FMT-3")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("first\n  second", "first second", id="line end and indentation"),
        pytest.param("first\r\nsecond\n\nthird", "first second third", id="Windows and empty lines"),
        pytest.param("a\tb", "a b", id="tab"),
        pytest.param("a\x0bb\x0cc\x1cd\x1fe\x85f\u2028g\u2029h", "a b c d e f g h", id="every other blank control"),
        pytest.param("a \x00\n b", "a b", id="a control between blanks"),
        pytest.param("  \n text \n ", "text", id="around the text"),
        pytest.param("", "", id="nothing"),
        pytest.param("\n", "", id="only a line end"),
    ],
)
def test_one_line_stays_one_line(text: str, line: str) -> None:
    assert sanitised(text, ROOM) == line


@pytest.mark.proves("T32")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a\n\tb\n", "a\n\tb\n", id="line ends and tabs stay"),
        pytest.param("a\r\nb\rc", "a\nb\nc", id="carriage returns end lines"),
        pytest.param("a\x0bb\x85c\u2028d\x1fe", "a\nb\nc\nd e", id="rare line ends"),
        pytest.param("\x1b[1mbold\x1b[0m\nplain", "bold\nplain", id="colours"),
        pytest.param("open \x1b]0;title\nnext", "open \nnext", id="an open OSC takes its own line only"),
    ],
)
def test_several_lines_stay_several(text: str, lines: str) -> None:
    assert sanitised_lines(text, ROOM) == lines


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        pytest.param("abcdef", 6, "abcdef", id="just fits"),
        pytest.param("abcdef", 5, "abcd…", id="one too many"),
        pytest.param("abcdef", 1, "…", id="room for the mark only"),
        pytest.param("abce\u0301f", 5, "abc…", id="a letter stays with its accent"),
        pytest.param("ab" + NURSE + "c", 5, "ab…", id="an emoji stays whole"),
        pytest.param("ab1\ufe0f\u20e3c", 5, "ab…", id="a keycap stays whole"),
        pytest.param("\u0645\u06cc\u200c\u062e\u0648", 4, "\u0645\u06cc…", id="no joiner at the end"),
        pytest.param("a" + "\u0301" * 100, 50, "a" + "\u0301" * 48 + "…", id="a stack of accents is split"),
    ],
)
def test_a_cut_falls_between_characters(text: str, limit: int, cut: str) -> None:
    assert sanitised(text, limit) == cut


def test_a_flood_of_what_is_removed_costs_no_more_than_the_scan() -> None:
    flood = "\x1b[31m" * (10 * SCAN_FACTOR + SCAN_SLACK) + "unseen"
    assert sanitised(flood, 10) == "…"
    assert sanitised_lines(flood, 10) == "…"
    assert sanitised("seen" + flood, 10) == "seen…"


def test_text_that_just_fits_the_scan_is_read_to_its_end() -> None:
    colour = "\x1b[31m"
    assert sanitised(colour * (SCAN_SLACK // len(colour)) + "seen", 10) == "seen"


def test_a_short_step_back_is_found_within_its_bound() -> None:
    marks = "\u0301" * (MAX_STEP_BACK - 2)
    assert sanitised("ab" + marks + "c" * 9, 2 + len(marks)) == "a…"


@pytest.mark.proves("T31", "T32")
@given(TEXTS, LIMITS)
def test_the_result_is_short_encodable_and_final(text: str, limit: int) -> None:
    for clean in (sanitised(text, limit), sanitised_lines(text, limit)):
        assert len(clean) <= limit
        clean.encode()
    assert sanitised(sanitised(text, limit), limit) == sanitised(text, limit)
    assert sanitised_lines(sanitised_lines(text, limit), limit) == sanitised_lines(text, limit)


@pytest.mark.proves("T32", "FMT-3")
@given(TEXTS)
def test_no_control_survives_but_line_ends_and_tabs_where_they_are_wanted(text: str) -> None:
    controls = {letter for letter in sanitised(text, ROOM) if unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"}}
    assert controls == set()
    controls = {letter for letter in sanitised_lines(text, ROOM) if unicodedata.category(letter) in {"Cc", "Cs"}}
    assert controls <= {"\n", "\t"}


@pytest.mark.proves("T31")
def test_every_invisible_character_of_unicode_is_marked_between_letters() -> None:
    unseen = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"} and chr(code) not in HARMLESS_FORMAT
    ]
    kept = [letter for letter in unseen if letter in sanitised(f"a{letter}b", ROOM)]
    assert kept == []


@pytest.mark.proves("FMT-3")
@given(st.text(alphabet="ab<>&\"';#lgtampquo", max_size=40))
def test_escaping_can_be_undone_and_leaves_no_bracket(text: str) -> None:
    assert html.unescape(escaped_message(text)) == text
    assert not set("<>") & set(escaped_message(text))
    assert not set('<>"') & set(escaped_attribute(text))
    assert html.unescape(escaped_attribute(text)) == text
    assert not set("<>") & set(unbracketed(text))
