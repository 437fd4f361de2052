"""One conversation of Claude Code, as the hook program hears of it: the events that `setup` wires, and no others."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from told.edits import Change, Edit
from told.subjects.children import HOOK, run
from told.subjects.claude_events import call_of, shell
from told.subjects.setting import Setting
from told.truth import CLONE

PACKAGE = CLONE / "src" / "pilotfish"
WIRED: dict[str, Any] = json.loads((PACKAGE / "hosts/plugins/claude-code/hooks/hooks.json").read_text())["hooks"]
"""By event: the tools that its matcher names, all where there is none."""
QUIET_EVENTS = frozenset({"SessionStart", "PreToolUse"})


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
        return _sum(self._send("SessionStart", source="startup"), self.prompt(prompt))

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

    def stop(self) -> Heard:
        return self._send("Stop", stop_hook_active=False)

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
        about = {"session_id": self._name, "transcript_path": "", "cwd": str(self._setting.root)}
        deadline = ["--deadline-ms", str(self._setting.deadline)] if self._setting.deadline else []
        argv = [sys.executable, "-I", "-S", str(HOOK), "claude-code", *deadline]
        said = json.dumps({**about, "hook_event_name": event, **more}).encode()
        output, milliseconds, error = run(argv, self._setting, said)
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
