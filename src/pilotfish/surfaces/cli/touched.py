"""`pilotfish touched`: prints the feedback of an edit, or nothing.

It exits with 0 whatever goes wrong: a problem of ours must not make an edit look failed.
"""

from __future__ import annotations

import html
import json
import sys
from typing import TYPE_CHECKING

import click

from pilotfish.api.answers import Feedback, State
from pilotfish.errors import Failure
from pilotfish.operations.cleaning import structured
from pilotfish.surfaces.cli import completion
from pilotfish.surfaces.cli.workspace import (
    OpenWorkspace,
    daemon_option,
    host_option,
    json_option,
    root_option,
    with_workspace,
)

if TYPE_CHECKING:
    from pilotfish.config.schema import TouchKind


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, shell_complete=completion.files)
@click.option(
    "--kind",
    type=click.Choice(["edit", "write", "patch"]),
    default="edit",
    show_default=True,
    help="What was done: part of a file edited, a whole file written, several files patched.",
)
@click.option("--only-new", is_flag=True, help="Leave out errors that are older than the edit, where that is known.")
@root_option
@host_option
@daemon_option
@json_option
def touched(files: tuple[str, ...], kind: TouchKind, only_new: bool, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Print the feedback that an agent gets after an edit."""

    def ask(workspace: OpenWorkspace) -> Feedback:
        return workspace.after_edit(*files, kind=kind, only_new=only_new)

    try:
        feedback = with_workspace(root, ask)
    except Failure as failure:
        feedback = Feedback("", State.UNAVAILABLE, 0, failure.message)
    if as_json:
        click.echo(json.dumps(structured(feedback)))
    elif feedback.text:
        # In a pipe, the characters that a host appends; a person reads unescaped what a model reads escaped.
        click.echo(html.unescape(feedback.text) if sys.stdout.isatty() else feedback.text)
