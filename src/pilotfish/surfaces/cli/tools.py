"""`pilotfish tools`: the tool schemas, for wiring a model by hand."""

import json

import click

from pilotfish.operations.schemas import Format, ToolSet, default_tools, tool_schemas
from pilotfish.protocol.codec import encode


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
@click.option("--root", hidden=True, help="Ignored: the tools are the same everywhere.")
@click.option("--json", is_flag=True, hidden=True, help="Ignored: schemas are always JSON.")
def tools(format_: str, tools_: str | None, **_same_everywhere: object) -> None:
    """Print the tool schemas for models."""
    wanted = Format(format_)
    chosen = default_tools(wanted) if tools_ is None else ToolSet(tools_)
    schemas = tool_schemas(wanted, chosen)
    # MCP as it is on the wire, so that the two can be compared.
    click.echo(encode(schemas) if wanted is Format.MCP else json.dumps(schemas, indent=2))
