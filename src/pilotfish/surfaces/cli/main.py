"""The command line: one table of verbs, and the one place where an error becomes text and an exit code.

A verb's module is imported when that verb is called, and not before: the help of all of them costs click alone.
Exit codes: 0 clean or answered, 1 findings, 2 no verdict (or a fault of ours), 3 wrong use; 130 when interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from pilotfish.errors import Failure
from pilotfish.sanitise import sanitised_lines
from pilotfish.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

NO_VERDICT = 2
USAGE = 3
INTERRUPTED = 130
"""What a shell says of a program that ended by Ctrl-C."""

MAX_MESSAGE = 4000
"""Code points of an error that is shown: some carry the last words of a server."""


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb is, and what the list of verbs says about it."""

    module: str
    attribute: str
    help: str


QUESTIONS = "pilotfish.surfaces.cli.questions"

SECTIONS: Mapping[str, Mapping[str, Verb]] = {
    "Check": {
        "check": Verb("pilotfish.surfaces.cli.check", "check", "Fresh errors and warnings of files or folders."),
        "touched": Verb("pilotfish.surfaces.cli.touched", "touched", "The feedback that follows an edit of files."),
    },
    "Ask": {
        "definition": Verb(QUESTIONS, "definition", "Where a symbol is defined."),
        "declaration": Verb(QUESTIONS, "declaration", "Where a symbol is declared."),
        "type-definition": Verb(QUESTIONS, "type-definition", "Where the type of a symbol is defined."),
        "implementation": Verb(QUESTIONS, "implementation", "What implements an interface or method."),
        "references": Verb(QUESTIONS, "references", "Every use of a symbol in the workspace."),
        "hover": Verb(QUESTIONS, "hover", "Type and documentation of a symbol."),
        "signature": Verb(QUESTIONS, "signature", "Signatures of the call around a position."),
        "symbols": Verb(QUESTIONS, "symbols", "Outline of a file: its symbols and where they are."),
        "workspace-symbols": Verb(QUESTIONS, "workspace-symbols", "Find symbols by name in the whole workspace."),
        "calls": Verb(QUESTIONS, "calls", "Who calls a function, and what it calls."),
        "types": Verb(QUESTIONS, "types", "What a type is derived from, and what from it."),
    },
    "Change": {
        "rename": Verb(QUESTIONS, "rename", "Rename a symbol everywhere; by default only a diff."),
        "rename-file": Verb(QUESTIONS, "rename-file", "Move a file and update imports; by default only a diff."),
        "actions": Verb(QUESTIONS, "actions", "Quick fixes and refactorings on a line."),
    },
    "Look": {
        "status": Verb("pilotfish.surfaces.cli.status", "status", "Every language server and its state."),
        "panel": Verb("pilotfish.surfaces.panel.verb", "panel", "The same, live, on the whole terminal."),
        "doctor": Verb("pilotfish.surfaces.doctor.verb", "doctor", "What works here, what is missing, how to get it."),
        "logs": Verb("pilotfish.surfaces.cli.logs", "logs", "What a server or the daemon wrote last."),
        "trace": Verb("pilotfish.surfaces.cli.trace", "trace", "The messages to and from one server, as they go."),
        "stats": Verb("pilotfish.surfaces.cli.stats", "stats", "Counts and latencies since the daemon started."),
        "restart": Verb("pilotfish.surfaces.cli.restart", "restart", "Stop a server and start it again."),
        "stop": Verb("pilotfish.surfaces.cli.restart", "stop", "Stop a server; it comes back on use."),
    },
    "Set up": {
        "setup": Verb("pilotfish.surfaces.cli.setup", "setup", "Wire a coding agent to Pilotfish, and undo it."),
        "servers": Verb(
            "pilotfish.surfaces.cli.servers",
            "servers",
            "List the language servers that are known, and what is installed.",
        ),
        "install": Verb("pilotfish.surfaces.install.verb", "install", "Install language servers from PyPI or npm."),
        "config": Verb("pilotfish.surfaces.cli.config", "config", "Show and check the configuration."),
        "trust": Verb("pilotfish.surfaces.cli.config", "trust", "Show what a workspace would run, and allow it."),
        "untrust": Verb("pilotfish.surfaces.cli.config", "untrust", "Take back what `pilotfish trust` allowed."),
        "tools": Verb("pilotfish.surfaces.cli.tools", "tools", "Print the tool schemas for models."),
        "completion": Verb("pilotfish.surfaces.cli.completion", "completion", "Completion for bash, zsh and fish."),
        "demo": Verb("pilotfish.surfaces.cli.demo", "demo", "The main job, on a workspace made for it."),
    },
    "Run": {
        "daemon": Verb("pilotfish.surfaces.cli.daemon", "daemon", "The daemon by hand: start, stop, status, logs."),
        "mcp": Verb("pilotfish.surfaces.cli.host_verbs", "mcp", "Serve MCP over standard input and output."),
        "hook": Verb("pilotfish.surfaces.cli.daemon", "hook", "The hook program that hosts run after an edit."),
        "serve": Verb("pilotfish.surfaces.http.verb", "serve", "The HTTP API, MCP over HTTP and a live page."),
        "service": Verb("pilotfish.surfaces.cli.host_verbs", "service", "Serve LLxprt over standard input and output."),
    },
}

VERBS: Mapping[str, Verb] = {name: verb for section in SECTIONS.values() for name, verb in section.items()}


class Root(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module = import_module(verb.module)
        # One module holds the verbs of all operations, under the names that the command line has for them.
        made: Mapping[str, click.Command] = getattr(module, "COMMANDS", {})
        return made.get(verb.attribute) or getattr(module, verb.attribute)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Like click's own, from the table alone."""
        from click.shell_completion import CompletionItem

        begun = [(name, verb) for name, verb in VERBS.items() if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=verb.help) for name, verb in begun]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Like click's own, from the table alone."""
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, verb.help) for name, verb in verbs.items()], col_max=20)


@click.command(cls=Root, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="pilotfish %(version)s")
def root() -> None:
    """Red squiggles for coding agents: the language servers behind every edit.

    A PLACE is FILE:LINE:COL, or FILE SYMBOL, or SYMBOL alone; lines and columns count from 1.
    Output is for people on a terminal, one result per line in a pipe, and the whole answer with --json.

    Exit codes: 0 clean or answered, 1 findings, 2 no verdict, 3 wrong use. New here? Begin with demo, then doctor.
    """


def run(arguments: Sequence[str], opening: object = None) -> int:
    """Run one command line and return its exit code. `opening` replaces the way in which verbs get a workspace."""
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        code = root.main(list(arguments), prog_name="pilotfish", standalone_mode=False, obj=opening, color=colour)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 -- the one place where errors become text
        return _ended_by(error)
    return code if isinstance(code, int) else 0


def told(failure: Failure) -> str:
    """A failure as a person reads it: what is wrong, then what to do."""
    lines = [failure.message, *([failure.hint] if failure.hint else []), *failure.scene.stderr]
    return sanitised_lines("\n".join(lines), MAX_MESSAGE)


def _ended_by(error: Exception | KeyboardInterrupt) -> int:
    """Say what happened, and return the exit code."""
    match error:
        case click.ClickException():
            error.show()
            return USAGE
        case click.Abort() | KeyboardInterrupt():
            click.echo("Interrupted.", err=True)
            return INTERRUPTED
        case Failure():
            click.echo(told(error), err=True)
            return error.exit_code
        case BrokenPipeError():
            # Whoever read our output has enough of it.
            _leave_unsaid()
            return NO_VERDICT
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            _leave_unsaid()
            click.echo(f"{error.strerror}. Make room, and ask again.", err=True)
            return NO_VERDICT
        case FileNotFoundError() if _is_nowhere():
            click.echo("The current folder does not exist any more. Change to another one.", err=True)
            return USAGE
        case _:
            from pilotfish.surfaces.cli.crash import kept

            what = sanitised_lines(f"{type(error).__name__}: {error}", MAX_MESSAGE)
            click.echo(f"pilotfish failed: {what}\n{kept(error, os.environ)}", err=True)
            return NO_VERDICT


def _leave_unsaid() -> None:
    """The interpreter must not try to flush what is left of the output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_nowhere() -> bool:
    """Whether the current folder was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
