"""The verbs that hosts run and people do not: `pilotfish mcp` and `pilotfish service`."""

from functools import partial

import click


@click.command()
@click.option(
    "--tools",
    type=click.Choice(["named", "lsp"]),
    help='One tool per operation, or the one tool "lsp"; by default as the configuration says.',
)
@click.option("--in-process", is_flag=True, help="Do without the daemon: the servers end with this program.")
def mcp(tools: str | None, *, in_process: bool) -> None:
    """Serve MCP over standard input and output, for the current folder or the client's roots."""
    from pilotfish.surfaces import mcp_proxy

    mcp_proxy.run(partial(mcp_proxy.in_process if in_process else mcp_proxy.by_daemon, tools))


@click.command()
def service() -> None:
    """Serve LLxprt: JSON-RPC over standard input and output, configured by LSP_BOOTSTRAP."""
    from pilotfish.stdio_service import main

    click.get_current_context().exit(main())
