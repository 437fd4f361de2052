"""Gemini CLI. On the way to the model it escapes angle brackets, so the text has none."""

from pilotfish.hosts.shared.tool_hooks import FeedbackForm, Tool, ToolHooks

dialect = ToolHooks(
    {
        "write_file": Tool("write", ("file_path",)),
        "replace": Tool("edit", ("file_path",)),
        "read_file": Tool("read", ("file_path", "absolute_path")),
    },
    before="BeforeTool",
    after="AfterTool",
    form=FeedbackForm(plain=True),
)
