"""Cline. It tells what a tool did twice, once in the words of its older hooks; context comes back under its own key.

{"taskId", "workspaceRoots", "hookName": "tool_result",
 "tool_result": {"name", "input", "output", "error"?}, "postToolUse": {"success", …}}
"""

from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.questions import Touch
from pilotfish.hosts.shared.dialect import Began, Ended, HostEvent, Nothing, Touched
from pilotfish.hosts.shared.tool_hooks import MAX_BYTES, FeedbackForm, Kind, Tool, ToolCall, failed, shaped, touched_by
from pilotfish.protocol.codec import encode

PATHS = ("path", "absolutePath", "file_path", "files", "file_paths", "paths")

TOOLS = {
    "editor": Tool("edit", PATHS),
    "write_to_file": Tool("write", PATHS),
    "replace_in_file": Tool("edit", PATHS),
    "apply_patch": Tool("patch", patch="input"),
    "read_files": Tool("read", PATHS),
    "read_file": Tool("read", PATHS),
}


CREATED = "File created successfully at: "
"""What the `editor` says about a file that was not there."""


class Call(Struct, frozen=True):
    """A tool call, made or about to be."""

    name: str = ""
    input: object = None
    output: object = None
    error: object = None


class Outcome(Struct, frozen=True):
    success: bool = True


class Event(Struct, frozen=True):
    """The bytes, read. What is not named here is ignored."""

    hookName: str = ""  # noqa: N815 -- the host's spelling
    taskId: str = ""  # noqa: N815 -- the host's spelling
    workspaceRoots: tuple[str, ...] = ()  # noqa: N815 -- the host's spelling
    tool_call: Call = field(default_factory=Call)
    tool_result: Call = field(default_factory=Call)
    postToolUse: Outcome = field(default_factory=Outcome)  # noqa: N815 -- the host's spelling


class Cline:
    def read(self, event: bytes) -> HostEvent:
        said = shaped(event, Event)
        cwd = said.workspaceRoots[0] if said.workspaceRoots else None
        match said.hookName:
            case "agent_start" | "agent_resume":
                return Began(said.taskId, cwd)
            case "session_shutdown":
                return Ended(said.taskId)
            case "tool_call":
                return _touched(said.taskId, cwd, said.tool_call, "read")
            case "tool_result" if _worked(said):
                tool = TOOLS.get(said.tool_result.name)
                return _touched(said.taskId, cwd, said.tool_result, tool.kind) if tool else Nothing()
            case _:
                return Nothing()

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return encode({"contextModification": feedback})


def _worked(said: Event) -> bool:
    result = said.tool_result
    return said.postToolUse.success and not result.error and not failed(result.output)


def _touched(task: str, cwd: str | None, call: Call, kind: Kind) -> HostEvent:
    given = {"input": call.input} if isinstance(call.input, str) else call.input
    found = touched_by(TOOLS, ToolCall(call.name, given, call.output), FeedbackForm())
    if found is None:
        return Nothing()
    if kind == "read":
        return Touched(Touch(found.touch.paths, kind, max_bytes=MAX_BYTES), task, cwd)
    if _is_new(call):
        found = replace(found, touch=replace(found.touch, before=dict.fromkeys(found.touch.paths, "")))
    return replace(found, conversation=task, cwd=cwd)


def _is_new(call: Call) -> bool:
    said = cast("dict[str, object]", call.output).get("result") if isinstance(call.output, dict) else None
    return isinstance(said, str) and said.startswith(CREATED)


dialect = Cline()
