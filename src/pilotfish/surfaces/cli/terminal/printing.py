"""Answers on standard output: for people on a terminal, one result per line in a pipe, the envelope as JSON."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import click

from pilotfish.api.answers import Answer
from pilotfish.api.questions import Operation
from pilotfish.operations.cleaning import MAX_MESSAGE, structured
from pilotfish.operations.render import text_of
from pilotfish.sanitise import sanitised_lines
from pilotfish.surfaces.cli.terminal.answers import Page, answer_lines, check_lines
from pilotfish.surfaces.cli.terminal.exit_codes import is_refused
from pilotfish.surfaces.cli.terminal.relative_paths import seen_from
from pilotfish.surfaces.cli.terminal.source_lines import Sources

MIN_COLUMNS = 40
"""Of a terminal that is narrower, lines wrap: there is no room for a source line in it."""


def print_answer(answer: Answer[Any], root: str, *, as_json: bool, texts: Mapping[str, str] | None = None) -> None:
    """Print an answer about the workspace at `root`. `texts` stand for files that are not on disk like that."""
    if as_json:
        # ASCII, because a pipe may be in any encoding.
        click.echo(json.dumps(structured(answer)))
        return
    if is_refused(answer):
        # Nothing was asked, so there is nothing for whoever reads the answers in a pipe.
        click.echo("\n".join(sanitised_lines(error.message, MAX_MESSAGE) for error in answer.errors), err=True)
        return
    cwd = os.getcwd()
    shown = seen_from(answer, root, cwd) if root else answer
    if not sys.stdout.isatty():
        click.echo(text_of(shown))
        return
    page = Page(max(MIN_COLUMNS, shutil.get_terminal_size().columns), Sources(cwd, texts or {}).line)
    is_check = answer.operation == Operation.DIAGNOSTICS
    for line in check_lines(shown, page) if is_check else answer_lines(shown, page):
        click.echo(line)
