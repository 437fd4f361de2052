"""Qwen Code: `PostToolUse` hooks.

- Run: 0.24.4, with `OPENAI_BASE_URL`.
- What a hook adds is appended to the tool's result, and angle brackets in it are escaped: so our text has none.
- `tool_response.returnDisplay` has `originalContent`, the old text, empty for a new file.
- Timeouts: seconds; from 1000 on they are taken for milliseconds.
- Without a terminal there is no `SessionEnd`.
"""

from pilotfish.hosts.shared.hook_settings import RESTART, TIMEOUT_SECONDS, hook_groups, hooks_and_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import FeedbackForm, HostTool, ToolHooks

DIALECT = ToolHooks(
    {
        "write_file": HostTool("write", ("file_path",)),
        "edit": HostTool("edit", ("file_path",)),
        "notebook_edit": HostTool("edit", ("notebook_path",)),
        "read_file": HostTool("read", ("file_path", "absolute_path")),
    },
    form=FeedbackForm(plain=True),
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    events = {
        "PostToolUse": ".*",
        "UserPromptSubmit": None,
        "Stop": None,
        "SubagentStop": None,
        "SessionStart": None,
        "SessionEnd": None,
    }
    hooks = hook_groups(where.programs.hook("qwen"), events, {"": TIMEOUT_SECONDS}, name="pilotfish")
    return (where.folder(".qwen", project=".qwen").file("settings.json", hooks_and_server(where, hooks)),)


HOST = HostSpec(
    name="qwen",
    title="Qwen Code",
    files=wired_files,
    programs=("qwen",),
    folders=(".qwen",),
    dialect=DIALECT,
    afterwards=(RESTART,),
)
