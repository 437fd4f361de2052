"""The verbs that hosts run and people do not: `pilotfish mcp` and `pilotfish service`."""

from functools import partial

import click


@click.command()
@click.option(
    "--tools",
    type=click.Choice(["named", "lsp"]),
    help='One tool per operation, or the one tool "lsp"; by default as the configuration says.',
)
def mcp(tools: str | None) -> None:
    """Serve MCP over standard input and output, for the current folder or the client's roots."""
    from pilotfish.operations.schemas import ToolSet
    from pilotfish.surfaces.mcp_connection import Options
    from pilotfish.surfaces.mcp_proxy import in_process, run

    run(partial(in_process, Options(ToolSet(tools) if tools else None)))


@click.command()
def service() -> None:
    """Serve LLxprt: JSON-RPC over standard input and output, configured by LSP_BOOTSTRAP."""
    from pilotfish.stdio_service import main

    click.get_current_context().exit(main())
