"""`pilotfish tools`: the tool schemas, for wiring a model by hand."""

import json

import click

from pilotfish.operations.rows import OperationRow
from pilotfish.operations.tools import Format, ToolSet, default_tools, tool_schemas
from pilotfish.protocol.codec import encode
from pilotfish.surfaces.cli.workspace import root_of, root_option


@click.command()
@click.option(
    "--format",
    "format_",
    type=click.Choice([one.value for one in Format]),
    default=Format.JSON.value,
    show_default=True,
    help="The schema format.",
)
@click.option(
    "--tools",
    "tools_",
    type=click.Choice([one.value for one in ToolSet]),
    help="One tool per operation, the single tool lsp, or the six of Opta (the default for openai).",
)
@root_option
@click.option("--json", is_flag=True, hidden=True, help="Ignored: schemas are always JSON.")
def tools(format_: str, tools_: str | None, root: str | None, **_always: object) -> None:
    """Print the tool schemas for models."""
    wanted = Format(format_)
    chosen = default_tools(wanted) if tools_ is None else ToolSet(tools_)
    if wanted is Format.MCP:
        # As `tools/list` has them in this workspace, to the byte.
        click.echo(encode(tool_schemas(wanted, chosen, _offered(root_of(root)))))
    else:
        click.echo(json.dumps(tool_schemas(wanted, chosen), indent=2))


def _offered(root: str) -> tuple[OperationRow, ...]:
    """The operations that a server of the workspace may answer."""
    import anyio

    from pilotfish.library.workspace import open as open_workspace

    async def ask() -> tuple[OperationRow, ...]:
        async with open_workspace(root) as workspace:
            return await workspace.offered()

    return anyio.run(ask)
