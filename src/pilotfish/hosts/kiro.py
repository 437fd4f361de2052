"""Kiro: hooks in files of their own, which its editor (from 1.0) and its command line (from 3) both read.

- Not run here: it is on no registry. By its documentation (kiro.dev/docs/hooks, kiro.dev/docs/cli/v3/hooks) and by
  accounts of what the editor 1.0 to 1.2 sends.
- What a hook prints is added to the agent's context when it ends with 0 (kiro.dev/docs/hooks/actions). Reports of July
  2026 (kirodotdev/Kiro#10571, #7417) say that it is dropped after a tool; before a stop all is said that is left.
- One page says that a `Stop` hook which answers `decision: "block"` makes the agent go on with the `reason`, another
  that it cannot. That is what is answered.
- `tool_input` of an edit is empty in most versions: the path is in the words of `tool_response`, from the workspace.
- The command line writes `postToolUse`, the editor `PostToolUse`; one has `fs_write` with a `command`, the other
  `fs_write`, `str_replace` and `fs_append`.
- Timeouts: seconds.
"""

import re

from msgspec.structs import replace

from pilotfish.hosts.shared.hook_settings import RESTART, TIMEOUT_SECONDS, hook_command, json_file, tools_file
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import (
    WITHOUT_FILES,
    HostEvent,
    PlainAnswer,
    ToolHookEvent,
    ToolHooks,
    event_as,
    host_tools,
    names_in,
)

PATHS = ("path", "file_path", "filePath", "targetFile")

NAMED_IN_WORDS = re.compile(
    r"(?:Created the|Replaced text in|Appended the text to the)\s+(?P<path>.+?)(?:\s+file)?\.?\s*\Z", re.DOTALL
)
"""How the editor says which file it has written."""

TRIGGERS = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart")

OTHER_TRIGGERS = names_in("PreTaskExec PostTaskExec PostFileCreate PostFileSave PostFileDelete Manual")


class KiroHooks(ToolHooks, frozen=True):
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, ToolHookEvent)
        name = said.hook_event_name[:1].upper() + said.hook_event_name[1:]
        said = replace(said, hook_event_name="SessionStart" if name == "AgentSpawn" else name)
        words = said.tool_response if isinstance(said.tool_response, str) else ""
        named = NAMED_IN_WORDS.match(words)
        if named is not None and not said.tool_input:
            said = replace(said, tool_input={"path": named["path"]})
        return self.event_of(said)

    def written(self, feedback: str, event: str) -> bytes:
        return super().written(feedback, event) if event in self.stops else PlainAnswer().written(feedback, event)


DIALECT = KiroHooks(
    host_tools(*PATHS, edit="fs_write write str_replace fs_append edit_file", write="create_file", read="read_file")
    | host_tools("operations", *PATHS, read="fs_read"),
    ignored=WITHOUT_FILES | OTHER_TRIGGERS,
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".kiro", project=".kiro")
    hooks = [
        {
            "name": f"pilotfish-{trigger}",
            "trigger": trigger,
            "action": {"type": "command", "command": hook_command(where, "kiro", trigger)},
            "timeout": TIMEOUT_SECONDS,
            "enabled": True,
        }
        for trigger in TRIGGERS
    ]
    told = folder.file("hooks/pilotfish.json", json_file({"version": "v1", "hooks": hooks}))
    return (told, tools_file(where, folder, "settings/mcp.json"))


HOST = HostSpec(
    title="Kiro",
    files=wired_files,
    programs=("kiro", "kiro-cli"),
    folders=(".kiro",),
    dialect=DIALECT,
    afterwards=(RESTART,),
    missing=(
        (
            "Not run: by its documentation its model reads what the hook prints; reports say that of `PostToolUse` it "
            "is dropped. What is said before a stop and with a prompt does not depend on that."
        ),
        "Its pages contradict each other about whether a `Stop` hook can make it go on.",
        "Kiro before 1.0, and its command line before 3, do not read this hook file.",
    ),
)
