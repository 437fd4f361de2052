"""`pilotfish service`: run by LLxprt, not by people."""

import click


@click.command()
def service() -> None:
    """Serve LLxprt over standard input and output.

    LLxprt's JSON-RPC, configured by LSP_BOOTSTRAP; MCP on the file descriptors 3 and 4.
    """
    from pilotfish_llxprt.service import main

    click.get_current_context().exit(main())
