"""Pilotfish through the hook program and the verb that does the same."""

import json
from collections.abc import Mapping
from typing import Any

from told.edits import Edit
from told.subjects.children import pilotfish, plain_hook, run, verb
from told.subjects.conversation import Conversation
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
        verb(self._setting, "daemon", "stop")

    def _hook(self, event: Mapping[str, Any]) -> tuple[str, float, str]:
        return plain_hook(self._setting, event, self._setting.deadline)


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
        return Told(heard.text, heard.milliseconds, error=heard.error, waits=self._conversation.take_waits())

    def end(self) -> None:
        self._conversation.end()
        verb(self._setting, "daemon", "stop")


class TouchedVerb(PlainHook):
    """`pilotfish touched --json`, with the daemon."""

    name = "touched"

    def begin(self) -> None:
        """The verb starts what it needs."""

    def after(self, edit: Edit) -> Told:
        argv = [*pilotfish(), "touched", "--json", "--kind", edit.tool, "--", *edit.paths]
        output, milliseconds, error = run(argv, self._setting, None)
        try:
            answer = json.loads(output)
        except ValueError:
            return Told("", milliseconds, error=f"{error} {output[-500:]}".strip())
        reason = answer.get("reason") or ""
        return Told(answer.get("text", ""), milliseconds, answer.get("state", ""), reason, error)

    def end(self) -> None:
        verb(self._setting, "daemon", "stop")
