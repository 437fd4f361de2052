"""`pilotfish lsp`: run by hosts, not by people."""

import os

import click


@click.command()
@click.option("--host", help="The coding agent that runs it, as `pilotfish setup` calls it.")
@click.option("--in-process", is_flag=True, help="Do not use the daemon: the servers end with this program.")
@click.option("--stdio", is_flag=True, help="The default; many clients name it.")
def lsp(host: str | None, *, in_process: bool, stdio: bool) -> None:  # noqa: ARG001 -- there is no other way
    """Serve coding agents that have an LSP client.

    The language server protocol over standard input and output. Answers are about the files on disk; a client with
    unsaved text is refused. The workspace is the client's root, else the worktree around the current folder.
    """
    from pilotfish.ipc.client import start_ahead

    if not in_process:
        start_ahead()
    from functools import partial

    import anyio

    from pilotfish.surfaces.lsp import proxy
    from pilotfish.system.standard_streams import take_standard_streams

    with take_standard_streams() as client:
        anyio.run(partial(proxy.in_process if in_process else proxy.by_daemon, os.getcwd(), host), client)
