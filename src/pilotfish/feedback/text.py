"""The feedback that follows an edit, as the model reads it.

The edit's own text comes first and stays as it is; feedback is a block after it, or nothing.
It speaks about the result of an edit that has been made: it never says that something failed, timed out or is missing.
Server text goes in sanitised, capped and escaped, so no message can end its block or begin another line.
"""

from typing import Final

from msgspec import Struct

from pilotfish.feedback.limits import CODE_LIMIT, MESSAGE_LIMIT, PATH_LIMIT
from pilotfish.feedback.select import Chosen, Finding, Selection, cut
from pilotfish.model import AbsPath, Severity
from pilotfish.paths import shown_path
from pilotfish.sanitise import escaped_attribute, escaped_message, sanitised, unbracketed

SEVERITY_WORDS: Final = {
    Severity.ERROR: "ERROR",
    Severity.WARNING: "WARNING",
    Severity.INFORMATION: "INFO",
    Severity.HINT: "HINT",
}


class Form(Struct, frozen=True):
    """How a selection becomes text."""

    workspace: AbsPath
    plain: bool = False
    """Without angle brackets, for hosts that escape them on the way to the model."""
    marks: bool = False
    """Mark what the edit introduced, and count what is older and what was fixed."""
    max_bytes: int | None = None


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
    """The path as people and models see it: relative inside the workspace, absolute outside, and safe to print."""
    return sanitised(shown_path(path, workspace), PATH_LIMIT)


def _rendered(selection: Selection, form: Form) -> str:
    noun = "error" if selection.errors_only else "diagnostic"
    sections = [
        f"LSP {noun}s detected in this file, please fix:\n{_block(file, form)}"
        for file in selection.edited
        if file.shown
    ]
    others = [_block(file, form) for file in selection.others if file.shown]
    if others:
        sections.append("\n".join([f"LSP {noun}s detected in other files:", *others]))
    unseen = [file.left_out for file in (*selection.edited, *selection.others) if file.left_out and not file.shown]
    if unseen:
        sections.append(f"... and {_counted(sum(unseen), f'more {noun}')} in {_counted(len(unseen), 'file')} not shown")
    if not sections:
        return ""
    sections.append("\n".join([*_tally(selection, form), _closing(selection, noun)]))
    return "\n\n".join(sections)


def _block(file: Chosen, form: Form) -> str:
    path = named(file.path, form.workspace)
    lines = [_line(found, form) for found in file.shown]
    if file.left_out:
        lines.append(f"... and {file.left_out} more")
    if form.plain:
        return "\n".join([f"File: {unbracketed(path)}", *lines])
    return "\n".join([f'<diagnostics file="{escaped_attribute(path)}">', *lines, "</diagnostics>"])


def _line(found: Finding, form: Form) -> str:
    """`SEVERITY [line:col] message (code)`, counted from 1."""
    diagnostic = found.diagnostic
    start = diagnostic.range.start
    spoken = unbracketed if form.plain else escaped_message
    message = spoken(sanitised(diagnostic.message, MESSAGE_LIMIT))
    code = spoken(sanitised(diagnostic.code or "", CODE_LIMIT))
    parts = [f"{SEVERITY_WORDS[diagnostic.severity]} [{start.line + 1}:{start.character + 1}]"]
    parts += [message] if message else []
    parts += [f"({code})"] if code else []
    parts += ["[new]"] if form.marks and found.introduced else []
    return " ".join(parts)


def _tally(selection: Selection, form: Form) -> list[str]:
    """A line of counts where it was asked for and a baseline gives it."""
    tallies = [file.tally for file in (*selection.edited, *selection.others) if file.tally]
    if not form.marks or not tallies:
        return []
    introduced, older, fixed = (
        sum(counts) for counts in zip(*((each.introduced, each.older, each.fixed) for each in tallies), strict=True)
    )
    return [f"{introduced} introduced by this edit (marked [new]), {older} older, {fixed} fixed."]


def _closing(selection: Selection, noun: str) -> str:
    """Models have taken errors for a refusal and made the same edit again: say that it holds, and what comes next."""
    if any(file.shown or file.left_out for file in selection.edited):
        return f"The edit was applied and need not be repeated; please fix these {noun}s in a further edit."
    return "The edit was applied and need not be repeated; please fix what it broke."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
