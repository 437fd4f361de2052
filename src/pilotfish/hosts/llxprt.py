"""LLxprt Code. Its `apply_patch` is a unified diff for one file, which another argument names."""

from pilotfish.hosts.shared.tool_hooks import Tool, ToolHooks

PATHS = ("absolute_path", "file_path")
"""Most tools take either name."""

dialect = ToolHooks(
    {
        "write_file": Tool("write", PATHS),
        "replace": Tool("edit", PATHS),
        "ast_edit": Tool("edit", PATHS),
        "insert_at_line": Tool("edit", PATHS),
        "delete_line_range": Tool("edit", PATHS),
        "apply_patch": Tool("patch", PATHS, patch="patch_content"),
        "read_file": Tool("read", PATHS),
        "read_line_range": Tool("read", PATHS),
        "ast_read_file": Tool("read", PATHS),
    },
    before="BeforeTool",
    after="AfterTool",
)
