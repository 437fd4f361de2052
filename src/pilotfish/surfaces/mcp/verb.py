"""`pilotfish mcp`: run by hosts, not by people."""

import os
from functools import partial

import click

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.cli.workspace import root_option


@click.command()
@click.option(
    "--tools",
    type=click.Choice(["named", "lsp"]),
    help='One tool per operation, or the single tool "lsp". Default: as configured.',
)
@click.option(
    "--structured/--text",
    default=None,
    help="Add the JSON envelope to the text of each result, for programs. Default: as configured.",
)
@click.option("--in-process", is_flag=True, help="Do not use the daemon: the servers end with this program.")
@root_option
def mcp(tools: str | None, root: str | None, *, structured: bool | None, in_process: bool) -> None:
    """Serve MCP over standard input and output.

    The workspace is the client's MCP root; without one, --root or the worktree around the current folder.
    """
    from pilotfish.ipc.client import start_ahead

    if root is not None:
        try:
            os.chdir(root)
        except OSError as error:
            raise Refused(Code.ROOT_GONE, f"cannot enter the workspace {root}: {error.strerror}") from None
    if not in_process:
        start_ahead()
    from pilotfish.operations.tools import McpOptions, ToolSet
    from pilotfish.surfaces.mcp import proxy

    options = McpOptions(None if tools is None else ToolSet(tools), structured)
    proxy.run(partial(proxy.in_process if in_process else proxy.by_daemon, options))
