"""One conversation of Claude Code, as the hook program hears of it: the events that `setup` wires, and no others.

Below are its words for an edit: the tool, its arguments, its result.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from harness.servers import CLONE
from harness.setting import Setting, hook

from told.edits import Change, Edit

HOOKS = CLONE / "src" / "pilotfish" / "hosts" / "plugins" / "claude-code" / "hooks" / "hooks.json"
WIRED: dict[str, Any] = json.loads(HOOKS.read_text())["hooks"]
"""By event: the tools that its matcher names, all where there is none."""
QUIET_EVENTS = frozenset({"SessionStart", "PreToolUse"})
WIRED_LIMIT = int(re.findall(r"--deadline-ms (\d+)", HOOKS.read_text())[0])
"""Milliseconds that `setup` gives to these."""


@dataclass(frozen=True)
class Told:
    """What came back for one edit."""

    text: str
    """As the model reads it."""
    milliseconds: float
    state: str = ""
    reason: str = ""
    error: str = ""
    between: str = ""
    """What it read since the edit before, with the results of other tools."""
    form: str = ""
    """How these texts are written: a key of `score.FORMS`."""
    waits: tuple[tuple[str, float], ...] = ()
    """Milliseconds for each event since the edit before that is no edit: what needs no answer."""


@dataclass(frozen=True)
class Heard:
    """What the model reads after something it did, and how long it waited for that."""

    text: str = ""
    milliseconds: float = 0.0
    error: str = ""
    before: float = 0.0
    """Milliseconds that it waited before the tool ran."""


@dataclass(frozen=True)
class Call:
    """One call of a tool: its name, its arguments, and what carries it out and answers."""

    name: str
    given: dict[str, Any]
    act: Callable[[], Any]


class Conversation:
    def __init__(self, setting: Setting, name: str) -> None:
        self._setting, self._name = setting, name
        self._read: set[str] = set()
        self._calls = 0
        self.looked = Heard()
        """What was heard with the files that were read for the last edit."""
        self._waits: list[tuple[str, float]] = []

    def take_waits(self) -> tuple[tuple[str, float], ...]:
        """How long each event took since the last call that needs no answer: beginnings, reads, before a tool."""
        waits, self._waits = self._waits, []
        return tuple(waits)

    def begin(self, prompt: str) -> Heard:
        heard = _sum(self._send("SessionStart", source="startup"), self.prompt(prompt))
        # It thinks before its first call, too.
        time.sleep(self._setting.pause)
        return heard

    def prompt(self, text: str) -> Heard:
        return self._send("UserPromptSubmit", prompt=text)

    def edit(self, *edits: Edit) -> Heard:
        """Edits that the model makes at once, each file read before it is first changed."""
        self.looked = Heard()
        for edit in edits:
            for change in edit.changes:
                if change.before is not None and edit.tool != "patch" and change.path not in self._read:
                    self.looked = _sum(self.looked, self._look(change.path, change.before))
        return self._batch([self._call(edit) for edit in edits])

    def command(self, line: str) -> Heard:
        """A command of the shell, in the project."""
        return self._batch([Call("Bash", {"command": line, "description": "Run a command"}, lambda: self._shell(line))])

    def stop(self, *, again: bool = False) -> Heard:
        """`again`: after it was told something at its last stop."""
        return self._send("Stop", stop_hook_active=again)

    def end(self) -> None:
        self._send("SessionEnd", reason="other")

    def _call(self, edit: Edit) -> Call:
        def act() -> Any:
            self._read.update(edit.paths)
            for change in edit.changes:
                (self._setting.root / change.path).parent.mkdir(parents=True, exist_ok=True)
            if edit.tool == "patch" and len(edit.changes) > 1:
                return self._shell(shell(edit))
            for change in edit.changes:
                carry_out(self._setting.root, change)
            return response

        name, given, response = call_of(self._setting.root, edit)
        return Call(name, given, act)

    def _shell(self, line: str) -> dict[str, Any]:
        done = subprocess.run(
            line, shell=True, cwd=self._setting.root, capture_output=True, text=True, check=False
        )  # the commands are this program's own
        if done.returncode:
            raise RuntimeError(f"{line}: {done.stderr[-1000:]}")
        return {"stdout": done.stdout, "stderr": done.stderr, "interrupted": False}

    def _look(self, name: str, text: str) -> Heard:
        self._read.add(name)
        path, lines = str(self._setting.root / name), text.count("\n") + 1
        file = {"filePath": path, "content": text, "numLines": lines, "startLine": 1, "totalLines": lines}
        return self._batch([Call("Read", {"file_path": path}, lambda: {"type": "text", "file": file})])

    def _batch(self, calls: Sequence[Call]) -> Heard:
        before, heard, ended = list[Heard](), list[Heard](), list[dict[str, Any]]()
        for call in calls:
            self._calls += 1
            about = {"tool_name": call.name, "tool_input": call.given, "tool_use_id": f"toolu_{self._calls}"}
            before.append(self._send("PreToolUse", **about))
            response = call.act()
            heard.append(self._send("PostToolUse", **about, tool_response=response))
            ended.append({**about, "tool_response": "done"})
        heard.append(self._send("PostToolBatch", tool_calls=ended))
        time.sleep(self._setting.pause)
        return replace(_sum(*heard), before=sum(one.milliseconds for one in before))

    def _send(self, event: str, **more: Any) -> Heard:
        if not _is_wired(event, more.get("tool_name")):
            return Heard()
        said = {"session_id": self._name, "transcript_path": "", "hook_event_name": event, **more}
        limit = WIRED_LIMIT if event in QUIET_EVENTS else self._setting.deadline
        output, milliseconds, error = hook(self._setting, "claude-code", said, limit)
        if event in QUIET_EVENTS or more.get("tool_name") == "Read":
            self._waits.append(("Read" if event == "PostToolUse" else event, milliseconds))
        return Heard(_shown(output), milliseconds, error)


def carry_out(root: Path, change: Change) -> None:
    """One file of an edit, on disk."""
    path = root / change.path
    if change.after is None:
        path.unlink()
    else:
        path.write_bytes(change.after.encode())


def _sum(*heard: Heard) -> Heard:
    text = "\n\n".join(one.text for one in heard if one.text)
    error = "\n".join(one.error for one in heard if one.error)
    return Heard(text, sum(one.milliseconds for one in heard), error)


def _is_wired(event: str, tool: str | None) -> bool:
    groups = WIRED.get(event, ())
    return any("matcher" not in group or re.fullmatch(group["matcher"], tool or "") for group in groups)


def _shown(output: str) -> str:
    """What of a hook's output the model reads: added context, or why it shall not stop."""
    if not output.strip():
        return ""
    said = json.loads(output)
    return said.get("reason") or said.get("hookSpecificOutput", {}).get("additionalContext", "")


# --- Its words for an edit --------------------------------------------------------------------------------------------


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
