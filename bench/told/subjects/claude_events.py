"""Claude Code's words for an edit: the tool, its arguments, its result, and what it makes of a hook's output."""

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from told.edits import Edit


def call_of(root: Path, edit: Edit) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The tool, its arguments and its result; files are deleted and moved by a shell."""
    if edit.tool == "patch":
        return (
            "Bash",
            {"command": shell(edit), "description": "Change files"},
            {"stdout": "", "stderr": "", "interrupted": False},
        )
    (change,) = edit.changes
    path, old, new = str(root / change.path), change.before or "", change.after or ""
    hunks = _structured(old, new) if old else []
    patch = {"structuredPatch": hunks, "originalFile": change.before, "userModified": False}
    if edit.tool == "write":
        given = {"file_path": path, "content": new}
        kind = "create" if change.before is None else "update"
        return "Write", given, {"type": kind, "filePath": path, "content": new, **patch}
    if edit.tool == "multiedit":
        several = [{"old_string": before, "new_string": after} for before, after in _hunks(old, new)]
        given = {"file_path": path, "edits": several}
        return "MultiEdit", given, {"filePath": path, "edits": several, **patch}
    before, after = replaced_lines(old, new)
    given = {"file_path": path, "old_string": before, "new_string": after, "replace_all": False}
    response = {"filePath": path, "oldString": before, "newString": after, "replaceAll": False, **patch}
    return "Edit", given, response


def shell(edit: Edit) -> str:
    gone = [change.path for change in edit.changes if change.after is None]
    come = [change.path for change in edit.changes if change.before is None]
    if gone and come:
        return f"git mv {gone[0]} {come[0]}"
    return f"rm {gone[0]}" if gone else f"git checkout -- {come[0]}"


def replaced_lines(old: str, new: str) -> tuple[str, str]:
    """The shortest run of whole lines that an `Edit` would name, with what stands there afterwards."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    # Until it is the only such run of the file.
    while (run := "".join(before[head : len(before) - tail])) == "" or old.find(run) != old.rfind(run):
        if head == 0 and tail == 0:
            break
        head, tail = max(0, head - 1), max(0, tail - 1)
    return run, "".join(after[head : len(after) - tail])


def _hunks(old: str, new: str) -> list[tuple[str, str]]:
    """What a `MultiEdit` would replace, one run of lines after the other, each with the lines around it."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    groups = SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3)
    return [
        ("".join(before[group[0][1] : group[-1][2]]), "".join(after[group[0][3] : group[-1][4]])) for group in groups
    ]


def _structured(old: str, new: str) -> list[dict[str, Any]]:
    before, after = old.splitlines(), new.splitlines()
    hunks = list[dict[str, Any]]()
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        lines = list[str]()
        for tag, start, end, other, other_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:end]]
                continue
            lines += [f"-{line}" for line in before[start:end]]
            lines += [f"+{line}" for line in after[other:other_end]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks
