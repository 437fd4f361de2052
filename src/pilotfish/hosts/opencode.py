"""OpenCode: a plugin (`plugins/opencode`) that appends to the output of its tools.

- Run: 1.18.18.
- `tool.execute.after` may change the output, so the feedback is inside the tool's result. An exception in it makes the
  edit fail, so the plugin catches everything. It is not called for an edit that failed.
- `tool.execute.before` is where the plugin reads the text before the edit.
- Models whose name has GPT in it get `apply_patch` in place of `write` and `edit`.
- At each start it installs the packages of every plugin folder, which takes up to a minute the first time.
- `opencode run` ends as soon as the session is idle. It goes on when a message is there that is newer than the last
  answer, so the plugin writes one (`noReply`) while the last text is being completed.
- Its own `lsp` setting is off by default; on, it repeats what we say.

The dialect is for programs that send the same to the hook program:

    {"event": "touched", "tool", "args": {…}, "sessionID", "directory"}
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.dialect import EndEvent, HostEvent, OtherEvent, StartEvent
from pilotfish.hosts.shared.hook_settings import RESTART, plugin_files, read_setting
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, HostTool, ToolCall, event_as, touch_event
from pilotfish.protocol.wire import Json

TOOLS = {
    "write": HostTool("write", ("filePath",)),
    "edit": HostTool("edit", ("filePath",)),
    "multiedit": HostTool("edit", ("filePath",)),
    "apply_patch": HostTool("patch", patch="patchText"),
    "patch": HostTool("patch", patch="patchText"),
    "read": HostTool("read", ("filePath",)),
}


class OpenCodeEvent(Struct, frozen=True):
    """The event as it is sent. Unknown fields are ignored."""

    event: Literal["touched", "began", "ended"] = "touched"
    tool: str = ""
    args: object = None
    sessionID: str = ""  # noqa: N815 -- the host's spelling
    directory: str | None = None


class OpenCodeDialect:
    def read(self, event: bytes) -> HostEvent:
        said = event_as(event, OpenCodeEvent)
        match said.event:
            case "began":
                return StartEvent(said.sessionID, said.directory)
            case "ended":
                return EndEvent(said.sessionID)
            case "touched":
                found = touch_event(TOOLS, ToolCall(said.tool, said.args), FeedbackForm(max_bytes=None))
                if found is None:
                    return OtherEvent()
                return replace(found, conversation=said.sessionID, cwd=said.directory)

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace")


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    settings = _settings_folder(where)
    value: Json = {"type": "local", "command": list[Json](where.programs.mcp), "enabled": True}
    return (
        *plugin_files(where, _folder(where), "plugin", "opencode"),
        settings.file(_settings_name(settings), JsonEdit((Member(("mcp", "pilotfish"), value),))),
    )


def _folder(where: Where) -> HostFolder:
    return where.below_config("opencode", project=".opencode")


def _settings_folder(where: Where) -> HostFolder:
    """A project has its configuration at the top and its plugins in a folder."""
    return _folder(where) if where.is_global else where.folder(".")


def _settings_name(folder: HostFolder) -> str:
    return folder.first("opencode.json", "opencode.jsonc")


def _has_language_servers(where: Where) -> bool:
    folder = _settings_folder(where)
    return bool(read_setting(f"{folder.path}/{_settings_name(folder)}", "lsp"))


HOST = HostSpec(
    name="opencode",
    title="OpenCode",
    files=wired_files,
    programs=("opencode",),
    folders=(".config/opencode",),
    dialect=OpenCodeDialect(),
    probes=("daemon", "mcp"),
    afterwards=(RESTART,),
    cautions={"OpenCode's own `lsp` is on and says everything twice: set it to false.": _has_language_servers},
)
