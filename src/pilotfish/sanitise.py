"""The one sanitiser for every sink: feedback, MCP text, the panel, logs.

What a language server says comes from the code that it reads, so it may try to move the cursor, recolour
the terminal, reverse the reading order or hide words from people that a model still reads.

Removed without a trace: whole terminal sequences (CSI, OSC, DCS and their kin, ended or not) and control characters.
Shown as a mark: runs of invisible characters (bidi controls, zero-width and tag characters, stray variation
selectors). `[U+202E]` stands for one, `[U+E0041 +23]` for 24 of which the first is named: the payload is gone, and the
reader knows that something was there, and where.
Kept: joiners and variation selectors where they belong, inside an emoji or between letters of a script that joins.
Replaced by U+FFFD: lone surrogates, so that every result can be encoded.

Invariants: the result has at most `limit` code points, is valid UTF-8, and sanitising it again changes nothing.
"""

import re
import unicodedata

ELLIPSIS = "…"

SCAN_FACTOR = 16
"""Only this many times `limit` code points are looked at, so that text full of what we remove costs little."""

SCAN_SLACK = 1024
"""The same for a small `limit`: a coloured short line is mostly colour."""

MAX_STEP_BACK = 16
"""How far a cut moves to keep a character and its combining marks together; longer stacks are ornament."""

_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    # OSC, DCS, SOS, PM, APC: title, hyperlink, clipboard. One that never ends takes the rest of its line.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Every terminal sequence begins with one."""
_SPOKEN_TAG = re.compile(r"<(?=[\s/]*(?:diagnostics\b|antml|system[-_\s>]|(?:tool|function)_))", re.IGNORECASE)
"""What our text and the messages of hosts and models are enclosed in."""

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
"""Blanks that are no spaces."""
_LINE_ENDS = re.compile(r"\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_INVISIBLE = (
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""The default ignorable code points of Unicode, the bidi controls and the interlinear annotation marks."""

_EMOJI = (
    r"[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    r"\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_SKIN = r"[\U0001f3fb-\U0001f3ff]"
_JOINING = r"[\u0620-\u0dff\u1000-\u109f\u1780-\u17b3\u1820-\u18aa]"
"""Letters and signs of the scripts that use joiners for spelling: Arabic to Sinhala, Burmese, Khmer, Mongolian."""

_HIDDEN = re.compile(
    rf"(?P<kept>[#*0-9]\ufe0f\u20e3|{_EMOJI}[\ufe0e\ufe0f]?{_SKIN}?(?:\u200d{_EMOJI}\ufe0f?{_SKIN}?)*"
    rf"|{_JOINING}[\u200c\u200d](?={_JOINING}))"
    rf"|{_INVISIBLE}+"
)
_JOINERS = "\u200c\u200d"


def sanitised(text: str, limit: int) -> str:
    """One line: a run of blanks that holds a line end or a tab becomes one space, and the ends are trimmed."""
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text.strip(" ")
    scope = _scope(text, limit)
    clean = _visible(_folded(_plain(scope)))
    return _capped(clean.strip(" "), limit, more=len(scope) < len(text))


def sanitised_lines(text: str, limit: int) -> str:
    """Several lines: tabs stay, and everything that ends a line somewhere ends one here, a carriage return included."""
    scope = _scope(text, limit)
    bare = _TERMINAL_SEQUENCE.sub("", scope) if _CONTROLS.search(scope) else scope
    clean = _CONTROLS.sub("", _LINE_ENDS.sub("\n", bare).replace("\x1f", " "))
    return _capped(_visible(clean), limit, more=len(scope) < len(text))


def escaped_message(text: str) -> str:
    """Text that cannot open or close a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_attribute(text: str) -> str:
    """Text that cannot leave a double-quoted attribute either."""
    return escaped_message(text).replace('"', "&quot;")


def quoted_code(text: str) -> str:
    """Code as it is, for a reader who may copy it, but for tags that would end what it stands in or that hosts use."""
    return _SPOKEN_TAG.sub("‹", text)


def unbracketed(text: str) -> str:
    """Text without angle brackets at all, for readers that would see them as `&lt;`."""
    return text.replace("<", "‹").replace(">", "›")


def _scope(text: str, limit: int) -> str:
    return text[: limit * SCAN_FACTOR + SCAN_SLACK]


def _plain(text: str) -> str:
    return _CONTROLS.sub("", _TERMINAL_SEQUENCE.sub("", text)) if _CONTROLS.search(text) else text


def _folded(text: str) -> str:
    first, *others = _BREAKS.split(text)
    if not others:
        return text
    *middle, last = others
    between = (part.strip(" ") for part in middle)
    return " ".join([first.rstrip(" "), *(part for part in between if part), last.lstrip(" ")])


def _visible(text: str) -> str:
    if text.isascii():
        return text
    return _SURROGATES.sub("\ufffd", _HIDDEN.sub(_mark, text.removeprefix("\ufeff")))


def _mark(run: re.Match[str]) -> str:
    if run["kept"]:
        return run[0]
    others = f" +{len(run[0]) - 1}" if len(run[0]) > 1 else ""
    return f"[U+{ord(run[0][0]):04X}{others}]"


def _capped(text: str, limit: int, *, more: bool) -> str:
    if len(text) <= limit and not more:
        return text
    end = min(max(limit - 1, 0), len(text))
    for step in range(min(MAX_STEP_BACK, end)):
        if not _splits(text, end - step):
            end -= step
            break
    return (text[:end].rstrip(_JOINERS) + ELLIPSIS)[:limit]


def _splits(text: str, end: int) -> bool:
    """Whether a cut there parts a character from what belongs to it."""
    if end >= len(text):
        return False
    follower = text[end]
    return (
        unicodedata.combining(follower) != 0
        or follower in "\u200d\ufe0e\ufe0f\u20e3"
        or "\U0001f3fb" <= follower <= "\U0001f3ff"
        or text[end - 1] == "\u200d"
    )
