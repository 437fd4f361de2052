"""Codex: it edits by `apply_patch`, as a tool or inside a shell command.

- Run: 0.169.0, with a provider of its own (`wire_api = "responses"`). `apply_patch` is offered to models that it knows.
- What a hook adds is a message of the role `developer`, before the tool's output. 2,500 tokens are kept.
- The answer may hold no other keys than those of its schema.
- The patch is in `tool_input.command`, with paths from the session's folder; the old text is taken back from the new
  one. After an edit that failed, no hook runs.
- A `Stop` hook whose answer has `decision: "block"` makes the agent go on; angle brackets in the reason are escaped.
- A new or changed hook is skipped without a word until the person trusts it in `/hooks`.
- An MCP server gets only a few variables of the environment, and those that its table names: without the others it
  would read another configuration than the hooks, and start language servers of its own.
- Timeouts: seconds. That of `SessionEnd` may be 3 at most: with more, each start shows an error.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit
from pilotfish.hosts.edits.toml_edit import TomlEdit
from pilotfish.hosts.shared.hook_settings import TIMEOUT_SECONDS, hook_groups
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.tool_hooks import HostTool, ToolHooks
from pilotfish.servers.environment import FAMILY_MEMBERS, NETWORKS, TOOLCHAIN_VARIABLES

MAX_BYTES = 7000
"""Codex keeps 2,500 tokens; of our text, which is half numbers and names, a token holds about three bytes."""

TIMEOUTS = {"": TIMEOUT_SECONDS, "SessionEnd": 3}

PASSED_ON = sorted(FAMILY_MEMBERS | NETWORKS | TOOLCHAIN_VARIABLES)
"""What decides where our files are, and what a language server inherits."""

DIALECT = ToolHooks(
    {"apply_patch": HostTool("patch", patch="command"), "Bash": HostTool("patch", patch="command")},
    max_bytes=MAX_BYTES,
    plain_stop=True,
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.folder(".codex", "CODEX_HOME", project=".codex")
    events = {"PostToolUse": None, "UserPromptSubmit": None, "Stop": None, "SessionStart": None, "SessionEnd": None}
    hooks = hook_groups(where, "codex", events, TIMEOUTS)
    program, *arguments = where.programs.mcp
    table: dict[str, str | list[str]] = {"command": program, "args": arguments, "env_vars": PASSED_ON}
    return (
        folder.file("hooks.json", JsonEdit(hooks)),
        folder.file("config.toml", TomlEdit("mcp_servers", "pilotfish", table)),
    )


HOST = HostSpec(
    title="Codex",
    files=wired_files,
    programs=("codex",),
    folders=(".codex",),
    dialect=DIALECT,
    afterwards=("Start codex, type /hooks and trust the hooks of Pilotfish: Codex skips new ones until then.",),
    unseen="Codex runs the hooks only once they are trusted in /hooks, which cannot be seen from here.",
    notice_key="systemMessage",
)
