"""The text of a file before an edit, from what the host's event says about the edit. Pure.

Some hosts send the old text itself. The others say what they replaced: then the edit is taken back from the new text,
which the caller reads. Every function returns None where the event does not say it, or where the new text does not
show exactly one place that the edit can have made: a wrong old text would be worse than none.
A file that the edit created has an empty old text.

Some tools take an `apply_patch` envelope, which says what it does to each file:

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@
    -old
    +new
    *** End Patch

The text around the envelope (a shell's here-document) is ignored.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from pilotfish.protocol.codec import fields, items

HUNK_HEADER = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<line>\d+)(?:,(?P<new>\d+))? @@")
NO_NEWLINE = "\\"
"""Begins the line `\\ No newline at end of file`, which says so about the line before it."""

SIGNS = frozenset({"+", "-", " ", NO_NEWLINE})

END_OF_FILE = "*** End of File"

REPLACEMENT_KEYS = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_text", "new_text"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("oldStr", "newStr"),
)


class Replacement(Struct, frozen=True):
    """One string of the file replaced by another, in one place."""

    old: str
    new: str


class Hunk(Struct, frozen=True):
    """Lines as in a unified diff, with their signs."""

    lines: tuple[str, ...]
    start: int | None = None
    """The line of the new text that it begins at, from 0; None where the host does not say."""
    anchor: str = ""
    """A line of the file that stands somewhere before it."""


Undo = tuple[Replacement | Hunk, ...]
"""The steps of one edit of one file, in the order in which they were made."""


class OldTexts(Struct, frozen=True):
    """What one event says about the old texts, by path as the event spells it."""

    known: Mapping[str, str]
    undos: Mapping[str, Undo]
    """For the files whose old text follows from the new one: see `old_text`."""


NONE = OldTexts({}, {})


def old_texts_of(files: Sequence[str], arguments: object, response: object, patch: object = None) -> OldTexts:
    """What the call of a tool says about the files that it has changed, the surest source first.

    `patch` is the argument that holds a patch, for tools that take one.
    """
    if len(files) == 1:
        original = original_text(response)
        if original is not None:
            return OldTexts({files[0]: original}, {})
        undo = shown_hunks(response) or replacements(arguments)
        if undo:
            return OldTexts({}, {files[0]: undo})
    return patched_texts(patch, files) if isinstance(patch, str) else NONE


def original_text(response: object) -> str | None:
    """The old text itself: `originalFile` of Claude Code, `returnDisplay.originalContent` of Gemini CLI and its kin."""
    said = fields(response)
    for text in (said.get("originalFile"), said.get("original_file")):
        if isinstance(text, str):
            return text
    if said.get("type") == "create" and said.get("originalFile", "") is None:
        return ""
    display = fields(said.get("returnDisplay"))
    original = display.get("originalContent")
    if original is None and "originalContent" in display and isinstance(display.get("newContent"), str):
        return ""
    return original if isinstance(original, str) else None


def shown_hunks(response: object) -> Undo:
    """The hunks that a tool shows: `structuredPatch` of Claude Code, `fileDiff` of Gemini CLI and its kin."""
    said, found = fields(response), list[Hunk]()
    for hunk in map(fields, items(said.get("structuredPatch"))):
        start, lines = hunk.get("newStart"), [line for line in items(hunk.get("lines")) if isinstance(line, str)]
        if isinstance(start, int) and lines and len(lines) == len(items(hunk.get("lines"))):
            found.append(Hunk(tuple(lines), start - 1))
    diff = fields(said.get("returnDisplay")).get("fileDiff")
    return tuple(found) or (unified_hunks(diff) if isinstance(diff, str) else ())


def replacements(arguments: object) -> Undo:
    """The strings that a tool was told to replace, one or several; none where it was to replace every one of them."""
    given = fields(arguments)
    several = items(given.get("edits") or given.get("replacements"))
    found = [_replacement(edit) for edit in several] or [_replacement(given)]
    return tuple(pair for pair in found if pair is not None) if None not in found else ()


def patched_texts(patch: str, files: Sequence[str]) -> OldTexts:
    """What an `apply_patch` envelope, or a unified diff of one file, says about these files."""
    sections = [section for section in patch_sections(patch) if section.path in files]
    # A file with two sections was changed twice, and what it was in between cannot be told.
    times = Counter(section.path for section in sections)
    once = [section for section in sections if times[section.path] == 1]
    known = {section.path: "" for section in once if section.kind == ADD}
    undos: dict[str, Undo] = {
        section.path: tuple(_envelope_hunks(section.lines)) for section in once if section.kind == UPDATE
    }
    if not known and not undos and len(files) == 1 and (hunks := unified_hunks(patch)):
        undos[files[0]] = hunks
    return OldTexts(known, undos)


def unified_hunks(diff: str) -> Undo:
    """The hunks of a unified diff of one file; none when it is of several, or cut off."""
    lines = diff.split("\n")
    hunks: list[Hunk] = []
    at = files = 0
    while at < len(lines):
        header = HUNK_HEADER.match(lines[at])
        files += lines[at].startswith("--- ")
        at += 1
        if header is not None:
            body = _hunk_lines(lines, at, *(int(header[name] or 1) for name in ("old", "new")))
            if body is None:
                return ()
            # Nothing is counted from the line before it.
            hunks.append(Hunk(body, int(header["line"]) - (header["new"] != "0")))
            at += len(body)
    return tuple(hunks) if files <= 1 else ()


def _hunk_lines(lines: list[str], at: int, old: int, new: int) -> tuple[str, ...] | None:
    """The lines from `at` that make up so many old and new ones; None when they do not."""
    end = at
    while end < len(lines) and (old or new or lines[end][:1] == NO_NEWLINE):
        sign = lines[end][:1]
        if sign not in SIGNS:
            return None
        old, new = old - (sign in "- "), new - (sign in "+ ")
        end += 1
    return tuple(lines[at:end]) if not old and not new else None


def old_text(new: str, undo: Undo) -> str | None:
    """The text before an edit, from the text after it; None when it cannot be told for certain."""
    if not undo:
        return None
    ends = new.count("\r\n")
    if ends and ends != new.count("\n"):
        return None
    text: str | None = new.replace("\r\n", "\n")
    limit: int | None = None
    for step in reversed(undo):
        if text is None:
            return None
        if isinstance(step, Replacement):
            text = _without_replacement(text, step)
        else:
            text, limit = _without_hunk(text, step, limit)
    return text if text is None or not ends else text.replace("\n", "\r\n")


def _without_replacement(text: str, step: Replacement) -> str | None:
    old, new = step.old.replace("\r\n", "\n"), step.new.replace("\r\n", "\n")
    if not old:
        return "" if text == new else None
    at = text.find(new)
    if not new or at < 0 or text.rfind(new) != at:
        return None
    before = text[:at] + old + text[at + len(new) :]
    # Hosts replace a string only where the file has it once.
    return before if before.find(old) == before.rfind(old) else None


def _without_hunk(text: str, hunk: Hunk, limit: int | None) -> tuple[str | None, int | None]:
    """The text without a hunk that ends before line `limit`, and the line that it begins at."""
    lines = text.split("\n")
    new = [line[1:] for line in hunk.lines if line[:1] in {"+", " "}]
    old = [line[1:] for line in hunk.lines if line[:1] in {"-", " "}]
    stop = len(lines) if limit is None else limit
    start = _start_of(hunk, lines[:stop], new)
    if start is None:
        return None, None
    rest = lines[start + len(new) :]
    # Whether only the old text, or only the new one, ends without a line end.
    signs = {before[:1] for before, line in zip(hunk.lines, hunk.lines[1:], strict=False) if line[:1] == NO_NEWLINE}
    lost, gained = signs == {"-"}, signs == {"+"}
    if (gained and rest) or (lost and rest != [""]):
        return None, None
    rest = [] if lost else [""] if gained else rest
    return "\n".join([*lines[:start], *old, *rest]), start


def _start_of(hunk: Hunk, lines: list[str], new: list[str]) -> int | None:
    if hunk.start is not None:
        return hunk.start if hunk.start >= 0 and lines[hunk.start : hunk.start + len(new)] == new else None
    if not new:
        return None
    first = 0
    if hunk.anchor:
        first = next((index for index, line in enumerate(lines) if line.strip() == hunk.anchor), 0)
    found = [at for at in range(first, len(lines) - len(new) + 1) if lines[at : at + len(new)] == new]
    return found[0] if len(found) == 1 else None


def _envelope_hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    """The hunks of one file in an envelope. A line without a sign stands for an empty one."""
    signed: list[str] = []
    anchor = ""
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if signed:
                yield Hunk(tuple(signed), None, anchor)
            signed, anchor = [], line[2:].strip()
        elif line != END_OF_FILE:
            signed.append(line or " ")


def _replacement(value: object) -> Replacement | None:
    given = fields(value)
    if given.get("replace_all") is True or given.get("replaceAll") is True:
        return None
    for first, second in REPLACEMENT_KEYS:
        old, new = given.get(first), given.get(second)
        if isinstance(old, str) and isinstance(new, str):
            return Replacement(old, new)
    return None


BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE, DELETE, MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "


class PatchSection(Struct, frozen=True):
    """The part of an envelope that is about one file."""

    kind: str
    """`ADD`, `UPDATE` or `DELETE`."""
    path: str
    """Where its text is afterwards, as the patch spells it; empty for a file that is deleted."""
    lines: tuple[str, ...]


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch leaves with a new text, in its order, each once, as it spells them."""
    # Not one that is deleted, nor one that is only moved. A new file may be empty, and its text is new all the same.
    changed = (
        section.path
        for section in patch_sections(patch)
        if section.path and (section.kind == ADD or any(line.startswith(("+", "-")) for line in section.lines))
    )
    return tuple(dict.fromkeys(changed))


def only_renames(patch: str) -> bool:
    """Whether a unified diff, as git writes it, moves a file and leaves its text as it was."""
    lines = patch.splitlines()
    return any(line.startswith("rename to ") for line in lines) and not any(line.startswith("@@") for line in lines)


def patch_sections(patch: str) -> Iterator[PatchSection]:
    kind, path, is_inside = "", "", False
    lines: list[str] = []
    for line in [*patch.splitlines(), BEGIN, DELETE]:  # the last two end the last section
        header = next((word for word in (ADD, UPDATE, DELETE) if line.startswith(word)), None)
        if line.strip() in {BEGIN, END}:
            is_inside = line.strip() == BEGIN
        elif is_inside and header is not None:
            if kind:
                yield PatchSection(kind, path, tuple(lines))
            kind, path, lines = header, "" if header == DELETE else line[len(header) :].strip(), []
        elif is_inside and line.startswith(MOVE):
            path = line[len(MOVE) :].strip() if path else ""
        elif is_inside:
            lines.append(line)
