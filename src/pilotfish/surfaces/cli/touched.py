"""`pilotfish touched`: what a host's hook asks after an edit. Prints the feedback, word for word, or nothing.

It ends with 0 whatever a file, a server or the configuration does: nothing may make an edit look as if it had failed.
"""

from __future__ import annotations

import json
import sys

import click

from pilotfish.api.answers import Feedback, State
from pilotfish.errors import Failure
from pilotfish.operations.cleaning import structured
from pilotfish.surfaces.cli import completing
from pilotfish.surfaces.cli.workspace import (
    Kind,
    OpenWorkspace,
    daemon_option,
    json_option,
    root_option,
    with_workspace,
)


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, shell_complete=completing.files)
@click.option(
    "--kind",
    type=click.Choice(["edit", "write", "patch"]),
    default="edit",
    show_default=True,
    help="What was done: part of a file changed, a whole file written, several changed.",
)
@click.option("--only-new", is_flag=True, help="Leave out what was there before the edit, where that is known.")
@root_option
@daemon_option
@json_option
def touched(files: tuple[str, ...], kind: Kind, only_new: bool, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """The feedback that follows an edit of files."""

    async def ask(workspace: OpenWorkspace) -> Feedback:
        return await workspace.after_edit(*files, kind=kind, only_new=only_new)

    try:
        feedback = with_workspace(root, ask, alone=True)
    except Failure as failure:
        feedback = Feedback("", State.UNAVAILABLE, 0, failure.message)
    if as_json:
        click.echo(json.dumps(structured(feedback)))
    elif feedback.text:
        # In a pipe it is word for word what a host appends.
        click.echo(feedback.text, nl=sys.stdout.isatty())
