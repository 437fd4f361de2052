"""Claude Code. Beside the hooks around each tool there is `PostToolBatch`, after all calls that the model made at once.

Each edit of a batch gets its own feedback as it is made, when the others may not have been. So a batch of several is
looked at once more as a whole, and only what nobody has been told yet is said, in one answer for all of its files.
"""

from collections.abc import Iterator
from typing import cast

from pilotfish.api.questions import Touch
from pilotfish.hosts.shared.dialect import HostEvent, Nothing, Touched
from pilotfish.hosts.shared.tool_hooks import MAX_FILES, Event, Tool, ToolHooks, failed, files_of, shaped

HOOKS = ToolHooks(
    {
        "Write": Tool("write", ("file_path",)),
        "Edit": Tool("edit", ("file_path",)),
        "MultiEdit": Tool("edit", ("file_path",)),
        "NotebookEdit": Tool("edit", ("notebook_path",)),
        "Read": Tool("read", ("file_path",)),
    }
)


class ClaudeCode:
    def read(self, event: bytes) -> HostEvent:
        said = shaped(event, Event)
        if said.hook_event_name != "PostToolBatch":
            return HOOKS.read(event)
        edits = list(_edits(said))
        if len(edits) < 2:
            return Nothing()
        files = tuple(dict.fromkeys(edits))[:MAX_FILES]
        touch = Touch(files, "patch", only_new=True, max_bytes=HOOKS.form.max_bytes)
        return Touched(touch, said.session_id, said.cwd, event=said.hook_event_name)

    def written(self, feedback: str, event: str) -> bytes:
        return HOOKS.written(feedback, event)


def _edits(said: Event) -> Iterator[str]:
    """The files that the calls of a batch have changed, a file that two calls changed twice."""
    calls = cast("list[object]", said.tool_calls) if isinstance(said.tool_calls, list) else []
    for call in calls:
        made = cast("dict[str, object]", call) if isinstance(call, dict) else {}
        name = str(made.get("tool_name"))
        tool = HOOKS.tools.get(name)
        if tool is not None and tool.kind != "read" and not failed(made.get("tool_response")):
            yield from files_of(HOOKS.tools, name, made.get("tool_input"))


dialect = ClaudeCode()
