"""Pilotfish through the hook program and the verb that does the same."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from told.edits import Edit
from told.subjects.children import pilotfish, run
from told.subjects.conversation import HOOK, Conversation
from told.subjects.setting import Setting, Told

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
    carries_out = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._conversation = Conversation(setting, SESSION)

    def begin(self) -> None:
        self._conversation.begin("Make some edits.")

    def after(self, edit: Edit) -> Told:
        heard = self._conversation.edit(edit)
        return Told(heard.text, heard.milliseconds, error=heard.error)

    def end(self) -> None:
        self._conversation.end()
        run([*pilotfish(), "daemon", "stop"], self._setting, None)


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
