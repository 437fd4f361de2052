"""Codex. It edits by `apply_patch`, as a tool or inside a shell command; paths count from the session's folder."""

from pilotfish.hosts.shared.tool_hooks import FeedbackForm, Tool, ToolHooks

MAX_BYTES = 7000
"""Codex keeps 2,500 tokens; of our text, which is half numbers and names, a token holds about three bytes."""

dialect = ToolHooks(
    {"apply_patch": Tool("patch", patch="command"), "Bash": Tool("patch", patch="command")},
    form=FeedbackForm(max_bytes=MAX_BYTES),
)
