"""What a conversation is told beside the feedback of an edit: late results, files that a command changed, what is left.

The same blocks as after an edit, each group under its own heading.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.conversation import Debt
from pilotfish.feedback.select import Chosen, Finding
from pilotfish.feedback.text import FileRole, Form, block, named, others_list, with_notes
from pilotfish.model import AbsPath, Diagnostic

CUTS: Final = (20, 10, 5, 3, 1)
"""Findings of each file, tried in this order until the text fits."""

MAX_FILES = 20
"""Files of one group; the others are counted."""

FIX = "What was changed stays changed; please fix these errors in a further edit."


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
    ago = max(1, calls - debt.call)
    when = "1 call ago" if ago == 1 else f"{ago} calls ago"
    how = f"edited {when}" if debt.edited else f"broken by a change {when}"
    older = "" if debt.certain else ", possibly older than that"
    return f"Late result for {spoken}, {how}{older}:"


def command_heading(form: Form, *, others: bool) -> str:
    if others:
        return "LSP errors detected in other files:"
    if form.wording == "worklist":
        return "In files that a command changed:"
    return "LSP errors detected in files that were changed by a command, please fix:"


def stop_heading() -> str:
    return "Before you finish: these errors came with your changes and are still there, please fix them:"


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
        text = "\n\n".join([*(_rendered(group, form, most) for group in shown), *closing])
        if form.max_bytes is None or len(text.encode()) <= form.max_bytes:
            return with_notes(text, notes, form)
    return ""


def _rendered(group: Group, form: Form, most: int) -> str:
    files = [_cut(file, most) for file in group.files if file.shown]
    if group.role is FileRole.OTHER and form.wording == "worklist":
        lines = others_list(files[:MAX_FILES], form)
    else:
        lines = [group.heading, *(block(file, form, group.role) for file in files[:MAX_FILES])]
    if len(files) > MAX_FILES:
        lines.append(f"... and {len(files) - MAX_FILES} more files")
    return "\n".join(lines)


def _cut(file: Chosen, most: int) -> Chosen:
    lost = len(file.shown) - most
    return file if lost <= 0 else replace(file, shown=file.shown[:most], left_out=file.left_out + lost)
