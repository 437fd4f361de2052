"""The verbs that hosts run and people do not: `pilotfish mcp` and `pilotfish service`."""

import os
from functools import partial

import click

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.cli.workspace import root_option


@click.command()
@click.option(
    "--tools",
    type=click.Choice(["named", "lsp"]),
    help='One tool per operation, or the one tool "lsp"; by default as the configuration says.',
)
@click.option("--in-process", is_flag=True, help="Do without the daemon: the servers end with this program.")
@root_option
def mcp(tools: str | None, root: str | None, *, in_process: bool) -> None:
    """Serve MCP over standard input and output.

    The workspace is where the client says its roots are; else --root, or the one around the current folder.
    """
    from pilotfish.surfaces.mcp import proxy as mcp_proxy

    if root is not None:
        try:
            os.chdir(root)
        except OSError as error:
            raise Refused(Code.ROOT_GONE, f"the workspace {root} cannot be entered: {error.strerror}") from None
    mcp_proxy.run(partial(mcp_proxy.in_process if in_process else mcp_proxy.by_daemon, tools))


@click.command()
def service() -> None:
    """Serve LLxprt over standard input and output.

    Its JSON-RPC, configured by LSP_BOOTSTRAP, and MCP on the descriptors 3 and 4.
    """
    from pilotfish.surfaces.llxprt.service import main

    click.get_current_context().exit(main())
