"""Pilotfish through the hook program and the verb that does the same."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from told.edits import Edit
from told.subjects.children import pilotfish, run
from told.subjects.claude_events import added_context, call_of
from told.subjects.setting import Setting, Told
from told.truth import CLONE

HOOK = CLONE / "src" / "pilotfish" / "surfaces" / "hook.py"
SESSION = "told"


class PlainHook:
    """The hook program, in the dialect of no host: it names the files and nothing else."""

    name = "plain"
    carries_out = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def begin(self) -> None:
        self._hook({"event": "began", "session": SESSION, "cwd": str(self._setting.root)})

    def before(self, edit: Edit) -> None:
        """Scripts tell nobody what they are about to do."""

    def after(self, edit: Edit) -> Told:
        event = {"files": list(edit.paths), "kind": edit.tool, "cwd": str(self._setting.root), "session": SESSION}
        text, milliseconds, error = self._hook(event)
        return Told(text, milliseconds, error=error)

    def end(self) -> None:
        self._hook({"event": "ended", "session": SESSION})
        run([*pilotfish(), "daemon", "stop"], self._setting, None)

    def _hook(self, event: Mapping[str, Any]) -> tuple[str, float, str]:
        deadline = ["--deadline-ms", str(self._setting.deadline)] if self._setting.deadline else []
        argv = [sys.executable, "-I", "-S", str(HOOK), self.name, *deadline]
        return run(argv, self._setting, json.dumps(event).encode())


class ClaudeCodeHook(PlainHook):
    """The hook program with the events of Claude Code: a file is read before it is first edited."""

    name = "claude-code"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._read: set[str] = set()
        self._calls = 0

    def begin(self) -> None:
        self._hook(self._event("SessionStart", source="startup"))

    def before(self, edit: Edit) -> None:
        if edit.tool == "patch":
            return
        (change,) = edit.changes
        path = str(self._setting.root / change.path)
        if change.path not in self._read and change.before is not None:
            self._read.add(change.path)
            lines = change.before.count("\n") + 1
            file = {"filePath": path, "content": change.before, "numLines": lines, "startLine": 1, "totalLines": lines}
            given = {"tool_name": "Read", "tool_input": {"file_path": path}}
            self._hook(self._event("PreToolUse", **given))
            self._hook(self._event("PostToolUse", **given, tool_response={"type": "text", "file": file}))
            time.sleep(self._setting.pause)
        name, given, _ = call_of(self._setting.root, edit)
        self._hook(self._event("PreToolUse", tool_name=name, tool_input=given))

    def after(self, edit: Edit) -> Told:
        name, given, response = call_of(self._setting.root, edit)
        event = self._event("PostToolUse", tool_name=name, tool_input=given, tool_response=response)
        output, milliseconds, error = self._hook(event)
        return Told(added_context(output), milliseconds, error=error)

    def end(self) -> None:
        self._hook(self._event("SessionEnd", reason="other"))
        run([*pilotfish(), "daemon", "stop"], self._setting, None)

    def _event(self, event: str, **more: Any) -> dict[str, Any]:
        self._calls += 1
        about = {"session_id": SESSION, "transcript_path": "", "cwd": str(self._setting.root)}
        used = {"tool_use_id": f"toolu_{self._calls}"} if "tool_name" in more else {}
        return {**about, "hook_event_name": event, **more, **used}


class TouchedVerb(PlainHook):
    """`pilotfish touched --json`, with the daemon."""

    name = "touched"

    def begin(self) -> None:
        """The verb starts what it needs."""

    def after(self, edit: Edit) -> Told:
        verb = [*pilotfish(), "touched", "--json", "--kind", edit.tool, "--", *edit.paths]
        output, milliseconds, error = run(verb, self._setting, None)
        try:
            answer = json.loads(output)
        except ValueError:
            return Told("", milliseconds, error=f"{error} {output[-500:]}".strip())
        reason = answer.get("reason") or ""
        return Told(answer.get("text", ""), milliseconds, answer.get("state", ""), reason, error)

    def end(self) -> None:
        run([*pilotfish(), "daemon", "stop"], self._setting, None)
