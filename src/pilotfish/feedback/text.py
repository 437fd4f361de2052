"""The feedback that follows an edit, and what a conversation is told beside it, as the model reads it.

The edit's own text comes first and stays as it is; feedback is a block after it, or nothing.
It speaks about the result of an edit that has been made, and never reads as a refusal. What is older than the edit is
counted in one line. Notes (a verdict that is late, a server that is missing) stand after it, or alone.

There are two wordings. A *worklist* (ours) goes on the assumption that the change is not finished: other files that do
not fit it yet, and names that nothing defines yet, are open and no errors; each finding has its source line; nothing is
called to be fixed, and what is left is told before the agent stops. A *report* has the words that Pi, LLxprt and
OpenCode give: everything that the edit introduced is an error, please fix it.
Server text goes in sanitised, capped and escaped, so no message can end its block or begin another line.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.counting import counted
from pilotfish.feedback.conversation import Debt
from pilotfish.feedback.linemap import lines_of
from pilotfish.feedback.select import Chosen, Finding, Selection, cut
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.paths import shown_path
from pilotfish.sanitise import escaped_attribute, escaped_message, quoted_code, sanitised, unbracketed

SEVERITY_WORDS: Final = {
    Severity.ERROR: "ERROR",
    Severity.WARNING: "WARNING",
    Severity.INFORMATION: "INFO",
    Severity.HINT: "HINT",
}

_WORD = re.compile(r"\w+")
_MISSING = re.compile(r"\b(?:missing|not present|does not exist)\b")

MOST_BYTES = 5
"""Of one code point as it is written: four, or an escaped bracket or ampersand."""

MAX_NAMED = 10
"""Other files that are only named because their findings do not fit."""

MESSAGE_LIMIT = 500
"""Code points of one message. TypeScript writes up to some thousand; the cause comes first."""

CODE_LIMIT = 80
"""Code points of one code: the longest rule names of ESLint's plugins have about 60."""

PATH_LIMIT = 1024
"""Code points of one path: an agent could not use a longer one."""

SOURCE_BYTES = 80
"""Of a source line that is shown with a finding: enough to know the place without reading the file."""

ERROR_BYTES = 200
"""One finding of a worklist with its source line. Longer messages of checkers repeat in other words what is wrong."""

CUTS: Final = (20, 10, 5, 3, 1)
"""Findings of each file, tried in this order until the text fits."""

MAX_FILES = 20
"""Files of one group; the others are counted."""

FIX: Final = "What was changed stays changed; please fix these errors in a further edit."

STOP_UNKNOWN: Final = "These errors came with your changes, and could not be checked again in time:"
STOP_HEADING: Final = "Before you finish: these errors came with your changes and are still there, please fix them:"


class Form(Struct, frozen=True):
    """How a selection becomes text."""

    workspace: AbsPath
    plain: bool = False
    """Without angle brackets, for hosts that escape them on the way to the model."""
    max_bytes: int | None = None
    wording: Literal["worklist", "report"] = "report"
    stops: bool = False
    """Whether the agent is told what is left before it stops."""
    undefined: Mapping[str, Collection[str]] = {}
    """By server: the codes of findings about a name, member or module that nothing defines, or words of them."""
    calls: Mapping[str, Collection[str]] = {}
    """The same of calls that do not fit a definition: the next edit may change that."""
    syntax: Mapping[str, Collection[str]] = {}
    """By server: patterns of the codes of syntax errors."""

    @property
    def spoken(self) -> Callable[[str], str]:
        """How messages and names are written. A worklist escapes only what could end its block: the rest is code that
        a model may copy."""
        if self.plain:
            return unbracketed
        return quoted_code if self.wording == "worklist" else escaped_message


class FileRole(Enum):
    """What a file is to the change that its findings came with."""

    EDITED = auto()
    OTHER = auto()
    LEFT = auto()
    """The change is finished."""


def with_notes(text: str, notes: Sequence[str], form: Form) -> str:
    """The text with these lines after it, about what could not be said, where there is room: they give way to it."""
    lines = [sanitised(note, MESSAGE_LIMIT) for note in notes]
    # They are ours, and hold commands.
    spoken = "\n".join(unbracketed(line) if form.plain else quoted_code(line) for line in lines)
    joined = "\n\n".join(filter(None, (text, spoken)))
    return joined if form.max_bytes is None or len(joined.encode()) <= form.max_bytes else text


def feedback_text(selection: Selection, form: Form) -> str:
    """The text, at most `max_bytes` of UTF-8; empty when there is nothing to say.

    What does not fit is left out in whole lines, the lightest findings first, and counted. Where not even the count
    fits, the text is empty.
    """
    text = _rendered(selection, form)
    if form.max_bytes is None or len(text.encode()) <= form.max_bytes:
        return text
    fitting, too_many, best = -1, selection.size, ""
    while too_many - fitting > 1:
        most = (fitting + too_many) // 2
        shorter = _rendered(cut(selection, most), form)
        if len(shorter.encode()) <= form.max_bytes:
            fitting, best = most, shorter
        else:
            too_many = most
    return best


def appended(success: str, feedback: str) -> str:
    """The edit's own text, untouched, then a blank line, then the feedback."""
    if not success or not feedback:
        return success or feedback
    line_ends = len(success) - len(success.rstrip("\n"))
    return success + "\n" * max(0, 2 - line_ends) + feedback


def named(path: AbsPath, workspace: AbsPath) -> str:
    """The path to show: relative inside the workspace, absolute outside, and safe to print."""
    return sanitised(shown_path(path, workspace), PATH_LIMIT)


def _rendered(selection: Selection, form: Form) -> str:
    noun = "error" if selection.errors_only else "diagnostic"
    if form.wording == "worklist":
        return _worklist(selection, form, noun)
    sections = list[str]()
    for file in (one for one in selection.edited if one.shown):
        wish = "possibly older than this edit" if _is_doubtful(file, selection) else "please fix"
        sections.append(f"LSP {noun}s detected in this file, {wish}:\n{block(file, form)}")
    others = [block(file, form) for file in selection.others if file.shown]
    if others:
        sections.append("\n".join([f"LSP {noun}s detected in other files:", *others]))
    sections += _unseen(selection, noun)
    if not sections:
        return ""
    sections.append("\n".join([_closing(selection, noun), *_rest(selection, form, noun)]))
    return "\n\n".join(sections)


def _worklist(selection: Selection, form: Form, noun: str) -> str:
    lines = list[str]()
    for file in selection.edited:
        if file.shown:
            lines += ["Possibly older than this edit:"] if _is_doubtful(file, selection) else []
            lines.append(block(file, form))
    lines += others_list(selection.others, form, selection.changed)
    lines += _unseen(selection, noun)
    if not lines:
        return ""
    closing = "Applied; what is left is told before you stop." if form.stops else "The edit was applied."
    return "\n".join([*lines, closing, *_rest(selection, form, noun)])


def others_list(files: Sequence[Chosen], form: Form, changed: str = "") -> list[str]:
    """The places in other files that a change in flight has left behind; `changed`: what it changed, as it was."""
    # Several errors in one line are one place.
    lines = [{one.diagnostic.range.start.line for one in file.shown} for file in files]
    places = sum(len(shown) + file.left_out for file, shown in zip(files, lines, strict=True) if shown)
    if not places:
        return []
    place, expect = counted(places, "place"), "expects" if places == 1 else "expect"
    old = _within(changed, form.spoken, SOURCE_BYTES)
    heading = (
        f"{place} still {expect} the old {old}" if old else f"{place} in other files still {expect} what was changed"
    )
    return [f"{heading}:", *(block(file, form, FileRole.OTHER) for file in files if file.shown)]


def places_of(file: Chosen) -> list[str]:
    """What each finding shown of a file says: its message, and its source line."""
    lines = lines_of(file.text)
    found = [one.diagnostic for one in file.shown]
    return [" ".join([one.message, *lines[one.range.start.line : one.range.start.line + 1]]) for one in found]


def _unseen(selection: Selection, noun: str) -> list[str]:
    unseen = [file.left_out for file in (*selection.edited, *selection.others) if file.left_out and not file.shown]
    more = f"... and {counted(sum(unseen), f'more {noun}')} in {counted(len(unseen), 'file')} not shown"
    return [more] if unseen else []


def _is_doubtful(file: Chosen, selection: Selection) -> bool:
    return selection.only_new and not any(found.introduced for found in file.shown)


def block(file: Chosen, form: Form, role: FileRole = FileRole.EDITED) -> str:
    """The findings of one file; in a worklist each line of the file that has some stands below them."""
    path = named(file.path, form.workspace)
    source = lines_of(file.text) if form.wording == "worklist" else ()
    lines = list[str]()
    open_signs = (form.undefined, form.calls)
    waits = role is FileRole.EDITED and any(_is_about(one, signs) for one in file.shown for signs in open_signs)
    for found, following in zip(file.shown, (*file.shown[1:], None), strict=True):
        start = found.diagnostic.range.start
        number = start.line
        shown = _source(source[number], start.character, form) if number < len(source) else []
        room = ERROR_BYTES - len("\n".join(["", *shown]).encode())
        lines.append(_line(found, form, _wording(found, form, role, waits=waits), room=room))
        if following is None or following.diagnostic.range.start.line != number:
            lines += shown
    if file.left_out:
        lines.append(f"... and {file.left_out} more")
    if form.plain:
        return "\n".join([f"File: {unbracketed(path)}", *lines])
    return "\n".join([f'<diagnostics file="{escaped_attribute(path)}">', *lines, "</diagnostics>"])


def _source(line: str, column: int, form: Form) -> list[str]:
    """The line of a finding as it is written; of a long one, the part around the place."""
    code = line.strip()
    behind = column - (len(line) - len(line.lstrip())) - SOURCE_BYTES // 2
    if behind > 0 and len(code.encode(errors="replace")) > SOURCE_BYTES:
        code = "…" + code[behind:]
    shown = _within(code, unbracketed if form.plain else quoted_code, SOURCE_BYTES)
    return [f"| {shown}"] if shown else []


def _line(found: Finding, form: Form, wording: tuple[str, str], *, room: int) -> str:
    """`SEVERITY [line:col] message (code)`, counted from 1; of a notebook `[cell n:line:col]`, the line in the cell.

    In a worklist it has `room` bytes, and the message gives way.
    """
    diagnostic = found.diagnostic
    start, cell = diagnostic.range.start, diagnostic.cell
    code = form.spoken(sanitised(diagnostic.code or "", CODE_LIMIT))
    line = f"{start.line + 1}" if cell is None else f"cell {cell.number}:{start.line - cell.first_line + 1}"
    word, remark = wording
    before = " ".join([f"{word} [{line}:{start.character + 1}]", *([remark] if remark else [])])
    after = [f"({code})"] if code else []
    if form.wording == "report":
        message = form.spoken(sanitised(diagnostic.message, MESSAGE_LIMIT))
    else:
        left = room - len(" ".join([before, "", *after]).encode())
        message = _explained(_brief(diagnostic.message), form.spoken, left)
    return " ".join([before, *([message] if message else []), *after])


def _wording(found: Finding, form: Form, role: FileRole, *, waits: bool) -> tuple[str, str]:
    """How a finding is called: an error is open where the change that it came with may not be finished.

    `waits`: the file uses something that is not defined yet, or not yet as it is called. Its type is not known then,
    and other errors may follow from that: in replayed changes of real projects more than a third of those were gone
    in the end.
    """
    one = found.diagnostic
    if form.wording == "worklist" and one.severity is Severity.ERROR and found.introduced:
        if role is FileRole.OTHER:
            return "OPEN", ""
        if role is FileRole.EDITED and _is_about(found, form.undefined):
            return "OPEN", "not defined yet:"
        if role is FileRole.EDITED and _is_about(found, form.calls):
            return "OPEN", ""
        if waits and one.code and not any(fnmatchcase(one.code, sign) for sign in form.syntax.get(one.server, ())):
            return "OPEN", ""
    return SEVERITY_WORDS[one.severity], ""


def _is_about(found: Finding, by_server: Mapping[str, Collection[str]]) -> bool:
    """Whether it is a new error with one of these codes or words."""
    one = found.diagnostic
    signs = by_server.get(one.server, ())
    is_about_it = one.code in signs or any(" " in sign and sign in one.message for sign in signs)
    return is_about_it and bool(found.introduced) and one.severity is Severity.ERROR


def _brief(message: str) -> str:
    """The message without further lines whose words it has said already, as those of Pyright often are."""
    first, *more = message.splitlines() or [""]
    kept, said = [first], set(_WORD.findall(first))
    for line in more:
        words = set(_WORD.findall(line))
        kept += [] if words <= said else [line.strip()]
        said |= words
    return "\n".join(kept)


def _explained(message: str, spoken: Callable[[str], str], room: int) -> str:
    """The message in so many bytes: where it is cut, the headline gives way to the line that says what is missing."""
    headline, *more = message.splitlines() or [""]
    missing = [line for line in more if _MISSING.search(line)]
    if not missing or len(spoken(sanitised(message, MESSAGE_LIMIT)).encode()) <= room:
        return _within(message, spoken, room)
    head = _within(headline, spoken, max(room // 3, room - 1 - len(spoken(missing[-1]).encode())))
    return f"{head} {_within(missing[-1], spoken, room - len(head.encode()) - 1)}"


def _within(text: str, spoken: Callable[[str], str], room: int) -> str:
    """The text as it is written, in so many bytes."""
    whole = sanitised(text, MESSAGE_LIMIT)
    shown, most = spoken(whole), len(whole)
    while (over := len(shown.encode()) - room) > 0 and most > 1:
        most = max(1, most - -(-over // MOST_BYTES))
        shown = spoken(sanitised(whole, most))
    return shown


def _closing(selection: Selection, noun: str) -> str:
    """Models have taken errors for a refusal and repeated the edit: say that it was applied, and what to do next."""
    shown = [file for file in selection.edited if file.shown or file.left_out]
    if selection.only_new and shown and not any(found.introduced for file in shown for found in file.shown):
        return f"The edit was applied and need not be repeated; please fix those {noun}s that it caused."
    if shown:
        return f"The edit was applied and need not be repeated; please fix these {noun}s in a further edit."
    return "The edit was applied and need not be repeated; please fix what it broke."


def _rest(selection: Selection, form: Form, noun: str) -> list[str]:
    """What is not shown: other files for want of room, and older findings and fixed ones of the edited files."""
    lines = list[str]()
    if selection.only_new and selection.others_left_out:
        names = [form.spoken(named(path, form.workspace)) for path in selection.others_left_out]
        have = "has" if len(names) == 1 else "have"
        shown = ", ".join([*names[:MAX_NAMED], *["…"] * (len(names) > MAX_NAMED)])
        lines.append(f"{counted(len(names), 'more file')} {have} new {noun}s: {shown}")
    tallies = [file.tally for file in selection.edited if file.tally]
    if not selection.only_new or not tallies:
        return lines
    older, fixed = sum(tally.older for tally in tallies), sum(tally.fixed for tally in tallies)
    where = "this file" if len(selection.edited) == 1 else "these files"
    if len(selection.edited) == 1 and selection.others:
        # The last file that was named is another one.
        where = form.spoken(named(selection.edited[0].path, form.workspace))
    if older:
        lines.append(f"{counted(older, f'older {noun}')} in {where} {'is' if older == 1 else 'are'} not shown.")
    if fixed:
        lines.append(f"{counted(fixed, noun)} {'was' if fixed == 1 else 'were'} fixed.")
    return lines


# --- Late results, files that a command changed, and what is left: each group under its own heading -----------------


class Group(Struct, frozen=True):
    """Files under one heading. A worklist has one of its own for other files, whatever it is here."""

    heading: str
    files: tuple[Chosen, ...]
    role: FileRole = FileRole.EDITED


def late_heading(path: AbsPath, form: Form, debt: Debt, calls: int) -> str:
    """Such as `Late result for src/a.py, edited 2 calls ago:`, of what is owed after so many calls."""
    spoken = form.spoken(named(path, form.workspace))
    if debt.by_git:
        return f"Back in {spoken}, with your changes that git brought back:"
    when = f"{counted(max(1, calls - debt.call), 'call')} ago"
    how = f"edited {when}" if debt.edited else f"broken by a change {when}"
    older = "" if debt.certain else ", possibly older than that"
    return f"Late result for {spoken}, {how}{older}:"


def command_heading(form: Form, *, others: bool) -> str:
    if others:
        return "LSP errors detected in other files:"
    if form.wording == "worklist":
        return "In files that a command changed:"
    return "LSP errors detected in files that were changed by a command, please fix:"


def chosen(path: AbsPath, text: str, found: Sequence[Diagnostic]) -> Chosen:
    """A file with this text and these findings, which a change of the conversation brought."""
    return Chosen(path, tuple(Finding(one, introduced=True) for one in found), 0, None, text=text)


def groups_text(groups: Sequence[Group], form: Form, notes: Sequence[str] = ()) -> str:
    """The groups that have something to show, one closing line, and the notes; empty where nothing fits."""
    shown = [group for group in groups if any(file.shown for file in group.files)]
    if not shown:
        return with_notes("", notes, form)
    for most in CUTS:
        closing = [FIX] if form.wording == "report" else []
        text = "\n\n".join([*(_group(group, form, most) for group in shown), *closing])
        if form.max_bytes is None or len(text.encode()) <= form.max_bytes:
            return with_notes(text, notes, form)
    return ""


def _group(group: Group, form: Form, most: int) -> str:
    lost = [(file, max(0, len(file.shown) - most)) for file in group.files if file.shown]
    files = [replace(file, shown=file.shown[:most], left_out=file.left_out + more) for file, more in lost]
    if group.role is FileRole.OTHER and form.wording == "worklist":
        lines = others_list(files[:MAX_FILES], form)
    else:
        lines = [group.heading, *(block(file, form, group.role) for file in files[:MAX_FILES])]
    if len(files) > MAX_FILES:
        lines.append(f"... and {len(files) - MAX_FILES} more files")
    return "\n".join(lines)
